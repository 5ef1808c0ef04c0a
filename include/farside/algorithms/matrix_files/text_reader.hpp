// A matrix in a file of text, read by all members of a team: each parses pieces of it, and hands
// out the entries that it finds there.
#pragma once

#include <farside/algorithms/matrix_files/edge_list.hpp>
#include <farside/algorithms/matrix_files/text_pieces.hpp>
#include <farside/core/collectives.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// A file does not hold a matrix, or not one that can be read. All members throw the same one.
struct matrix_file_error : error {
  using error::error;
};

namespace detail {

/// An entry, and where its line begins in the file: that is the order of entries with the same
/// place.
template <class T>
struct located_entry {
  std::size_t row, column;
  T value;
  std::uint64_t where;

  static bool before(const located_entry& a, const located_entry& b) {
    if (a.row != b.row) return a.row < b.row;
    return a.column != b.column ? a.column < b.column : a.where < b.where;
  }
};

template <matrix_value T>
class text_reader {
 public:
  /// Collective: reads what comes before the entries; of an edge list, all. Throws
  /// matrix_file_error.
  text_reader(const std::string& path, matrix_format format, const matrix_read_options& options,
              const team& over)
      : path_(path), options_(options), over_(over), file_(path, options.gzip) {
    info_.format = format;
    throw_first(file_.problem());
    const std::uint64_t bytes = file_.file_bytes();
    text_problem problem;
    if (broadcast(bytes, 0, over_) != bytes)
      problem = text_problem::with_file(
          text(path_, ": has ", bytes, " bytes here, and another number where rank ",
               over_.world_rank(0), " is: ranks see different files"));
    throw_first(problem);
    if (over_.rank() == 0) problem = read_begin();
    throw_first(problem);
    info_ = broadcast(info_, 0, over_);
    body_ = broadcast(body_, 0, over_);
    weighted_ = broadcast(weighted_, 0, over_);
    if (info_.values == matrix_values::complex && !is_complex<T>)
      throw_first(text_problem::with_file(path_ + ": holds complex numbers, and is to be read as " +
                                          value_name<T>()));
    if (format == matrix_format::edge_list) read_edges();
  }

  const matrix_file_info& info() const { return info_; }

  /// How many entries each member gets, if there are as many as the file says and owners have equally many.
  std::size_t entries_about() const {
    const std::uint64_t both = info_.symmetry == matrix_symmetry::general ? 1 : 2;
    return static_cast<std::size_t>(info_.entries / over_.size() * both);
  }

  /// Collective: what must be done before entries are handed out.
  void prepare() {
    if (info_.array) read_array();
  }

  /// Calls `sink(located_entry)` for entries that this member finds, those that symmetry adds
  /// included. Once, and check() comes behind it: if the file is bad, anything may have been handed
  /// out. Local, so that the sink may send to members that wait for nothing else.
  template <class Sink>
  void entries(Sink&& sink) {
    if (info_.format == matrix_format::edge_list) {
      for (const auto& edge : stored_) {
        sink(edge);
        if (options_.both_directions && edge.row != edge.column)
          sink(located_entry<T>{edge.column, edge.row, edge.value, edge.where});
      }
    } else if (info_.array) {
      for (const auto& e : stored_) hand_out(e, sink);
    } else {
      read_coordinates(sink);
    }
    stored_ = {};
  }

  /// Collective: throws matrix_file_error on all members if the file was bad anywhere.
  void check() {
    if (info_.format == matrix_format::market && !info_.array) {
      market_lines parser(info_);
      check_number([&](std::string_view lines, auto&& each) {
        parser.parse<T>(lines, [&](std::size_t, std::size_t, T, const char* line) { each(line); });
      });
    }
  }

  /// Collective: throws if two entries have one place. `two`: the first such pair of this member's.
  void throw_duplicate(std::pair<const located_entry<T>*, const located_entry<T>*> two) {
    text_problem problem;
    if (const located_entry<T>* again = two.second) {
      std::size_t row = again->row, column = again->column;
      if (info_.symmetry != matrix_symmetry::general && row < column) std::swap(row, column);
      const char* advice =
          "; entries with one place can be added up, or the first one taken, if that is asked for";
      const std::size_t first = info_.format == matrix_format::market ? 1 : options_.first_vertex;
      problem = {again->where,
                 text("has the place of row ", row + first, " and column ", column + first,
                      " again, which line ", file_.line_number(two.first->where), " has", advice)};
    }
    throw_first(problem);
  }

  /// Collective: throws if any member has a problem; of several, the first one in the file.
  void throw_first(const text_problem& mine) {
    const std::uint64_t first = all_reduce(mine.at, minimum{}, over_);
    if (first == text_problem::none) return;
    const rank_t teller =
        all_reduce(mine.at == first ? over_.rank() : over_.size(), minimum{}, over_);
    std::string words = mine.why;
    if (over_.rank() == teller && !mine.whole)
      words = text(path_, ": line ", file_.line_number(first), " ", mine.why);
    throw matrix_file_error("farside: " + broadcast(words, teller, over_));
  }

 private:
  struct piece_count {
    std::uint64_t piece, entries;
  };

  /// Runs `parse`, which throws bad_text within `lines`.
  template <class Parse>
  static text_problem problem_in(std::string_view lines, std::uint64_t offset, Parse&& parse) {
    try {
      parse();
      return {};
    } catch (const bad_text& bad) {
      // To the beginning of its line, which is where it stands.
      auto at = static_cast<std::size_t>(bad.at - lines.data());
      while (at > 0 && lines[at - 1] != '\n') --at;
      return {offset + at, bad.why};
    }
  }

  /// Reads up to the entries; one member alone.
  text_problem read_begin() {
    text_problem result;
    std::string failed = problem_of([&] {
      auto stream = file_.open();
      text_window window(*stream);
      if (!window.reach(1)) {
        result = text_problem::with_file(path_ + ": is empty");
        return std::string();
      }
      bool banner = info_.format == matrix_format::market;
      for (std::uint64_t at = 0; window.reach(at + 1);) {
        auto next = window.line_begin(at + 1);
        if (!next) {
          result = {at, text("is longer than ", longest_line, " characters")};
          return std::string();
        }
        std::string line(window.at(at), static_cast<std::size_t>(*next - at));
        if (line.back() != '\n') line += '\n';
        bool done = false;
        result = problem_in(line, at, [&] {
          done = info_.format == matrix_format::market ? market_line(line, banner, *next)
                                                       : edge_line(line, at);
        });
        if (done || result) return std::string();
        at = *next;
        window.forget(at);
      }
      if (info_.format == matrix_format::market)
        result = {text_problem::at_end, "is the last one: there is no line of sizes"};
      body_ = window.end();
      return std::string();
    });
    return failed.empty() ? result : file_.with_name(failed);
  }

  /// True at the last line before entries, which begin at `next`.
  bool market_line(std::string_view line, bool& banner, std::uint64_t next) {
    if (banner) {
      info_ = market_banner(line.substr(0, line.size() - 1));
      banner = false;
      return false;
    }
    text_cursor in(line.data(), line.data() + line.size());
    in.skip_blanks();
    if (in.at_line_end() || *in.at() == '%') return false;
    body_ = next;
    const std::uint64_t most = file_.most_bytes();
    market_sizes(in, info_, most > next ? most - next : 0, options_.duplicates);
    return true;
  }

  /// True at the first edge.
  bool edge_line(std::string_view line, std::uint64_t at) {
    if (at == 0 && line.starts_with("%%"))
      throw bad_text{line.data(), "begins with %%: it is no edge list, but a Matrix Market file"};
    std::size_t i = 0;
    while (i < line.size() && text_cursor::blank(line[i])) ++i;
    if (line[i] == '\n' || edge_lines::is_comment(line[i])) return false;
    body_ = at;
    weighted_ = edge_lines::has_weight(line);
    info_.values = weighted_ ? matrix_values::real : matrix_values::pattern;
    return true;
  }

  void read_edges() {
    edge_lines parser(options_, weighted_);
    std::size_t most = 0;
    text_problem problem = visit([&](std::uint64_t, std::uint64_t offset, std::string_view lines) {
      return problem_in(lines, offset, [&] {
        parser.parse<T>(lines, [&](std::size_t u, std::size_t v, T weight, const char* line) {
          most = std::max({most, u + 1, v + 1});
          stored_.push_back(
              {u, v, weight, offset + static_cast<std::uint64_t>(line - lines.data())});
        });
      });
    });
    throw_first(problem);
    most = all_reduce(most, maximum{}, over_);
    info_.entries = all_reduce(stored_.size(), std::plus<>(), over_);
    const std::size_t n = options_.vertices != 0 ? options_.vertices : most;
    info_.shape = {n, n};
    if (options_.both_directions) info_.symmetry = matrix_symmetry::symmetric;
  }

  template <class Sink>
  void read_coordinates(Sink& sink) {
    market_lines parser(info_);
    problem_ = visit([&](std::uint64_t piece, std::uint64_t offset, std::string_view lines) {
      counts_.push_back({piece, 0});
      return problem_in(lines, offset, [&] {
        parser.parse<T>(lines, [&](std::size_t row, std::size_t column, T value, const char* line) {
          ++counts_.back().entries;
          auto where = offset + static_cast<std::uint64_t>(line - lines.data());
          hand_out({row, column, value, where}, sink);
        });
      });
    });
  }

  /// Where a value lies depends on how many there are before it, so all are parsed first.
  void read_array() {
    market_lines parser(info_);
    problem_ = visit([&](std::uint64_t piece, std::uint64_t offset, std::string_view lines) {
      counts_.push_back({piece, 0});
      return problem_in(lines, offset, [&] {
        parser.parse_array<T>(lines, [&](T value, const char* line) {
          ++counts_.back().entries;
          stored_.push_back(
              {0, 0, value, offset + static_cast<std::uint64_t>(line - lines.data())});
        });
      });
    });
    auto all = check_number([&](std::string_view lines, auto&& each) {
      parser.parse_array<T>(lines, [&](T, const char* line) { each(line); });
    });
    text_problem problem;
    std::uint64_t before = 0;
    auto mine = counts_.begin();
    auto next = stored_.begin(), kept = next;
    for (const piece_count& piece : all) {
      if (mine != counts_.end() && mine->piece == piece.piece) {
        array_places places(info_, before);
        for (std::uint64_t i = 0; i < mine->entries && !problem; ++i, ++next) {
          const matrix_index at = places.next();
          next->row = at.row, next->column = at.column;
          problem = problem_of_value(*next, parser);
          if (next->value != T{}) *kept++ = *next;
        }
        ++mine;
      }
      before += piece.entries;
    }
    throw_first(problem);
    stored_.erase(kept, stored_.end());
  }

  static text_problem problem_of_value(const located_entry<T>& e, const market_lines& parser) {
    try {
      parser.check_value(text_cursor(nullptr, nullptr), e.row, e.column, e.value);
      return {};
    } catch (const bad_text& bad) {
      return {e.where, bad.why};
    }
  }

  template <class Sink>
  void hand_out(const located_entry<T>& e, Sink& sink) const {
    sink(e);
    if (info_.symmetry != matrix_symmetry::general && e.row != e.column)
      sink(located_entry<T>{e.column, e.row, mirrored(e.value, info_.symmetry), e.where});
  }

  /// Collective: throws if there is a problem, or another number of entries than the file says; of
  /// several problems, the first. Returns the numbers of entries of all pieces, in their order.
  template <class EachEntry>
  std::vector<piece_count> check_number(EachEntry&& each_entry) {
    text_problem problem = problem_;
    std::vector<piece_count> all;
    for (const auto& some : all_gather(counts_, over_))
      all.insert(all.end(), some.begin(), some.end());
    std::sort(all.begin(), all.end(),
              [](const piece_count& a, const piece_count& b) { return a.piece < b.piece; });
    // A member with a problem has not counted what lies behind it, where nothing is the first
    // problem.
    std::uint64_t before = 0;
    for (const piece_count& piece : all) {
      if (before <= info_.entries && before + piece.entries > info_.entries) {
        text_problem found = find_entry(piece.piece, info_.entries - before, each_entry);
        if (found && found.at < problem.at) problem = std::move(found);
      }
      before += piece.entries;
    }
    if (before < info_.entries && !problem)  // one of another member comes before the end
      problem = {text_problem::at_end,
                 text("is the last one: the file has ", before, " of the ", info_.entries,
                      info_.array ? " values" : " entries", " that its line of sizes says")};
    throw_first(problem);
    return all;
  }

  /// Where the entry with this number in its piece is, by the member that has the piece.
  template <class EachEntry>
  text_problem find_entry(std::uint64_t wanted, std::uint64_t number, EachEntry&& each_entry) {
    if (wanted % over_.size() != over_.rank()) return {};
    text_problem found;
    visit([&](std::uint64_t piece, std::uint64_t offset, std::string_view lines) -> text_problem {
      if (piece != wanted) return {};
      text_problem stop = problem_in(lines, offset, [&] {
        each_entry(lines, [&](const char* line) {
          if (number-- == 0)
            throw bad_text{
                line, text("is one more than the ", info_.entries,
                           info_.array ? " values" : " entries", " that the line of sizes says")};
        });
      });
      return found = stop;
    });
    return found;
  }

  template <class Visit>
  text_problem visit(Visit&& each) {
    auto counted = [&](std::uint64_t piece, std::uint64_t offset, std::string_view lines) {
      if (options_.progress) options_.progress(lines.size());
      return each(piece, offset, lines);
    };
    return file_.visit(body_, options_.piece_bytes, over_.rank(), over_.size(), counted);
  }

  std::string path_;
  matrix_read_options options_;
  team over_;
  text_file file_;
  matrix_file_info info_{};
  std::uint64_t body_ = 0;
  bool weighted_ = false;
  std::vector<located_entry<T>> stored_;  ///< what was parsed, but not yet handed out
  std::vector<piece_count> counts_;       ///< of this member's pieces
  text_problem problem_;                  ///< of this member's pieces
};

/// Collective: what a file of text says before its entries; of an edge list, all is read.
inline matrix_file_info text_header(const std::string& path, matrix_format format,
                                    const matrix_read_options& options, const team& over) {
  return text_reader<std::complex<double>>(path, format, options, over).info();
}

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND
