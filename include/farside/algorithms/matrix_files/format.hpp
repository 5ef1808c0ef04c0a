// What files of matrices say of their matrix, and what is asked of those who read and write them.
#pragma once

#include <farside/containers/matrix_shape.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND {

enum class matrix_format : std::uint8_t {
  market,     ///< Matrix Market: .mtx, .mtx.gz
  edge_list,  ///< lines of two vertices, and perhaps a weight: .el, .txt, .tsv, .edges
  binary,     ///< farside's own, which is mapped: .fsm
};

/// What the values of a file are. A pattern has none: each of its entries stands for 1.
enum class matrix_values : std::uint8_t { pattern, integer, real, complex };

enum class matrix_symmetry : std::uint8_t { general, symmetric, skew_symmetric, hermitian };

/// What becomes of entries with the same place.
enum class duplicate_entries : std::uint8_t {
  refuse,  ///< the file is refused
  sum,     ///< they are added up, in the order of the file
  first,   ///< the first one in the file counts
};

/// What a file says of its matrix.
struct matrix_file_info {
  matrix_format format = matrix_format::market;
  matrix_values values = matrix_values::real;
  matrix_symmetry symmetry = matrix_symmetry::general;
  bool array = false;  ///< Matrix Market's array form: a value for each place
  matrix_shape shape;
  std::uint64_t entries = 0;  ///< in the file; of a symmetric matrix, those that are stored
};

/// A text that can be read from its beginning on only, such as one that is inflated.
class byte_stream {
 public:
  /// Local; no communication.
  virtual ~byte_stream() = default;
  /// At most `n` bytes; 0 at the end only. Throws what says, in what(), why it cannot. Local;
  /// no communication.
  virtual std::size_t read(char* to, std::size_t n) = 0;
};

/// Opens a file that is compressed by gzip. The library itself cannot inflate; programs that can
/// hand it such a function. Each rank calls it: all of them inflate the whole file, each for
/// itself.
using gzip_opener = std::function<std::unique_ptr<byte_stream>(const std::string& path)>;

/// What is told how far a rank is.
using progress_function = std::function<void(std::uint64_t bytes)>;

struct matrix_read_options {
  duplicate_entries duplicates = duplicate_entries::refuse;
  gzip_opener gzip{};

  // Edge lists say little of themselves.
  std::size_t first_vertex = 0;  ///< the number that the first vertex has: 0 or 1
  std::size_t vertices = 0;      ///< how many there are; 0: as many as the largest number needs
  bool both_directions = false;  ///< an edge stands for its reverse, too: the matrix is symmetric

  /// Called now and then with how many bytes of text this rank has parsed since. May be empty.
  progress_function progress{};

  /// How many bytes of text a rank takes at a time; 0: by the size of the file. For tests.
  std::size_t piece_bytes = 0;
};

/// As in Matrix Market files and in messages. Local; no communication.
inline std::string to_text(matrix_values values) {
  constexpr const char* names[] = {"pattern", "integer", "real", "complex"};
  return names[static_cast<std::size_t>(values)];
}
inline std::string to_text(matrix_symmetry symmetry) {
  constexpr const char* names[] = {"general", "symmetric", "skew-symmetric", "hermitian"};
  return names[static_cast<std::size_t>(symmetry)];
}

namespace detail {

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

template <class T>
concept matrix_value = std::is_arithmetic_v<T> || is_complex<T>;

/// What a file of values of this type holds.
template <matrix_value T>
constexpr matrix_values values_of() {
  if constexpr (std::is_same_v<T, bool>)
    return matrix_values::pattern;
  else if constexpr (std::is_integral_v<T>)
    return matrix_values::integer;
  else if constexpr (is_complex<T>)
    return matrix_values::complex;
  else
    return matrix_values::real;
}

/// As in messages: "int32", "float64", "complex128".
template <matrix_value T>
std::string value_name() {
  const std::string bits = std::to_string(8 * sizeof(T));
  if constexpr (std::is_same_v<T, bool>)
    return "bool";
  else if constexpr (std::is_integral_v<T>)
    return (std::is_signed_v<T> ? "int" : "uint") + bits;
  else if constexpr (is_complex<T>)
    return "complex" + bits;
  else
    return "float" + bits;
}

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND
