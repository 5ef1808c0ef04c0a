// Edge lists, as SNAP and others have them: a line for each edge, "u v" or "u v weight", with
// comments that begin with # or %. Local.
#pragma once

#include <farside/algorithms/matrix_files/market.hpp>

#include <cstring>
#include <string_view>

namespace far::inline FARSIDE_BACKEND::detail {

/// Lines of edges, of any part of a file.
class edge_lines {
 public:
  explicit edge_lines(const matrix_read_options& options, bool weighted)
      : options_(options), weighted_(weighted) {}

  /// Calls `sink(u, v, weight, line)` for each edge; u and v are counted from 0, and `line` is
  /// where its line begins. `lines` are whole ones, with a newline at the end.
  template <matrix_value T, class Sink>
  void parse(std::string_view lines, Sink&& sink) const {
    const char* end = lines.data() + lines.size();
    text_cursor in(lines.data(), end);
    while (in.at() != end) {
      const char* begin = in.at();
      in.skip_blanks();
      if (is_comment(*in.at()) || in.at_line_end()) {
        auto left = static_cast<std::size_t>(end - in.at());
        in = text_cursor(static_cast<const char*>(std::memchr(in.at(), '\n', left)) + 1, end);
      } else {
        std::size_t u = vertex(in), v = vertex(in);
        T weight{1};
        if (weighted_) weight = in.value<T>(is_complex<T> ? values_of<T>() : weight_kind<T>());
        in.end_line(weighted_ ? "two vertices and a weight"
                              : "two vertices; the first edge of the file has no weight");
        sink(u, v, weight, begin);
      }
      if (static_cast<std::size_t>(in.at() - begin) > longest_line + 1)
        throw bad_text{begin, text("is longer than ", longest_line, " characters")};
    }
  }

  static bool is_comment(char c) { return c == '#' || c == '%'; }

  /// Whether there is something behind the two vertices of this line, which ends with a newline.
  static bool has_weight(std::string_view line) {
    int fields = 0;
    for (std::size_t i = 0; fields < 3; ++fields) {
      while (text_cursor::blank(line[i])) ++i;
      if (line[i] == '\n') break;
      while (!text_cursor::blank(line[i]) && line[i] != '\n') ++i;
    }
    return fields == 3;
  }

 private:
  template <class T>
  static constexpr matrix_values weight_kind() {
    return std::is_integral_v<T> && !std::is_same_v<T, bool> ? matrix_values::integer
                                                             : matrix_values::real;
  }

  std::size_t vertex(text_cursor& in) const {
    constexpr std::uint64_t no_limit = std::uint64_t{1} << 62;
    const std::uint64_t most =
        options_.vertices != 0 ? options_.vertices - 1 + options_.first_vertex : no_limit;
    return in.count("vertex", options_.first_vertex, most) - options_.first_vertex;
  }

  matrix_read_options options_;
  bool weighted_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
