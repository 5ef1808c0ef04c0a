// Writes matrices as text: each member its entries, where those of the members before it end.
#pragma once

#include <farside/algorithms/matrix_files/binary_writer.hpp>
#include <farside/algorithms/matrix_generators/values.hpp>
#include <farside/containers/matrix_view.hpp>

#include <charconv>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// Makes a member of a gzip file of some text; several, one behind another, are a file. The library
/// itself cannot do so; programs that can hand it such a function.
using gzip_packer = std::function<std::string(std::string_view)>;

struct matrix_write_options {
  /// Other than general: only the lower triangle is written. The matrix must be so.
  matrix_symmetry symmetry = matrix_symmetry::general;
  gzip_packer gzip{};            ///< for names that end in .gz
  std::size_t first_vertex = 0;  ///< of edge lists: the number of the first vertex
  std::string comment{};         ///< behind the header; may have several lines
};

namespace detail {

inline constexpr std::size_t longest_value = 64;

/// Writes a value so that it is read again as the same one, with as few digits as that takes: at
/// most longest_value characters. Returns where they end.
template <matrix_value T>
char* write_value(char* at, const T& value) {
  if constexpr (is_complex<T>) {
    at = write_value(at, value.real());
    *at++ = ' ';
    return write_value(at, value.imag());
  } else if constexpr (std::is_same_v<T, bool>) {
    *at++ = value ? '1' : '0';
    return at;
  } else {
    return std::to_chars(at, at + longest_value / 2, value).ptr;
  }
}

/// Text that is made piece by piece.
class text_pieces_out {
 public:
  explicit text_pieces_out(gzip_packer pack) : pack_(std::move(pack)) {}

  template <matrix_value T>
  void value(const T& value) {
    reserve(longest_value);
    char* begin = now_.data() + used_;
    used_ += static_cast<std::size_t>(write_value(begin, value) - begin);
  }
  void letter(char c) {
    reserve(1);
    now_[used_++] = c;
  }
  void words(std::string_view some) {
    reserve(some.size());
    some.copy(now_.data() + used_, some.size());
    used_ += some.size();
  }

  /// What has been made, compressed if that is asked for.
  const std::vector<std::string>& finish() {
    end_piece();
    now_ = {};
    return done_;
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void reserve(std::size_t n) {
    constexpr std::size_t piece = std::size_t{1} << 20;
    if (used_ + n <= now_.size()) return;
    end_piece();
    now_.resize(std::max(piece, n));
  }
  void end_piece() {
    if (used_ != 0) {
      done_.push_back(pack_ ? pack_(std::string_view(now_.data(), used_)) : now_.substr(0, used_));
      bytes_ += done_.back().size();
    }
    used_ = 0;
  }

  gzip_packer pack_;
  std::string now_;
  std::size_t used_ = 0;
  std::vector<std::string> done_;
  std::uint64_t bytes_ = 0;
};

}  // namespace detail

/// Collective: whether the entries of all members are those of a matrix of this symmetry. A sum
/// over hashes of all entries equals that over the entries of the transpose; where it is not so,
/// both are the same by chance in one of 2^64 cases. One all_reduce, and a pass over the entries.
template <detail::matrix_value T>
bool has_symmetry(std::span<const triplet<T>> mine, const matrix_symmetry symmetry,
                  const team& over) {
  std::uint64_t difference = 0;
  auto hash_of_entry = [](std::size_t row, std::size_t column, const T& value) {
    std::uint64_t h = detail::hash_append(detail::hash_append(row, column), 0);
    if constexpr (is_complex<T>)
      return detail::hash_append(detail::hash_append(h, detail::hash_of(value.real())),
                                 detail::hash_of(value.imag()));
    else
      return detail::hash_append(h, detail::hash_of(value));
  };
  for (const triplet<T>& e : mine) {
    difference += hash_of_entry(e.row, e.column, e.value);
    difference -= hash_of_entry(e.column, e.row, detail::mirrored(e.value, symmetry));
  }
  return all_reduce(difference, std::plus<>(), over) == 0;
}

namespace detail {

/// The text before the entries.
template <matrix_value T>
std::string market_begin(const matrix_shape& shape, std::uint64_t entries, bool array, bool pattern,
                         const matrix_write_options& options) {
  std::string begin = text("%%MatrixMarket matrix ", array ? "array " : "coordinate ",
                           pattern                   ? "pattern"
                           : std::is_same_v<T, bool> ? "integer"
                                                     : to_text(values_of<T>()),
                           " ", to_text(options.symmetry), "\n");
  std::string line;
  for (char c : options.comment + "\n") {
    if (c != '\n') {
      line += c;
    } else if (!line.empty()) {
      begin += "% " + line + "\n";
      line.clear();
    }
  }
  begin += text(shape.rows, " ", shape.columns);
  return begin + (array ? "\n" : text(" ", entries, "\n"));
}

/// Collective. Members give their entries, in any order and of any places, each place once.
template <matrix_value T>
void write_text(const std::string& path, matrix_format format, const matrix_shape& shape,
                std::span<const triplet<T>> mine, const matrix_write_options& options,
                const team& over) {
  const bool packed = path.ends_with(".gz"), market = format == matrix_format::market;
  if (packed && !options.gzip)
    throw_together(text("cannot write ", path,
                        ": this program does not compress by gzip; set "
                        "matrix_write_options::gzip"),
                   over);
  const matrix_symmetry symmetry = options.symmetry;
  if (symmetry != matrix_symmetry::general && !has_symmetry(mine, symmetry, over))
    throw_together(text("cannot write ", path, " as ", to_text(symmetry),
                        ": the matrix is not so. Write it as general"),
                   over);
  bool pattern = false;
  if constexpr (std::is_same_v<T, bool>) {
    int all = std::all_of(mine.begin(), mine.end(), [](const auto& e) { return e.value; });
    pattern = all_reduce(all, minimum{}, over) == 1;
  }
  auto written = [&](const triplet<T>& e) {
    return symmetry == matrix_symmetry::general || e.row > e.column ||
           (e.row == e.column && symmetry != matrix_symmetry::skew_symmetric);
  };
  draft_file file(path, over);  // before the work: where it cannot be, that is said at once
  const std::uint64_t entries =
      all_reduce(static_cast<std::uint64_t>(std::count_if(mine.begin(), mine.end(), written)),
                 std::plus<>(), over);
  text_pieces_out out(packed ? options.gzip : gzip_packer());
  if (over.rank() == 0 && market)
    out.words(market_begin<T>(shape, entries, false, pattern, options));
  if (over.rank() == 0 && !market)
    out.words(text("# ", std::max(shape.rows, shape.columns), " vertices, ", entries, " edges\n"));
  const std::size_t first = market ? 1 : options.first_vertex;
  throw_together(problem_of([&] {
                   for (const triplet<T>& e : mine) {
                     if (!written(e)) continue;
                     out.value(e.row + first);
                     out.letter(' ');
                     out.value(e.column + first);
                     if (!pattern) out.letter(' '), out.value(e.value);
                     out.letter('\n');
                   }
                   out.finish();
                   return std::string();
                 }),
                 over);
  std::uint64_t at = exclusive_scan(out.bytes(), std::uint64_t{0}, std::plus<>(), over);
  file.write([&](open_file& to) {
    for (const std::string& piece : out.finish()) {
      to.write_at(at, piece.data(), piece.size());
      at += piece.size();
    }
  });
  file.publish();
}

/// Collective: Matrix Market's array form. Members give rectangles that make up the matrix. All
/// values have the same width, so that their places in the file are known; a reader skips the
/// blanks.
template <matrix_value T>
void write_array(const std::string& path, const matrix_shape& shape, const matrix_part& part,
                 matrix_view<const T> mine, const matrix_write_options& options, const team& over) {
  constexpr std::size_t width = is_complex<T> ? 50 : 25;  // -2.2250738585072014e-308 has 24
  const std::string begin = market_begin<T>(shape, 0, true, false, options);
  draft_file file(path, over);
  file.write([&](open_file& to) {
    if (over.rank() == 0) to.write_at(0, begin.data(), begin.size());
    const std::size_t rows = part.rows.size();
    std::string column(rows * width, ' ');
    for (std::size_t c = 0; c < part.columns.size() && rows != 0; ++c) {
      for (std::size_t r = 0; r < rows; ++r) {
        char digits[longest_value];
        const auto n = static_cast<std::size_t>(write_value(digits, mine[{r, c}]) - digits);
        std::fill_n(&column[r * width], width - 1 - n, ' ');
        std::copy_n(digits, n, &column[(r + 1) * width - 1 - n]);
        column[(r + 1) * width - 1] = '\n';
      }
      to.write_at(begin.size() + width * ((part.columns.first + c) * shape.rows + part.rows.first),
                  column.data(), column.size());
    }
  });
  file.publish();
}

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND
