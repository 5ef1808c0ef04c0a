// Matrix Market files, as NIST defines them: header and lines. Local.
//
//   %%MatrixMarket matrix coordinate real general
//   % comments
//   3 4 2          rows, columns, entries
//   1 1 0.5        row, column, value; counted from 1
//   3 4 -1e3
//
// Instead of coordinate: array; of real: integer, complex, pattern; of general: symmetric,
// skew-symmetric, hermitian.
//
// Blanks at either end of a line, blank lines, comments between entries, carriage returns before
// newlines and letters of either case in the header are accepted; nothing else that the format does
// not have.
#pragma once

#include <farside/algorithms/matrix_files/text_fields.hpp>
#include <farside/containers/csr.hpp>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// No line of a file may be longer.
inline constexpr std::size_t longest_line = std::size_t{1} << 20;

/// The first line, without its newline.
inline matrix_file_info market_banner(std::string_view line) {
  auto refuse = [&](const auto&... parts) { throw bad_text{line.data(), text(parts...)}; };
  std::vector<std::string> words;
  for (std::size_t i = 0; i < line.size();) {
    if (text_cursor::blank(line[i])) {
      ++i;
      continue;
    }
    std::string word;
    for (; i < line.size() && !text_cursor::blank(line[i]); ++i)
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(line[i])));
    words.push_back(std::move(word));
    if (words.size() > 5) break;
  }
  if (words.empty() || words[0] != "%%matrixmarket")
    refuse("does not begin with %%MatrixMarket: it is no Matrix Market file");
  if (words.size() != 5)
    refuse("has ", words.size() < 5 ? "fewer" : "more",
           " than five words; a header is %%MatrixMarket matrix coordinate|array "
           "real|integer|complex|pattern general|symmetric|skew-symmetric|hermitian");
  auto shown = [&](std::size_t i) {
    std::string ended = words[i] + "\n";
    return text_cursor(ended.data(), ended.data() + ended.size()).field();
  };
  auto one_of = [&](std::size_t i, std::initializer_list<std::string_view> names) {
    auto found = std::find(names.begin(), names.end(), words[i]);
    if (found == names.end()) {
      std::string known;
      for (std::string_view name : names) known += (known.empty() ? "" : ", ") + std::string(name);
      refuse("has the word ", shown(i), " in its header, where one of these is known: ", known);
    }
    return static_cast<std::size_t>(found - names.begin());
  };
  one_of(1, {"matrix"});
  matrix_file_info info;
  info.array = one_of(2, {"coordinate", "array"}) == 1;
  info.values =
      std::array{matrix_values::pattern, matrix_values::integer, matrix_values::real,
                 matrix_values::complex, matrix_values::real,    matrix_values::integer}[one_of(
          3, {"pattern", "integer", "real", "complex", "double", "unsigned-integer"})];
  info.symmetry = static_cast<matrix_symmetry>(
      one_of(4, {"general", "symmetric", "skew-symmetric", "hermitian"}));
  if (info.array && info.values == matrix_values::pattern)
    refuse("says that it is an array of a pattern, which would have no values at all");
  if (info.symmetry == matrix_symmetry::hermitian && info.values != matrix_values::complex)
    refuse("says hermitian, which only complex matrices are, and not ", words[3]);
  if (info.symmetry == matrix_symmetry::skew_symmetric && info.values == matrix_values::pattern)
    refuse("says skew-symmetric, which a pattern cannot be: it has no values to negate");
  return info;
}

/// How many entries a file of this kind should have: for arrays, by its shape.
inline std::uint64_t array_entries(const matrix_file_info& info) {
  const std::uint64_t n = info.shape.rows;
  switch (info.symmetry) {
    case matrix_symmetry::general:
      return n * info.shape.columns;
    case matrix_symmetry::skew_symmetric:
      return n == 0 ? 0 : n % 2 == 0 ? n / 2 * (n - 1) : n * ((n - 1) / 2);
    default:
      return n % 2 == 0 ? n / 2 * (n + 1) : n * ((n + 1) / 2);
  }
}

/// The line of sizes, with `bytes_left` behind it.
inline void market_sizes(text_cursor line, matrix_file_info& info, std::uint64_t bytes_left,
                         duplicate_entries duplicates) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  const text_cursor begin = line;
  auto& shape = info.shape;
  shape.rows = line.count("number of rows", 0, most);
  shape.columns = line.count("number of columns", 0, most);
  if (!info.array) info.entries = line.count("number of entries", 0, most);
  line.end_line(info.array ? "rows and columns" : "rows, columns and entries");
  if (info.symmetry != matrix_symmetry::general && shape.rows != shape.columns)
    begin.refuse("says ", shape, ", which is not square, but the header says ",
                 to_text(info.symmetry));
  __extension__ using wide = unsigned __int128;
  const wide places = static_cast<wide>(shape.rows) * shape.columns;
  if (info.array) {
    if (places > most) begin.refuse("says ", shape, ": so many values are in no file");
    info.entries = array_entries(info);
  }
  if (!info.array && info.entries > places && duplicates == duplicate_entries::refuse)
    begin.refuse("says ", info.entries, " entries, which is more than ", shape, " has places");
  // "1 1\n", "1 1 0\n", "1 1 0 0\n"; "0\n", "0 0\n"; the last newline may be missing.
  const std::uint64_t number = info.array ? 0 : 4;
  const std::uint64_t shortest = info.values == matrix_values::pattern   ? 4
                                 : info.values == matrix_values::complex ? number + 4
                                                                         : number + 2;
  // A few too many are found out where the file ends, with better words.
  if (info.entries > (bytes_left + 1) / shortest + 1000)
    begin.refuse("says ", info.entries, " entries, but the file has room for ",
                 (bytes_left + 1) / shortest, " at most behind it");
}

/// Lines of entries, of any part of a file.
class market_lines {
 public:
  explicit market_lines(const matrix_file_info& info) : info_(info) {}

  /// Calls `sink(row, column, value, line)` for each entry of a coordinate file, as it stands
  /// there, `line` being where its line begins. `lines` are whole ones, with a newline at the end.
  template <matrix_value T, class Sink>
  void parse(std::string_view lines, Sink&& sink) const {
    for_each_line(lines, [&](text_cursor& in, const char* begin) {
      std::size_t row = in.count("row", 1, info_.shape.rows) - 1;
      std::size_t column = in.count("column", 1, info_.shape.columns) - 1;
      check_place(in, row, column);
      T value{1};
      if (info_.values != matrix_values::pattern) {
        value = in.value<T>(info_.values);
        check_value(in, row, column, value);
      }
      in.end_line(info_.values == matrix_values::pattern
                      ? "row and column, and the header says pattern: there are no values"
                      : "row, column and value");
      sink(row, column, value, begin);
    });
  }

  /// Calls `sink(value, line)` for each value of an array file.
  template <matrix_value T, class Sink>
  void parse_array(std::string_view lines, Sink&& sink) const {
    for_each_line(lines, [&](text_cursor& in, const char* begin) {
      T value = in.value<T>(info_.values);
      in.end_line("its value; an array has one value in a line");
      sink(value, begin);
    });
  }

  /// Why an entry cannot be where it is, because of the symmetry.
  void check_place(const text_cursor& in, std::size_t row, std::size_t column) const {
    if (info_.symmetry == matrix_symmetry::general || row > column) return;
    if (row < column)
      in.refuse("has an entry above the diagonal, in row ", row + 1, " and column ", column + 1,
                "; a file that says ", to_text(info_.symmetry), " has the lower triangle only");
    if (info_.symmetry == matrix_symmetry::skew_symmetric)
      in.refuse("has an entry on the diagonal, in row ", row + 1,
                "; in a skew-symmetric matrix it is zero, and not in the file");
  }

  template <matrix_value T>
  void check_value(const text_cursor& in, std::size_t row, std::size_t column,
                   const T& value) const {
    if constexpr (is_complex<T>) {
      if (info_.symmetry == matrix_symmetry::hermitian && row == column && value.imag() != 0)
        in.refuse("has an imaginary part on the diagonal, in row ", row + 1,
                  "; a hermitian matrix is real there");
    } else if constexpr (std::is_integral_v<T>) {
      if (info_.symmetry == matrix_symmetry::skew_symmetric && !can_be_negated(value))
        in.refuse("has a value whose negative, for the other triangle, does not fit ",
                  value_name<T>());
    }
  }

 private:
  template <class T>
  static bool can_be_negated(const T& value) {
    if (std::is_same_v<T, bool>) return true;
    return std::is_signed_v<T> ? value != std::numeric_limits<T>::min() : value == 0;
  }

  template <class Line>
  void for_each_line(std::string_view lines, Line&& line) const {
    const char* end = lines.data() + lines.size();
    text_cursor in(lines.data(), end);
    while (in.at() != end) {
      const char* begin = in.at();
      in.skip_blanks();
      if (*in.at() == '%')
        in = text_cursor(
            static_cast<const char*>(std::memchr(in.at(), '\n', left(in.at(), end))) + 1, end);
      else if (in.at_line_end())
        in = text_cursor(in.at() + 1, end);
      else
        line(in, begin);
      if (left(begin, in.at()) > longest_line + 1)
        throw bad_text{begin, text("is longer than ", longest_line, " characters")};
    }
  }
  static std::size_t left(const char* from, const char* end) {
    return static_cast<std::size_t>(end - from);
  }

  matrix_file_info info_;
};

/// An entry on the other side of the diagonal.
template <matrix_value T>
T mirrored(const T& value, matrix_symmetry symmetry) {
  if constexpr (is_complex<T>) {
    if (symmetry == matrix_symmetry::hermitian) return std::conj(value);
  }
  if constexpr (!std::is_same_v<T, bool>) {
    if (symmetry == matrix_symmetry::skew_symmetric) return static_cast<T>(-value);
  }
  return value;
}

/// Where the entries of an array of this kind lie: column by column, of symmetric ones from the
/// diagonal down, of skew-symmetric ones below it.
class array_places {
 public:
  /// Begins with entry number `first`.
  array_places(const matrix_file_info& info, std::uint64_t first)
      : rows_(info.shape.rows), symmetry_(info.symmetry) {
    if (symmetry_ == matrix_symmetry::general) {
      column_ = rows_ == 0 ? 0 : first / rows_;
      row_ = rows_ == 0 ? 0 : first % rows_;
      return;
    }
    // The last column that begins at `first` or before.
    std::uint64_t low = 0, high = rows_ == 0 ? 0 : rows_ - 1;
    while (low < high) {
      std::uint64_t middle = low + (high - low + 1) / 2;
      if (begin_of(middle) <= first)
        low = middle;
      else
        high = middle - 1;
    }
    column_ = low;
    row_ = first_row(low) + (first - begin_of(low));
  }

  matrix_index next() {
    if (row_ >= rows_) {
      ++column_;
      row_ = symmetry_ == matrix_symmetry::general ? 0 : first_row(column_);
    }
    return {row_++, column_};
  }

 private:
  std::size_t first_row(std::size_t column) const {
    return column + (symmetry_ == matrix_symmetry::skew_symmetric ? 1 : 0);
  }
  /// Entries in the columns before.
  std::uint64_t begin_of(std::uint64_t column) const {
    __extension__ using wide = unsigned __int128;
    const std::uint64_t longest = rows_ - (symmetry_ == matrix_symmetry::skew_symmetric ? 1 : 0);
    return column == 0 ? 0
                       : static_cast<std::uint64_t>(static_cast<wide>(column) * longest -
                                                    static_cast<wide>(column) * (column - 1) / 2);
  }

  std::size_t rows_, row_ = 0, column_ = 0;
  matrix_symmetry symmetry_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
