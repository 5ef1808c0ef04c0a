// Which pieces of a multiplication have been taken, for members that help each other.
//
// Pieces are grouped by the tile that stays where it is: of stationary C the n-th piece of tile
// (i, j) has k = (n + i + j) mod K, of stationary A that of tile (i, k) has j = (n + i + k) mod N. The
// owner of such a tile has words for its pieces, which all members change by atomics only:
//
//   random   a counter for each tile: fetch_add gives the next piece of it      (a grid of 2-D)
//   near     a bit for each piece: fetch_or, whose result says who was first    (a grid of 3-D)
//
// The owner itself takes its pieces in no other way. So every piece is taken exactly once: a counter
// gives each number once, and a bit is set by one member only.
#pragma once

#include <farside/algorithms/detail/multiply/tasks.hpp>
#include <farside/base/mixing.hpp>
#include <farside/base/mutants.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/detail/together.hpp>
#include <farside/core/memory.hpp>

#include <cstdint>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

class work_grid {
 public:
  /// Collective over `over`. `owner(tile)` says who has a tile of a grid of `tiles`, each of which
  /// is good for `pieces`.
  template <class Owner>
  work_grid(const team& over, matrix_shape tiles, std::size_t pieces, Owner owner)
      : over_(over), tiles_(tiles), words_((pieces + 63) / 64), place_(tiles.size()) {
    std::vector<std::size_t> own(over.size());
    owners_.reserve(tiles.size());
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      owners_.push_back(owner({t / tiles.columns, t % tiles.columns}));
      place_[t] = own[owners_[t]]++;
    }
    const std::size_t mine = own[over.rank()] * words_;
    parts_ = alloc_together<std::uint64_t>(over, "multiply: the grid of work", mine);
    if (mine != 0) put(parts_[over.rank()], std::vector<std::uint64_t>(mine).data(), mine);
    barrier(over);
  }
  /// Between two synchronisations.
  void release() { dealloc(parts_[over_.rank()]); }

  rank_t owner(matrix_index tile) const { return owners_[number(tile)]; }

  /// The number of a piece of a tile that nobody has taken, or one that is too large. 1 atomic.
  std::size_t take(matrix_index tile) {
    ptr<std::uint64_t> counter = words(tile);
    if (FARSIDE_MUTANT(piece_read_then_written)) {
      std::uint64_t next = atomic_load(counter);
      atomic_store(counter, next + 1);
      return next;
    }
    return fetch_add(counter, std::uint64_t{1});
  }
  /// Whether this member is the one that takes a piece. 1 atomic.
  bool claim(matrix_index tile, std::size_t n) {
    const std::uint64_t bit = std::uint64_t{1} << n % 64;
    ptr<std::uint64_t> word = words(tile) + static_cast<std::ptrdiff_t>(n / 64);
    if (FARSIDE_MUTANT(piece_looked_at_then_claimed)) {
      bool free = (atomic_load(word) & bit) == 0;
      fetch_or(word, bit);
      return free;
    }
    return (fetch_or(word, bit) & bit) == 0;
  }
  /// Whether it was not taken a moment ago. 1 atomic.
  bool seems_free(matrix_index tile, std::size_t n) {
    return (atomic_load(words(tile) + static_cast<std::ptrdiff_t>(n / 64)) >> n % 64 & 1) == 0;
  }

 private:
  std::size_t number(matrix_index tile) const { return tile.row * tiles_.columns + tile.column; }
  ptr<std::uint64_t> words(matrix_index tile) const {
    const std::size_t t = number(tile);
    return parts_[owners_[t]] + static_cast<std::ptrdiff_t>(place_[t] * words_);
  }

  team over_;
  matrix_shape tiles_;
  std::size_t words_;               ///< for each tile
  std::vector<rank_t> owners_;      ///< of each tile
  std::vector<std::size_t> place_;  ///< of each tile among its owner's
  std::vector<ptr<std::uint64_t>> parts_;
};

/// A piece as a task of its own, of the n-th piece of a stationary tile.
inline multiply_task piece_task(bool of_c, matrix_index tile, std::size_t n, tile_counts tiles) {
  if (of_c) return {tile, (n + tile.row + tile.column) % tiles.k, 1, 1, 0};
  return {{tile.row, (n + tile.row + tile.column) % tiles.n}, tile.column, 1, 1, 0};
}

/// Own tiles first, then those of others in random order, until all pieces of all are taken.
inline task_source random_stealing(work_grid& grid, matrix_shape stationary, bool of_c,
                                   tile_counts tiles, rank_t me) {
  std::vector<matrix_index> own, others;
  for (std::size_t t = 0; t < stationary.size(); ++t) {
    matrix_index tile{t / stationary.columns, t % stationary.columns};
    (grid.owner(tile) == me ? own : others).push_back(tile);
  }
  for (std::size_t n = others.size(); n > 1; --n)
    std::swap(others[n - 1], others[mix(std::uint64_t{me} << 32 | n) % n]);
  const std::size_t mine = own.size(), pieces = of_c ? tiles.k : tiles.n;
  own.insert(own.end(), others.begin(), others.end());
  return [&grid, own = std::move(own), mine, pieces, of_c, tiles,
          at = std::size_t{0}]() mutable -> std::optional<multiply_task> {
    for (; at < own.size(); ++at) {
      const std::size_t n = grid.take(own[at]);
      if (n >= pieces) continue;
      multiply_task task = piece_task(of_c, own[at], n, tiles);
      task.stolen = at >= mine;
      return task;
    }
    return std::nullopt;
  };
}

/// Own pieces first, then those of others of which another tile is this member's: `is_near(task)`.
template <class IsNear>
task_source near_stealing(work_grid& grid, matrix_shape stationary, bool of_c, tile_counts tiles,
                          rank_t me, IsNear is_near) {
  struct candidate {
    matrix_index tile;
    std::size_t n;
    bool stolen;
  };
  std::vector<candidate> own, others;
  const std::size_t pieces = of_c ? tiles.k : tiles.n;
  for (std::size_t t = 0; t < stationary.size(); ++t) {
    const matrix_index tile{t / stationary.columns, t % stationary.columns};
    const bool mine = grid.owner(tile) == me;
    for (std::size_t n = 0; n < pieces; ++n) {
      if (mine)
        own.push_back({tile, n, false});
      else if (is_near(piece_task(of_c, tile, n, tiles)))
        others.push_back({tile, n, true});
    }
  }
  // Helpers begin where owners end, and each somewhere else.
  for (std::size_t n = others.size(); n > 1; --n)
    std::swap(others[n - 1], others[mix(std::uint64_t{me} << 32 | n) % n]);
  own.insert(own.end(), others.begin(), others.end());
  return [&grid, all = std::move(own), of_c, tiles,
          at = std::size_t{0}]() mutable -> std::optional<multiply_task> {
    for (; at < all.size(); ++at) {
      const auto& [tile, n, stolen] = all[at];
      if (stolen && !grid.seems_free(tile, n)) continue;
      if (!grid.claim(tile, n)) continue;
      multiply_task task = piece_task(of_c, tile, n, tiles);
      task.stolen = stolen;
      ++at;
      return task;
    }
    return std::nullopt;
  };
}

}  // namespace far::inline FARSIDE_BACKEND::detail
