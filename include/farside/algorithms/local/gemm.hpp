// C = C + A B, all of them dense (GEMM), on one rank, over any semiring.
//
//   far::gemm(a_view, b_view, c_view);
//   far::gemm(a_view, far::transpose(b_view), c_view);
//
// Blocks of A and B are copied ("packed") so that the innermost loop reads both from end to end:
//
//   for each block of columns of C
//     for each block of the sum (depth)                B's block, packed, is in the third cache
//       for each block of rows of C                    A's block, packed, is in the second cache
//         for each tile of C                           a panel of B is in the first cache
//           for each step of depth                     the tile is in registers:
//             add a column of A's panel x a row of B's panel
//
// A tile fills most of the processor's registers (gemm_tile). Tiles at the edges, which are
// smaller, are computed in full beside C, and only their part is copied. The kernel is compiled for
// each instruction set, and the best one that the machine has is called (vectors.hpp).
//
// With FARSIDE_USE_BLAS defined, products over plus_times of float, double and their complex
// numbers are those of the BLAS (gemm_blas.hpp).
//
// Time: 2 x rows x depth x columns flops, at a good part of what the processor can do where values
// are float, double or integers; complex numbers take the slower way without vectors. Memory: the
// packed blocks, about 3 MiB for double. Sums are made in one order, whatever the machine, but with
// fused multiplications where it has them.
//
// Everything is local.
#pragma once

#include <farside/algorithms/local/dense_operand.hpp>
#include <farside/algorithms/local/options.hpp>
#include <farside/algorithms/local/vectors.hpp>
#include <farside/containers/detail/plain_array.hpp>

#include <algorithm>
#include <cstdint>
#if FARSIDE_USE_BLAS
#include <farside/algorithms/local/gemm_blas.hpp>
#endif

namespace far::inline FARSIDE_BACKEND {

namespace detail {

/// Copies `lines` lines of a matrix, each of `depth` elements, into panels of `width` lines, in
/// which the lines' first elements lie side by side, then their second ones, and so on. The last
/// panel is filled up with copies of nothing in particular: its results are not used.
template <class T>
void pack_panels(const T* from, std::size_t line_step, std::size_t depth_step, std::size_t lines,
                 std::size_t depth, std::size_t width, T* to) {
  for (std::size_t first = 0; first < lines; first += width, to += width * depth) {
    const std::size_t here = std::min(width, lines - first);
    if (here < width) std::fill(to, to + width * depth, T{});
    const T* panel = from + first * line_step;
    if (line_step == 1) {
      for (std::size_t k = 0; k < depth; ++k)
        std::copy_n(panel + k * depth_step, here, to + k * width);
    } else {
      for (std::size_t k = 0; k < depth; ++k)
        for (std::size_t line = 0; line < here; ++line)
          to[k * width + line] = panel[line * line_step + k * depth_step];
    }
  }
}

constexpr std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// Memory for panels, whose vectors must not lie across two cache lines.
template <class T>
class aligned_room {
  static constexpr std::size_t line = 64;

 public:
  explicit aligned_room(std::size_t size) : memory_(size * sizeof(T) + line) {}
  T* begin() {
    auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return reinterpret_cast<T*>(memory_.data() + (line - address % line) % line);
  }

 private:
  plain_array<std::byte> memory_;
};

/// Rows and columns of a tile that stays in registers: all of them but for those that hold a row of
/// B's panel, and an element of A's.
template <class Set, class T, class S>
struct gemm_tile {
  using V = lanes<T, S, Set::bytes>;
  static constexpr bool vectors = !std::is_same_v<V, T>;
  static constexpr std::size_t width = sizeof(V) / sizeof(T);
  static constexpr std::size_t across =
      vectors && Set::registers == 32 ? 3 : 2;  // vectors in a row
  static constexpr std::size_t rows = !vectors ? 2 : Set::registers == 32 ? 8 : 6;
  static constexpr std::size_t columns = across * width;
};

/// Packed blocks, and the part of C that they are added to.
template <class T, class S>
struct gemm_block {
  const S* over;
  strided_operand<T> a, b;
  matrix_shape shape;  // of C
  std::size_t depth;
  T* c;
  std::size_t c_leading;
  const kernel_options* options;
};

struct gemm_kernel {
  template <class Set, class T, class S>
  [[gnu::always_inline]] static void run(const gemm_block<T, S>* all) {
    using tile = gemm_tile<Set, T, S>;
    product<tile>(*all);
  }

  /// The loops over blocks.
  template <class Tile, class T, class S>
  [[gnu::always_inline]] static void product(const gemm_block<T, S>& all) {
    // A panel of B takes most of the first cache, a block of A a part of the second one.
    constexpr std::size_t depth_block =
        std::max<std::size_t>((std::size_t{48} << 10) / (Tile::columns * sizeof(T)), 64);
    constexpr std::size_t row_block =
        std::max<std::size_t>((std::size_t{480} << 10) / (depth_block * sizeof(T)) / Tile::rows,
                              1) *
        Tile::rows;
    constexpr std::size_t column_block = (2048 / Tile::columns + 1) * Tile::columns;
    const std::size_t deepest = std::min(depth_block, all.depth);
    aligned_room<T> a_room(std::min(row_block, round_up(all.shape.rows, Tile::rows)) * deepest);
    aligned_room<T> b_room(std::min(column_block, round_up(all.shape.columns, Tile::columns)) *
                           deepest);
    T *a_panels = a_room.begin(), *b_panels = b_room.begin();
    block_count blocks(*all.options);
    for (std::size_t j = 0; j < all.shape.columns; j += column_block) {
      const std::size_t columns = std::min(column_block, all.shape.columns - j);
      for (std::size_t k = 0; k < all.depth; k += depth_block) {
        const std::size_t depth = std::min(depth_block, all.depth - k);
        pack_panels(all.b.at(k, j), all.b.column_step, all.b.row_step, columns, depth,
                    Tile::columns, b_panels);
        for (std::size_t i = 0; i < all.shape.rows; i += row_block) {
          const std::size_t rows = std::min(row_block, all.shape.rows - i);
          blocks.next(rows * columns * depth);
          pack_panels(all.a.at(i, k), all.a.row_step, all.a.column_step, rows, depth, Tile::rows,
                      a_panels);
          tiles<Tile>(*all.over, rows, columns, depth, a_panels, b_panels,
                      all.c + i * all.c_leading + j, all.c_leading);
        }
      }
    }
  }

  /// The loops over the tiles of a block.
  template <class Tile, class T, class S>
  [[gnu::always_inline]] static void tiles(const S& over, std::size_t rows, std::size_t columns,
                                           std::size_t depth, const T* a, const T* b, T* c,
                                           std::size_t leading) {
    for (std::size_t j = 0; j < columns; j += Tile::columns) {
      const std::size_t tile_columns = std::min(Tile::columns, columns - j);
      for (std::size_t i = 0; i < rows; i += Tile::rows) {
        const std::size_t tile_rows = std::min(Tile::rows, rows - i);
        T* at = c + i * leading + j;
        for (std::size_t r = 0; r < tile_rows && i + Tile::rows + r < rows;
             ++r)  // of the next tile
          for (std::size_t e = 0; e < tile_columns; e += (64 + sizeof(T) - 1) / sizeof(T))
            __builtin_prefetch(at + (Tile::rows + r) * leading + e);
        if (tile_rows == Tile::rows && tile_columns == Tile::columns) {
          one_tile<Tile>(over, depth, a + i * depth, b + j * depth, at, leading);
        } else {
          T beside[Tile::rows * Tile::columns] = {};
          for (std::size_t r = 0; r < tile_rows; ++r)
            std::copy_n(at + r * leading, tile_columns, beside + r * Tile::columns);
          one_tile<Tile>(over, depth, a + i * depth, b + j * depth, beside, Tile::columns);
          for (std::size_t r = 0; r < tile_rows; ++r)
            std::copy_n(beside + r * Tile::columns, tile_columns, at + r * leading);
        }
      }
    }
  }

  /// A tile of C, in registers: for each step a column of A's panel times a row of B's.
  template <class Tile, class T, class S>
  [[gnu::always_inline]] static void one_tile(const S& over, std::size_t depth, const T* a,
                                              const T* b, T* c, std::size_t leading) {
    using V = typename Tile::V;
    V sum[Tile::rows][Tile::across];
    FARSIDE_UNROLL for (std::size_t r = 0; r < Tile::rows; ++r)
        FARSIDE_UNROLL for (std::size_t v = 0; v < Tile::across; ++v)
            load(sum[r][v], c + r * leading + v * Tile::width);
    for (std::size_t k = 0; k < depth; ++k, a += Tile::rows, b += Tile::columns) {
      V y[Tile::across];
      FARSIDE_UNROLL for (std::size_t v = 0; v < Tile::across; ++v) load(y[v], b + v * Tile::width);
      FARSIDE_UNROLL for (std::size_t r = 0; r < Tile::rows; ++r)
          FARSIDE_UNROLL for (std::size_t v = 0; v < Tile::across; ++v)
              add_product(over, sum[r][v], a[r], y[v]);
    }
    FARSIDE_UNROLL for (std::size_t r = 0; r < Tile::rows; ++r)
        FARSIDE_UNROLL for (std::size_t v = 0; v < Tile::across; ++v)
            store(sum[r][v], c + r * leading + v * Tile::width);
  }
};

}  // namespace detail

/// C = C + A B over a semiring, where A and B are matrix_views or transposes of such. C must not
/// overlap A or B. Local; see the header for what it costs.
template <class T, class A, class B, semiring_over<T> S = plus_times<T>>
void gemm(const A& a, const B& b, matrix_view<T> c, const S& over = S(),
          const kernel_options& options = {}) {
  detail::require_product("gemm", a.shape(), b.shape(), c.shape());
  if (c.shape().size() == 0 || a.shape().columns == 0) return;
  const detail::strided_operand<T> from_a(a), from_b(b);
  const std::size_t depth = a.shape().columns;
#if FARSIDE_USE_BLAS
  if constexpr (std::is_same_v<S, plus_times<T>> && detail::has_blas<T>)
    if (detail::gemm_by_blas<T>(from_a, from_b, c, depth, options)) return;
#endif
  const detail::gemm_block<T, S> all{
      &over, from_a, from_b, c.shape(), depth, c.data(), c.leading_dimension(), &options};
  detail::call_for_this_machine<detail::gemm_kernel>(&all);
}

}  // namespace far::inline FARSIDE_BACKEND
