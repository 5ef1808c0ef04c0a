// Matrices whose entries have numbers: where entry e lies depends on e and the seed alone. Which of
// them fall in a part of the matrix is not known beforehand: a rank either makes all and keeps its
// own, or makes its share of the numbers and sends them to their owners (generate).
//
// Each has shape(); entries(), how many there are; index(e); values; and whether two of them may
// share a place.
#pragma once

#include <farside/algorithms/matrix_generators/values.hpp>
#include <farside/base/error.hpp>
#include <farside/containers/matrix_shape.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace far::inline FARSIDE_BACKEND {

/// R-MAT (Chakrabarti, Zhan, Faloutsos, 2004): 2^scale vertices and edge_factor edges for each. An
/// edge chooses one of four quarters of the matrix with probabilities a, b (upper right), c (lower
/// left) and d = 1 - a - b - c, and so on within it, `scale` times. Edges that are the same edge
/// are one entry.
class rmat {
 public:
  struct options {
    unsigned scale = 10;
    double edge_factor = 16;
    double a = 0.57, b = 0.19, c = 0.19;
    std::uint64_t seed = 1;
    bool permuted = true;    ///< vertices get other numbers: else those with most edges come first
    bool symmetric = false;  ///< each edge has a partner in the other direction
    entry_values values{};
  };

  /// Throws usage_error if there cannot be such a matrix. Local; no communication.
  explicit rmat(const options& with)
      : values(with.values),
        n_(vertices(with.scale)),
        edges_(edges(with)),
        scale_(with.scale),
        symmetric_(with.symmetric),
        seed_(with.seed),
        vertex_(with.permuted ? n_ : 1, mix(with.seed ^ detail::mix_first)),
        permuted_(with.permuted) {
    const double d = 1 - with.a - with.b - with.c;
    if (!(with.a >= 0 && with.b >= 0 && with.c >= 0 && d >= -1e-9))
      detail::raise("rmat: a = ", with.a, ", b = ", with.b, ", c = ", with.c,
                    " are no probabilities whose sum is at most 1");
    below_a_ = share(with.a);
    below_b_ = share(with.a + with.b);
    below_c_ = d <= 1e-9 ? std::uint64_t{1} << 32 : share(with.a + with.b + with.c);
  }

  /// Local; no communication.
  matrix_shape shape() const { return {n_, n_}; }
  /// How many numbers there are. Local; no communication.
  std::size_t entries() const { return symmetric_ ? 2 * edges_ : edges_; }
  static constexpr bool distinct = false;

  /// Where entry e lies. Local; no communication.
  matrix_index index(std::size_t e) const {
    detail::numbered_random random(seed_, symmetric_ ? e / 2 : e);
    std::size_t row = 0, column = 0;
    std::uint64_t bits = 0;
    for (unsigned level = 0; level < scale_; ++level) {
      bits = level % 2 == 0 ? random.next() : bits >> 32;
      std::uint64_t draw = bits & 0xffff'ffff;  // every other level needs a new word only
      bool lower = draw >= below_b_;
      bool right = lower ? draw >= below_c_ : draw >= below_a_;
      row = 2 * row + lower;
      column = 2 * column + right;
    }
    if (permuted_) row = vertex_(row), column = vertex_(column);
    if (symmetric_ && e % 2 == 1) return {column, row};
    return {row, column};
  }

  entry_values values;

 private:
  static std::size_t vertices(unsigned scale) {
    if (scale > 48)
      detail::raise("rmat: a scale of ", scale, " is 2^", scale, " vertices; at most 48 are known");
    return std::size_t{1} << scale;
  }
  static std::size_t edges(const options& with) {
    double n = std::ceil(with.edge_factor * static_cast<double>(vertices(with.scale)));
    if (!(n >= 0 && n < 0x1p60))
      detail::raise("rmat: an edge factor of ", with.edge_factor, " at scale ", with.scale,
                    " is no number of edges");
    return static_cast<std::size_t>(n);
  }
  static std::uint64_t share(double probability) {
    return static_cast<std::uint64_t>(std::nearbyint(probability * 0x1p32));
  }

  std::size_t n_, edges_;
  unsigned scale_;
  bool symmetric_;
  std::uint64_t seed_;
  detail::permutation vertex_;
  bool permuted_;
  std::uint64_t below_a_ = 0, below_b_ = 0, below_c_ = 0;
};

/// G(n, m): exactly `count` entries at different places, all choices being equally likely. Entry e
/// lies where a permutation of all places puts the e-th.
struct random_entries {
  std::size_t rows = 0, columns = 0, count = 0;
  std::uint64_t seed = 1;
  entry_values values{};

  /// Local; no communication.
  matrix_shape shape() const { return {rows, columns}; }
  /// How many there are: no more than places. Local; no communication.
  std::size_t entries() const {
    __extension__ using wide = unsigned __int128;
    wide places = static_cast<wide>(rows) * columns;
    return count < places ? count : static_cast<std::size_t>(places);
  }
  static constexpr bool distinct = true;

  /// Where entry e lies. Local; no communication.
  matrix_index index(std::size_t e) const {
    matrix_index at{e / columns, e % columns};
    detail::place_permutation(rows, columns, seed).apply(at.row, at.column);
    return at;
  }
};

}  // namespace far::inline FARSIDE_BACKEND
