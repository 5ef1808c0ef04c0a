// Which pieces of a multiplication have been taken, for members that help each other.
//
// Pieces are grouped by the tile that stays where it is: of stationary C the n-th piece of tile
// (i, j) has k = (n + i + j) mod K, of stationary A that of tile (i, k) has j = (n + i + k) mod N. The
// owner of such a tile has a bit for each piece, in words of 64. A member that wants pieces reads a
// word, chooses among the bits that are 0, and sets them by fetch_or. It has those that were 0 in the
// result. So every piece is taken exactly once: a bit goes from 0 to 1 once, and only the member that
// set it saw it as 0.
//
// Pieces of one tile of C are best multiplied by one member: their sum is one partial tile. So a member
// takes all that a word has left for it at once. Of an owner's last tile it takes only half, as others
// will soon have nothing else to take. Owners take the lowest numbers, others the highest.
#pragma once

#include <farside/algorithms/detail/multiply/tasks.hpp>
#include <farside/base/mixing.hpp>
#include <farside/base/mutants.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/detail/together.hpp>
#include <farside/core/memory.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

class work_grid {
 public:
  /// Collective over `over`. `owner(tile)` says who has a tile of a grid of `tiles`, each of which
  /// is good for `pieces`.
  template <class Owner>
  work_grid(const team& over, matrix_shape tiles, std::size_t pieces, Owner owner)
      : over_(over),
        tiles_(tiles),
        pieces_(pieces),
        words_((pieces + 63) / 64),
        counts_(over.size()),
        place_(tiles.size()) {
    owners_.reserve(tiles.size());
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      owners_.push_back(owner({t / tiles.columns, t % tiles.columns}));
      place_[t] = counts_[owners_[t]]++;
    }
    const std::size_t mine = counts_[over.rank()] * words_;
    parts_ = alloc_together<std::uint64_t>(over, "multiply: the grid of work", mine);
    constexpr std::array<std::uint64_t, 64> zeros{};
    for (std::size_t at = 0; at < mine; at += zeros.size())
      put(parts_[over.rank()] + static_cast<std::ptrdiff_t>(at), zeros.data(),
          std::min(zeros.size(), mine - at));
    barrier(over);
  }
  /// Between two synchronisations.
  void release() { dealloc(parts_[over_.rank()]); }

  rank_t owner(matrix_index tile) const { return owners_[number(tile)]; }

  /// Whether its owner has no tile behind this one.
  bool is_last(matrix_index tile) const {
    const std::size_t t = number(tile);
    return place_[t] + 1 == counts_[owners_[t]];
  }

  /// How many of the pieces that are free and wanted.
  enum class share { all, half, one };

  /// Takes pieces of a tile, of those for which is_wanted(number), and returns their numbers, from the
  /// lowest on. None: all that are wanted were taken. `done`: how many words have nothing left for this
  /// member, 0 at first. 2 atomics, and 2 more for each time that others were quicker; 1 for each word
  /// whose pieces are all taken; none for one without wanted pieces.
  template <class IsWanted>
  std::vector<std::size_t> take(matrix_index tile, std::size_t& done, IsWanted is_wanted,
                                share how) {
    const bool mine = owner(tile) == over_.rank();
    for (; done < words_; ++done) {
      const std::size_t w = mine ? done : words_ - 1 - done, first = w * 64;
      const std::size_t count = std::min<std::size_t>(64, pieces_ - first);
      std::uint64_t wanted = 0;
      for (std::size_t n = 0; n < count; ++n)
        if (is_wanted(first + n)) wanted |= std::uint64_t{1} << n;
      if (wanted == 0) continue;
      const std::uint64_t taken =
          take_of(words(tile) + static_cast<std::ptrdiff_t>(w), wanted, how, mine);
      if (taken == 0) continue;
      std::vector<std::size_t> numbers;
      for_each_bit(taken, [&](std::size_t n) { numbers.push_back(first + n); });
      return numbers;
    }
    return {};
  }

 private:
  template <class Visit>
  static void for_each_bit(std::uint64_t bits, Visit visit) {
    for (; bits != 0; bits &= bits - 1) visit(static_cast<std::size_t>(std::countr_zero(bits)));
  }

  /// Those of the wanted bits of a word that this member has set. 0: others have set all of them.
  static std::uint64_t take_of(ptr<std::uint64_t> word, std::uint64_t wanted, share how,
                               bool lowest) {
    while (true) {
      const std::uint64_t before = atomic_load(word);
      std::uint64_t chosen = wanted & ~before;
      if (chosen == 0) return 0;
      const auto free = static_cast<std::size_t>(std::popcount(chosen));
      const std::size_t enough = how == share::all ? free : how == share::half ? (free + 1) / 2 : 1;
      for (std::size_t more = free - enough; more != 0; --more)
        chosen &= lowest ? ~std::bit_floor(chosen) : chosen - 1;
      if (FARSIDE_MUTANT(piece_read_then_written)) {
        atomic_store(word, before | chosen);
        return chosen;
      }
      const std::uint64_t won = chosen & ~fetch_or(word, chosen);
      if (FARSIDE_MUTANT(piece_taken_by_all_who_saw_it_free)) return chosen;
      if (won != 0) return won;
    }
  }
  std::size_t number(matrix_index tile) const { return tile.row * tiles_.columns + tile.column; }
  ptr<std::uint64_t> words(matrix_index tile) const {
    const std::size_t t = number(tile);
    return parts_[owners_[t]] + static_cast<std::ptrdiff_t>(place_[t] * words_);
  }

  team over_;
  matrix_shape tiles_;
  std::size_t pieces_, words_;       ///< of each tile
  std::vector<std::size_t> counts_;  ///< of tiles, by owner
  std::vector<rank_t> owners_;       ///< of each tile
  std::vector<std::size_t> place_;   ///< of each tile among its owner's
  std::vector<ptr<std::uint64_t>> parts_;
};

/// Own tiles first, then those of others in random order, until no piece is left that is wanted:
/// is_wanted(tile of C, k). `together`: pieces of a tile may become one sum.
template <class IsWanted>
task_source stealing_tasks(work_grid& grid, bool of_c, tile_counts tiles, rank_t me, bool together,
                           IsWanted is_wanted) {
  using share = work_grid::share;
  const matrix_shape still{tiles.m, of_c ? tiles.n : tiles.k};
  const std::size_t pieces = of_c ? tiles.k : tiles.n;
  std::vector<matrix_index> own, others;
  for (std::size_t t = 0; pieces != 0 && t < still.size(); ++t) {
    const matrix_index tile{t / still.columns, t % still.columns};
    (grid.owner(tile) == me ? own : others).push_back(tile);
  }
  for (std::size_t n = others.size(); n > 1; --n)
    std::swap(others[n - 1], others[mix(std::uint64_t{me} << 32 | n) % n]);
  own.insert(own.end(), others.begin(), others.end());
  return [=, &grid, all = std::move(own), at = std::size_t{0},
          done = std::size_t{0}]() mutable -> std::optional<multiply_task> {
    for (; at < all.size(); ++at, done = 0) {
      const matrix_index tile = all[at];
      auto turned_to = [&](std::size_t n) { return (n + tile.row + tile.column) % pieces; };
      auto c_of = [&](std::size_t n) { return of_c ? tile : matrix_index{tile.row, turned_to(n)}; };
      auto k_of = [&](std::size_t n) { return of_c ? turned_to(n) : tile.column; };
      std::vector<std::size_t> taken = grid.take(
          tile, done, [&](std::size_t n) { return is_wanted(c_of(n), k_of(n)); },
          !together            ? share::one
          : grid.is_last(tile) ? share::half
                               : share::all);
      if (taken.empty()) continue;
      multiply_task task{c_of(taken[0]), {}, k_of(taken[0])};
      for (std::size_t n : taken) task.ks.push_back(k_of(n));
      task.stolen = grid.owner(tile) != me;
      task.whole = of_c && taken.size() == pieces;
      return task;
    }
    return std::nullopt;
  };
}

}  // namespace far::inline FARSIDE_BACKEND::detail
