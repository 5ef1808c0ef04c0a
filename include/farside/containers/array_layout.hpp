// far::array_layout<N>: which member of a team has which places of a far::global_array.
//
// In each dimension the indices are cut into blocks, and block b belongs to coordinate b % g of a
// grid of g members. Where every member has one block (blocks, irregular) there are as many blocks
// as members in each dimension; a cyclic array has more.
//
//   10 indices, blocks on 4 members:   | 0 1 2 | 3 4 5 | 6 7 | 8 9 |
//   10 indices, cyclic by 2, on 3:     | 0 1 | 2 3 | 4 5 | 6 7 | 8 9 |
//                            members      0     1     2     0     1
//
// Everything is local.
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/base/error.hpp>
#include <farside/base/mutants.hpp>
#include <farside/containers/array_distribution.hpp>
#include <farside/containers/array_index.hpp>
#include <farside/containers/detail/global_array/grid.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

namespace detail {

/// How one dimension is cut. By a rule, or by a list of where blocks begin.
class axis_cut {
 public:
  axis_cut() = default;
  /// `parts` blocks that differ by one at most, the longer ones first.
  static axis_cut evenly(std::ptrdiff_t n, std::size_t parts) {
    axis_cut cut(n, parts);
    const auto p = static_cast<std::ptrdiff_t>(parts);
    cut.shortest_ = parts == 0 ? 0 : n / p, cut.longer_ = parts == 0 ? 0 : n % p;
    return cut;
  }
  /// Blocks of `chunk`; the last one may be shorter.
  static axis_cut by_chunks(std::ptrdiff_t n, std::ptrdiff_t chunk) {
    axis_cut cut(n, static_cast<std::size_t>(n / chunk + (n % chunk != 0)));
    cut.chunk_ = chunk;
    return cut;
  }
  static axis_cut at(std::ptrdiff_t n, std::vector<std::size_t> starts) {
    axis_cut cut(n, starts.size());
    cut.starts_ = std::move(starts);
    return cut;
  }

  std::size_t blocks() const { return blocks_; }
  /// Where a block begins; that of block blocks() is the end.
  std::ptrdiff_t first(std::size_t block) const {
    if (block >= blocks_) return n_;
    if (!starts_.empty()) return static_cast<std::ptrdiff_t>(starts_[block]);
    const auto b = static_cast<std::ptrdiff_t>(block);
    return chunk_ != 0 ? b * chunk_ : b * shortest_ + std::min(b, longer_);
  }
  /// The block that holds an index.
  std::size_t block_of(std::ptrdiff_t i) const {
    if (!starts_.empty()) {
      // Of several that begin at one place the last is the one that holds it.
      auto behind = std::upper_bound(starts_.begin(), starts_.end(), static_cast<std::size_t>(i));
      return static_cast<std::size_t>(behind - starts_.begin()) - 1;
    }
    if (chunk_ != 0) return static_cast<std::size_t>(i / chunk_);
    const std::ptrdiff_t longer_end = longer_ * (shortest_ + 1);
    if (i < longer_end) return static_cast<std::size_t>(i / (shortest_ + 1));
    if (FARSIDE_MUTANT(array_edge_in_the_block_before) && i == longer_end && i != 0)
      return static_cast<std::size_t>(longer_ - 1);
    return static_cast<std::size_t>(longer_ + (i - longer_end) / shortest_);
  }

 private:
  axis_cut(std::ptrdiff_t n, std::size_t blocks) : n_(n), blocks_(blocks) {}

  std::ptrdiff_t n_ = 0;
  std::size_t blocks_ = 0;
  std::ptrdiff_t shortest_ = 0, longer_ = 0;  ///< evenly
  std::ptrdiff_t chunk_ = 0;                  ///< by chunks
  std::vector<std::size_t> starts_;           ///< by a list
};

}  // namespace detail

template <std::size_t N>
class array_layout {
 public:
  using index = array_index<N>;
  using box = patch<N>;

  /// Of nothing.
  array_layout() = default;
  /// Throws a usage_error if what the distribution says is not possible. `name` is how the array is
  /// called in it.
  array_layout(const std::string& name, const index& shape, const array_distribution& how,
               rank_t members);

  /// Of the array. Local; no communication.
  const index& shape() const { return shape_; }
  /// All of its places. Local; no communication.
  box all() const { return {index(), shape_}; }
  /// Members in each dimension. Local; no communication.
  const index& grid() const { return grid_; }
  /// How many members hold something, at most. Local; no communication.
  rank_t holders() const { return holders_; }
  /// Whether members have one block each, rather than many in turns. Local; no communication.
  bool one_block() const { return one_block_; }
  /// How large a block is at most, of a cyclic array. Local; no communication.
  std::size_t chunk_size() const { return chunk_size_; }

  /// How many blocks a member has. Local; no communication.
  std::size_t blocks(rank_t member) const {
    if (member >= holders_) return 0;
    const index at = coordinates(member);
    std::size_t result = 1;
    for (std::size_t d = 0; d < N; ++d) result *= count(d, at[d]);
    return result;
  }
  /// The n-th of them. Local; no communication.
  box block(rank_t member, std::size_t n = 0) const {
    if (n >= blocks(member)) return {};
    index at = coordinates(member), number;
    for (std::size_t d = N; d-- > 0;) {
      number[d] = at[d] + static_cast<std::ptrdiff_t>(n % count(d, at[d])) * grid_[d];
      n /= count(d, at[d]);
    }
    return block_at(number);
  }
  /// The member that has a place. Local; no communication.
  rank_t owner(const index& place) const { return owner_of(block_of(place)); }

  /// Whether all of a patch lies in one block. Local; no communication.
  bool in_one_block(const box& p) const {
    if (p.empty()) return true;
    index last = p.last;
    for (std::size_t d = 0; d < N; ++d) --last[d];
    return block_of(p.first) == block_of(last);
  }
  /// A part of a patch that lies in one block.
  struct piece {
    rank_t member;
    std::size_t number;  ///< of the member's block
    box block, part;
  };
  /// The block that holds a place of the array; its part is all of it. Local; no communication.
  piece piece_of(const index& place) const {
    const index at = block_of(place);
    const box block = block_at(at);
    return {owner_of(at), number_of(at), block, block};
  }
  /// Calls work(piece) for each block that a patch of the array has a part of. Local; no
  /// communication.
  template <class Work>
  void for_each_piece(const box& of, Work work) const {
    if (of.empty()) return;
    piece first = piece_of(of.first);
    if (first.block.contains(of)) {  // mostly
      first.part = of;
      return work(std::as_const(first));
    }
    box blocks{block_of(of.first), {}};
    index last = of.last;
    for (std::size_t d = 0; d < N; ++d) --last[d];
    blocks.last = block_of(last);
    for (std::size_t d = 0; d < N; ++d) ++blocks.last[d];
    for_each_index(blocks, [&](const index& at) {
      const box block = block_at(at);
      const box part = intersection(block, of);
      if (!part.empty()) work(piece{owner_of(at), number_of(at), block, part});
    });
  }
  /// Calls work(piece) for each block of a member that a patch has a part of. Local; no
  /// communication.
  template <class Work>
  void for_each_own_piece(rank_t member, const box& of, Work work) const {
    for (std::size_t n = 0, all = blocks(member); n < all; ++n) {
      const box mine = block(member, n), part = intersection(mine, of);
      if (!part.empty()) work(piece{member, n, mine, part});
    }
  }

 private:
  index block_of(const index& place) const {
    index result;
    for (std::size_t d = 0; d < N; ++d)
      result[d] = static_cast<std::ptrdiff_t>(cuts_[d].block_of(place[d]));
    return result;
  }
  box block_at(const index& at) const {
    box result;
    for (std::size_t d = 0; d < N; ++d) {
      result.first[d] = cuts_[d].first(static_cast<std::size_t>(at[d]));
      result.last[d] = cuts_[d].first(static_cast<std::size_t>(at[d]) + 1);
    }
    return result;
  }
  rank_t owner_of(const index& block) const {
    std::ptrdiff_t result = 0;
    for (std::size_t d = 0; d < N; ++d)
      result = result * grid_[d] + (one_block_ ? block[d] : block[d] % grid_[d]);
    return static_cast<rank_t>(result);
  }
  std::size_t number_of(const index& block) const {
    std::size_t result = 0;
    for (std::size_t d = 0; d < N; ++d)
      result =
          result * count(d, block[d] % grid_[d]) + static_cast<std::size_t>(block[d] / grid_[d]);
    return result;
  }
  index coordinates(rank_t member) const {
    index result;
    auto rest = static_cast<std::ptrdiff_t>(member);
    for (std::size_t d = N; d-- > 0;) result[d] = rest % grid_[d], rest /= grid_[d];
    return result;
  }
  /// How many blocks there are in a dimension at one coordinate of the grid.
  std::size_t count(std::size_t d, std::ptrdiff_t coordinate) const {
    const auto all = static_cast<std::ptrdiff_t>(cuts_[d].blocks());
    return all <= coordinate ? 0 : static_cast<std::size_t>((all - coordinate - 1) / grid_[d] + 1);
  }

  index shape_, grid_;
  std::array<detail::axis_cut, N> cuts_;
  rank_t holders_ = 0;
  bool one_block_ = true;
  std::size_t chunk_size_ = 0;
};

template <std::size_t N>
array_layout<N>::array_layout(const std::string& name, const index& shape,
                              const array_distribution& how, rank_t members)
    : shape_(shape) {
  auto refuse = [&](const auto&... why) { detail::raise(name, ": ", why...); };
  std::size_t size = 1;
  for (std::size_t d = 0; d < N; ++d) {
    if (shape[d] < 0)
      refuse("dimension ", d, " was given ", shape[d],
             " elements. Give how many there are in each dimension: 0 or more.");
    if (__builtin_mul_overflow(size, std::max<std::size_t>(1, static_cast<std::size_t>(shape[d])),
                               &size))
      refuse("an array of ", shape,
             " has more elements than 64 bits count. Has a negative number become such a large "
             "one?");
  }
  using kind = array_distribution::kind;
  auto require_each = [&](const char* what, std::size_t given) {
    if (given != N)
      refuse("its distribution was given ", given, " ", what, ", but it has ", N,
             " dimensions. Give one for each dimension.");
  };
  std::array<std::size_t, N> grid;
  grid.fill(1);
  if (how.how == kind::irregular) {
    require_each("lists of where blocks begin", how.starts.size());
    for (std::size_t d = 0; d < N; ++d) {
      const auto& starts = how.starts[d];
      if (starts.empty() || starts[0] != 0 || !std::is_sorted(starts.begin(), starts.end()) ||
          starts.back() > static_cast<std::size_t>(shape[d]))
        refuse("the blocks of dimension ", d,
               " begin where they cannot. The list of their beginnings begins with 0, does not "
               "descend, and does not go beyond ",
               shape[d], ".");
      grid[d] = starts.size();
    }
  } else {
    if (how.how == kind::cyclic) {
      require_each("extents of blocks", how.chunk.size());
      for (std::size_t d = 0; d < N; ++d)
        if (how.chunk[d] == 0)
          refuse("blocks of a cyclic array were given no elements in dimension ", d,
                 ". Give 1 or more for each dimension.");
    }
    if (!how.grid.empty()) require_each("numbers of members", how.grid.size());
    std::size_t product = 1;
    for (std::size_t parts : how.grid)
      if (parts > members || (product *= std::max<std::size_t>(1, parts)) > members)
        refuse("a grid of more members was asked for than the ", members,
               " that its team has. Ask for fewer, or leave the grid out.");
    detail::choose_grid(shape.at, how.grid, members, grid);
  }
  std::uint64_t holders = 1;
  one_block_ = how.how != kind::cyclic;
  chunk_size_ = 1;
  for (std::size_t d = 0; d < N; ++d) {
    if (how.how == kind::irregular) {
      cuts_[d] = detail::axis_cut::at(shape[d], how.starts[d]);
    } else if (how.how == kind::cyclic) {
      const auto chunk = static_cast<std::ptrdiff_t>(
          std::min<std::size_t>(how.chunk[d], std::max<std::ptrdiff_t>(1, shape[d])));
      cuts_[d] = detail::axis_cut::by_chunks(shape[d], chunk);
      chunk_size_ *= static_cast<std::size_t>(chunk);
    } else {
      grid[d] = std::min<std::size_t>(grid[d], std::max<std::ptrdiff_t>(1, shape[d]));
      cuts_[d] = detail::axis_cut::evenly(shape[d], grid[d]);
    }
    grid_[d] = static_cast<std::ptrdiff_t>(grid[d]);
    if (holders <= members) holders *= grid[d];
  }
  if (holders > members)
    refuse("its blocks are for ", holders, " members or more, but its team has ", members,
           ". Give fewer blocks.");
  holders_ = static_cast<rank_t>(holders);
}

}  // namespace far::inline FARSIDE_BACKEND
