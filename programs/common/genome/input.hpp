// Reading sequences from files by all ranks together.
//
//   plain files              cut into as many ranges of bytes as there are ranks
//   compressed files         each is inflated by one rank, whoever is free
//   standard input, pipes    by rank 0
//
// Ranks that have no such file to read take blocks of sequences from a queue.
//
// A rank guesses where in its range the first FASTQ record begins. Rank 0 knows; if each rank's
// last record ends where the next one's first begins, all have guessed right. If not, or if one
// finds a record that makes no sense, the file is read through by one rank. What is wrong with it
// is then told with the number of the record, whatever the number of ranks; if nothing is, its
// records take several lines each, and it is to be read like a compressed one.
#pragma once

#include "input_files.hpp"
#include "scan.hpp"

#include <farside/containers/circular_queue.hpp>
#include <farside/containers/counter.hpp>

#include <sys/stat.h>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace genome {

/// Why a file cannot be what it should.
[[noreturn]] inline void fail_on_record(const std::string& name, const bad_record& bad) {
  fail(name == "-" ? "standard input" : name, ": record ", bad.record, ": ", bad.text);
}

inline constexpr std::uint64_t to_the_end = std::numeric_limits<std::uint64_t>::max();

/// A whole file or stream, by this rank alone. `kind` may be of any format. Returns the records.
template <class Sink, class Poll>
std::uint64_t scan_whole(const input_file& file, unsigned k, Sink&& sink, Poll&& poll) {
  const std::string& name = file.name;
  std::uint64_t records = 0;
  try {
    std::optional<text_source> source;
    try {
      source.emplace(name, 0, file.bytes);
    } catch (const failure& e) {
      fail(name == "-" ? "standard input" : name, ": ", e.what());
    }
    text_window text(*source);
    bool any = false;
    try {
      any = text.more();
    } catch (const failure& e) {
      throw bad_record{1, e.what()};
    }
    if (!any) return 0;
    if (*text.begin() == '@')
      records = scan_fastq(text, to_the_end, sink, poll);
    else if (*text.begin() == '>')
      records = scan_fasta(text, true, to_the_end, k, sink, poll);
    else
      throw bad_record{1, "begins with neither '@' (FASTQ) nor '>' (FASTA)"};
  } catch (const bad_record& bad) {
    fail_on_record(name, bad);
  }
  return records;
}

/// Pieces of sequences on their way to another rank, with a line's end after each.
struct sequence_block {
  static constexpr std::size_t room = (std::size_t{1} << 15) - 8;
  std::uint64_t size = 0;
  std::array<char, room> text;
};

/// One reading of all files. Made, and `read` called, by all ranks.
class input_reader {
 public:
  /// Changes what files are, see read().
  explicit input_reader(std::vector<input_file>& files, unsigned k)
      : files_(files), k_(k), blocks_(0, 64), tickets_(0), finished_(0), stop_(0) {
    for (std::uint32_t i = 0; i < files.size(); ++i) {
      if (files[i].kind == input_kind::whole) whole_.push_back(i);
      streams_ += files[i].kind == input_kind::stream;
    }
  }

  /// Collective: `sink(bases, n)` for this rank's share, as in scan.hpp. `poll(bytes, records)`
  /// must help others to get on, and returns whether to. `complete()` ends what the sink began, and
  /// returns why it could not. Returns this rank's records; or nothing, on all ranks, if files have
  /// turned out to need reading as a whole, are of that kind now, and all must be read again.
  /// Throws on all ranks if any file is bad.
  template <class Sink, class Poll, class Complete>
  std::optional<std::uint64_t> read(Sink&& sink, Poll&& poll, Complete&& complete) {
    std::string reason = reason_of([&] {
      for (std::size_t i = 0; i < files_.size(); ++i) {
        if (files_[i].kind == input_kind::fastq) read_fastq_range(i, sink, poll);
        if (files_[i].kind == input_kind::fasta) read_fasta_range(i, sink, poll);
      }
    });
    if (!reason.empty()) stop();
    read_streams(reason, sink, poll);
    std::string more = complete();
    if (mark_whole()) return std::nullopt;
    agree(reason.empty() ? more : reason);
    if (auto seams = far::all_gather(seams_); far::rank() == 0)
      reason = reason_of([&] { check_seams(seams); });
    if (mark_whole()) return std::nullopt;
    agree(reason);
    return records_;
  }

 private:
  void stop() { stop_.next(); }
  bool go_on() { return stop_.value() == 0; }

  /// Tells about the first bad record, which another rank's range may hold. If there is none, the
  /// file is one of those to be read as a whole.
  [[noreturn]] void tell(std::size_t file) {
    scan_whole(
        files_[file], k_, [](const char*, std::size_t) {}, [](std::uint64_t) { return true; });
    wrongly_cut_.push_back(file);
    fail(files_[file].name, ": cannot be read in ranges");
  }
  /// Collective: whether any rank has found such files.
  bool mark_whole() {
    bool any = false;
    for (const auto& some : far::all_gather(wrongly_cut_))
      for (std::uint64_t file : some) files_[file].kind = input_kind::whole, any = true;
    return any;
  }

  std::pair<std::uint64_t, std::uint64_t> range(const input_file& file) const {
    __extension__ using wide = unsigned __int128;
    auto cut = [&](far::rank_t r) {
      return static_cast<std::uint64_t>(static_cast<wide>(file.bytes) * r / far::nprocs());
    };
    return {cut(far::rank()), cut(far::rank() + 1)};
  }

  template <class Poll>
  auto polling(text_window& text, Poll& poll) {
    return [this, &text, &poll, from = text.offset()](std::uint64_t records) mutable {
      std::uint64_t now = text.offset();
      if (!poll(now - from, records_ + records)) stop();
      from = now;
      return go_on();
    };
  }

  template <class Sink, class Poll>
  void read_fastq_range(std::size_t index, Sink& sink, Poll& poll) {
    const input_file& file = files_[index];
    auto [begin, end] = range(file);
    try {
      text_source source(file.name, begin, file.bytes);
      text_window text(source, begin);
      if (begin > 0) {  // in the middle of a line, unless one ends just before
        text_source before(file.name, begin - 1, file.bytes);
        char last = 0;
        before.read(&last, 1);
        if (last != '\n') {
          line rest = line_at(text, 0);
          text.skip(rest.next);
        }
        find_fastq_record(text);
      }
      std::uint64_t first = text.offset();
      records_ += scan_fastq(text, end, sink, polling(text, poll));
      seams_.push_back({first, text.offset()});
      seam_files_.push_back(index);
    } catch (const bad_record&) {
      tell(index);
    } catch (const failure&) {
      tell(index);
    }
  }

  template <class Sink, class Poll>
  void read_fasta_range(std::size_t index, Sink& sink, Poll& poll) {
    const input_file& file = files_[index];
    auto [begin, end] = range(file);
    try {
      auto [line_begins, in_header] = place_in_line(file, begin);
      text_source source(file.name, begin, file.bytes);
      text_window text(source, begin);
      if (in_header) {
        text.skip(line_at(text, 0).next);
        line_begins = true;
      }
      records_ += scan_fasta(text, line_begins, end, k_, sink, polling(text, poll));
    } catch (const bad_record&) {
      tell(index);
    } catch (const failure&) {
      tell(index);
    }
  }

  /// Does a line begin at this byte, and if not, is it in a name?
  static std::pair<bool, bool> place_in_line(const input_file& file, std::uint64_t at) {
    constexpr std::uint64_t step = 1 << 16;
    char first = 0;
    std::vector<char> bytes(step);
    for (std::uint64_t end = at; end > 0;) {
      std::uint64_t begin = end > step ? end - step : 0;
      text_source source(file.name, begin, file.bytes);
      for (std::size_t got = 0; got < end - begin;)
        got += source.read(bytes.data() + got, end - begin - got);
      for (std::uint64_t i = end; i > begin; --i) {
        if (bytes[i - 1 - begin] == '\n') return {i == at, i != at && first == '>'};
        first = bytes[i - 1 - begin];
      }
      end = begin;
    }
    return {at == 0, at != 0 && first == '>'};
  }

  using seam = std::pair<std::uint64_t, std::uint64_t>;  ///< first record, end

  /// Each rank's range ends where the next one's begins, unless records are not what they seem.
  void check_seams(const std::vector<std::vector<seam>>& all) {
    for (std::size_t i = 0; i < seams_.size(); ++i)
      for (far::rank_t r = 0; r + 1 < far::nprocs(); ++r) {
        std::uint64_t end = std::max(all[r][i].first, all[r][i].second);
        if (end != all[r + 1][i].first && end < files_[seam_files_[i]].bytes) tell(seam_files_[i]);
      }
  }

  template <class Sink, class Poll>
  void read_streams(std::string& reason, Sink& sink, Poll& poll) {
    std::uint64_t sources = whole_.size() + streams_;
    if (sources == 0) return;
    auto one = [&](const input_file& file) {
      if (reason.empty()) reason = reason_of([&] { read_stream(file, sink, poll); });
      if (!reason.empty()) stop();
      finished_.next();
    };
    if (far::rank() == 0)
      for (const input_file& file : files_)
        if (file.kind == input_kind::stream) one(file);
    for (std::uint64_t i; (i = tickets_.next()) < whole_.size();) one(files_[whole_[i]]);
    // All are taken: help those who still read.
    for (bool last = false;;) {
      auto block = blocks_.try_pop();
      if (block) {
        sink(block->text.data(), block->size);
        continue;
      }
      if (last) break;
      last = finished_.value() == sources;
      if (!poll(0, records_)) stop();
      far::wait_round();
    }
  }

  template <class Sink, class Poll>
  void read_stream(const input_file& file, Sink& sink, Poll& poll) {
    sequence_block block;
    auto give = [&] {
      // Somebody waits for work if more tickets were drawn than there are files.
      bool helped = far::nprocs() > 1 &&
                    (file.kind == input_kind::stream || tickets_.value() > whole_.size());
      if (!helped || !blocks_.try_push(block)) sink(block.text.data(), block.size);
      block.size = 0;
    };
    auto gather = [&](const char* bases, std::size_t n) {
      while (n + 1 > block.room - block.size) {
        if (block.size > 0) {
          give();
          continue;
        }
        std::size_t piece = block.room - 1;  // a long one goes in pieces that overlap
        std::memcpy(block.text.data(), bases, piece);
        block.text[piece] = '\n';
        block.size = piece + 1;
        bases += piece - (k_ - 1);
        n -= piece - (k_ - 1);
        give();
      }
      std::memcpy(block.text.data() + block.size, bases, n);
      block.text[block.size + n] = '\n';
      block.size += n + 1;
    };
    std::uint64_t records = scan_whole(file, k_, gather, [&](std::uint64_t so_far) {
      if (!poll(0, records_ + so_far)) stop();
      return go_on();
    });
    give();
    records_ += records;
  }

  std::vector<input_file>& files_;
  unsigned k_;
  far::circular_queue<sequence_block> blocks_;
  far::counter tickets_, finished_, stop_;
  std::vector<std::uint32_t> whole_;
  std::uint64_t streams_ = 0;
  std::uint64_t records_ = 0;
  std::vector<seam> seams_;
  std::vector<std::size_t> seam_files_;
  std::vector<std::uint64_t> wrongly_cut_;  ///< files
};

}  // namespace genome
