// A text that many ranks read: pieces of equal size, whose lines are taken by the ranks in turn. A
// line belongs to the piece in which it begins.
//
//   bytes    |---- piece 0 ----|---- piece 1 ----|---- piece 2 ---|
//   lines    =====|=======|========|======|=======|====|=====|=====
//   rank             0                 1                2
//
// Plain files are read at the places of a rank's pieces. Compressed ones can be read from their
// beginning only: each rank inflates all, and looks at its own pieces. Local.
#pragma once

#include <farside/algorithms/matrix_files/market.hpp>
#include <farside/detail/shared_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// Something that is wrong with a text. Of several the one at the lowest byte counts.
struct text_problem {
  static constexpr std::uint64_t none = ~std::uint64_t{0}, at_end = none - 1;
  std::uint64_t at = none;
  std::string why;
  bool whole = false;  ///< with the file; `why` names it, no line is to blame

  static text_problem with_file(std::string why) { return {0, std::move(why), true}; }
  explicit operator bool() const { return at != none; }
};

/// A plain file from byte `from` on.
class file_stream final : public byte_stream {
 public:
  file_stream(open_file& file, std::uint64_t from = 0) : file_(file), at_(from) {}
  std::size_t read(char* to, std::size_t n) override {
    n = static_cast<std::size_t>(std::min<std::uint64_t>(n, file_.size() - at_));
    file_.read_at(at_, to, n);
    if (!file_.problem.empty()) throw error(file_.problem);
    at_ += n;
    return n;
  }

 private:
  open_file& file_;
  std::uint64_t at_;
};

/// A part of a text that slides over a stream.
class text_window {
 public:
  explicit text_window(byte_stream& from, std::uint64_t at = 0) : from_(from), begin_(at) {}

  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return begin_ + bytes_.size() - skipped_; }
  const char* at(std::uint64_t offset) const {
    return bytes_.data() + skipped_ + (offset - begin_);
  }

  /// Forgets what is before `offset`, which is no byte beyond end().
  void forget(std::uint64_t offset) {
    skipped_ += static_cast<std::size_t>(offset - begin_);
    begin_ = offset;
    if (skipped_ < bytes_.size() / 2) return;
    bytes_.erase(0, skipped_);
    skipped_ = 0;
  }
  /// Adds bytes until there are those before `offset`. False if the text ends earlier.
  bool reach(std::uint64_t offset) {
    while (end() < offset) {
      const std::size_t had = bytes_.size();
      const std::size_t step =
          std::max<std::size_t>(block, static_cast<std::size_t>(offset - end()));
      bytes_.resize(had + step);
      std::size_t got = 0;
      try {
        got = from_.read(bytes_.data() + had, step);
      } catch (...) {
        bytes_.resize(had);
        throw;
      }
      bytes_.resize(had + got);
      if (got == 0) return false;
    }
    return true;
  }
  /// Where the first line begins at `offset` or behind it, if one does within the longest line's
  /// length. The end of the text is such a place, too.
  std::optional<std::uint64_t> line_begin(std::uint64_t offset) {
    for (std::uint64_t from = offset - 1;;) {
      if (end() <= from && !reach(from + 1)) return end();
      auto left = static_cast<std::size_t>(end() - from);
      if (auto* found = static_cast<const char*>(std::memchr(at(from), '\n', left)))
        return from + static_cast<std::uint64_t>(found - at(from)) + 1;
      from = end();
      if (from - offset > longest_line) return std::nullopt;
    }
  }

 private:
  static constexpr std::size_t block = std::size_t{64} << 10;

  byte_stream& from_;
  std::string bytes_;
  std::uint64_t begin_;
  std::size_t skipped_ = 0;
};

/// A file of text, plain or compressed.
class text_file {
 public:
  text_file(const std::string& path, const gzip_opener& gzip) : file_(path), gzip_(gzip) {
    if (!file_.problem.empty() || file_.size() < 2) return;
    unsigned char magic[2] = {};
    file_.read_at(0, magic, sizeof magic);
    compressed_ = file_.problem.empty() && magic[0] == 0x1f && magic[1] == 0x8b;
    if (compressed_ && !gzip_)
      file_.problem = "cannot read " + path +
                      ": it is compressed by gzip, which this program does not inflate. Inflate it "
                      "first (gunzip), or set matrix_read_options::gzip";
  }

  /// Why it cannot be read.
  text_problem problem() const {
    return file_.problem.empty() ? text_problem() : with_name(file_.problem);
  }
  std::uint64_t file_bytes() const { return file_.size(); }
  /// No text can be longer.
  std::uint64_t most_bytes() const {
    return compressed_ ? 1032 * file_.size() : file_.size();  // deflate does no better
  }

  /// From the beginning.
  std::unique_ptr<byte_stream> open() {
    if (compressed_) return gzip_(file_.path());
    return std::make_unique<file_stream>(file_);
  }

  /// Calls `visit(piece, offset, lines)` for the pieces of member `me` of `members`, from byte
  /// `body` on, as long as it returns no problem. Each line ends with a newline; if the last one of
  /// the text has none, it gets one. Returns what is wrong with the file, the text, or what `visit`
  /// said.
  template <class Visit>
  text_problem visit(std::uint64_t body, std::size_t piece_bytes, std::size_t me,
                     std::size_t members, Visit&& visit) {
    if (piece_bytes == 0) piece_bytes = usual_piece(members);
    text_problem problem;
    std::string failed = problem_of([&] {
      if (compressed_)
        problem = visit_stream(body, piece_bytes, me, members, visit);
      else
        problem = visit_places(body, piece_bytes, me, members, visit);
      return file_.problem;
    });
    return failed.empty() ? problem : with_name(failed);
  }

  /// Of the line in which byte `offset` is; of the last line, if the text is shorter. Reads all
  /// before.
  std::uint64_t line_number(std::uint64_t offset) {
    std::uint64_t newlines = 0, at = 0;
    char last = 0;
    std::vector<char> some(std::size_t{1} << 18);
    try {
      auto stream = open();
      while (at < offset) {
        std::size_t n = stream->read(some.data(), static_cast<std::size_t>(std::min<std::uint64_t>(
                                                      some.size(), offset - at)));
        if (n == 0) return newlines + (last == '\n' ? 0 : 1);
        newlines += static_cast<std::uint64_t>(
            std::count(some.begin(), some.begin() + static_cast<std::ptrdiff_t>(n), '\n'));
        last = some[n - 1];
        at += n;
      }
    } catch (const std::exception&) {  // it got as far before
    }
    return newlines + 1;
  }

  /// A failure of the file as a whole, whose words may not name it.
  text_problem with_name(const std::string& why) const {
    bool named = why.find(file_.path()) != std::string::npos;
    return text_problem::with_file(named ? why : file_.path() + ": " + why);
  }

 private:
  std::size_t usual_piece(std::size_t members) const {
    constexpr std::size_t least = std::size_t{64} << 10, most = std::size_t{4} << 20;
    if (compressed_) return std::size_t{1} << 20;
    return std::clamp(static_cast<std::size_t>(file_.size()) / (8 * members), least, most);
  }

  /// Reads the pieces of one member, each by itself.
  template <class Visit>
  text_problem visit_places(std::uint64_t body, std::size_t piece_bytes, std::size_t me,
                            std::size_t members, Visit& visit) {
    for (std::uint64_t piece = me;; piece += members) {
      const std::uint64_t begin = body + piece * piece_bytes;
      if (begin >= file_.size()) return {};
      const std::uint64_t before = begin - (piece == 0 ? 0 : 1);
      file_stream stream(file_, before);
      text_window window(stream, before);
      text_problem problem;
      if (!visit_piece(window, piece, begin, begin + piece_bytes, visit, problem)) return problem;
    }
  }

  /// Reads all of it, also when there is nothing left to look at: that shows whether it is whole.
  template <class Visit>
  text_problem visit_stream(std::uint64_t body, std::size_t piece_bytes, std::size_t me,
                            std::size_t members, Visit& visit) {
    auto stream = open();
    text_window window(*stream);
    text_problem problem;
    bool looks = true;
    for (std::uint64_t piece = 0;; ++piece) {
      const std::uint64_t begin = body + piece * piece_bytes;
      if (!window.reach(begin + 1)) return problem;
      window.forget(begin - (piece == 0 ? 0 : 1));
      if (looks && piece % members == me)
        looks = visit_piece(window, piece, begin, begin + piece_bytes, visit, problem);
    }
  }

  /// The window has the byte before the piece. False if that was enough.
  template <class Visit>
  bool visit_piece(text_window& window, std::uint64_t piece, std::uint64_t begin, std::uint64_t end,
                   Visit& visit, text_problem& problem) {
    window.reach(end);
    auto first = piece == 0 ? begin : window.line_begin(begin);
    if (!first || *first >= end) return true;  // an earlier piece has the line that fills this one
    auto last = window.line_begin(std::min(end, window.end()));
    std::uint64_t stop = last.value_or(window.end());
    while (!last && stop > *first && *window.at(stop - 1) != '\n') --stop;
    if (!last) problem = {stop, text("is longer than ", longest_line, " characters")};
    if (stop == *first) return !problem;
    lines_.assign(window.at(*first), static_cast<std::size_t>(stop - *first));
    if (lines_.back() != '\n') lines_ += '\n';
    text_problem found = visit(piece, *first, std::string_view(lines_));
    if (found) problem = found;
    return !problem;
  }

  open_file file_;
  gzip_opener gzip_;
  bool compressed_ = false;
  std::string lines_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
