// The state of a far::global_array: where the blocks of each member lie, and how a patch is one
// strided block of memory for each of them.
//
// The blocks of a member lie in one piece of its segment. A block lies row by row, and where there
// are ghosts it lies in the middle of memory that is wider by them on all sides. The blocks of a
// cyclic array lie one after another, at distances of the largest one.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/containers/array_layout.hpp>
#include <farside/containers/array_view.hpp>
#include <farside/containers/global_array_options.hpp>
#include <farside/core/detail/container.hpp>
#include <farside/core/rma.hpp>
#include <farside/core/strided.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

namespace detail {

/// The members whose memory this rank has changed since it last completed that. Ranks with several
/// threads keep no account: a thread's flush must follow its own changes.
class changed_members {
 public:
  explicit changed_members(rank_t size) : flags_(size) {}

  void note(const context& c, rank_t member) {
    if (c.threads != thread_level::single || flags_[member]) return;
    flags_[member] = true;
    list_.push_back(member);
  }
  const std::vector<rank_t>& list() const { return list_; }
  void forget() {
    for (rank_t member : list_) flags_[member] = false;
    list_.clear();
  }

 private:
  std::vector<bool> flags_;
  std::vector<rank_t> list_;
};

/// A patch as it lies here: elements from one to the next in each dimension, and from the first to
/// behind the last.
template <std::size_t N>
struct local_shape {
  array_index<N> strides;
  std::size_t reach = 0;
};

template <class T, std::size_t N>
struct global_array_state : shared_state {
  using index = array_index<N>;
  using box = patch<N>;
  using piece = typename array_layout<N>::piece;

  global_array_state(const index& shape, const global_array_options<N>& with)
      : shared_state("global_array",
                     {.name = with.name, .over = with.over, .made_at = with.made_at}),
        layout(full_name(), shape, with.distribution, members.size()),
        distribution(with.distribution),
        ghosts(with.ghosts),
        changed(members.size()) {
    require_ghosts();
    const std::size_t mine = elements_of(members.rank());
    require_possible(full_name() + ", elements", layout.all().size(), sizeof(T), layout.holders());
    parts = alloc_together<T>(members, full_name(), mine);
    if (mine != 0) std::fill_n(parts[members.rank()].local(), mine, T{});
    detail::barrier(members.members());
  }
  ~global_array_state() override {
    if (!constructed && !parts.empty()) dealloc(parts[members.rank()]);
  }
  void release() override { dealloc(parts[members.rank()]); }
  void after_barrier() override {
    if (where->threads == thread_level::single) changed.forget();  // the barrier has completed all
  }

  /// Memory of a member, in elements.
  std::size_t elements_of(rank_t member) const {
    if (!layout.one_block()) return layout.blocks(member) * layout.chunk_size();
    const box block = layout.block(member);
    if (block.empty()) return 0;
    std::size_t result = 1;
    for (std::size_t d = 0; d < N; ++d)
      result *= block.extent(d) + 2 * static_cast<std::size_t>(ghosts[d]);
    return result;
  }

  /// From an element of a block to the next one in each dimension.
  index strides_of(const box& block) const {
    index result;
    std::ptrdiff_t stride = 1;
    for (std::size_t d = N; d-- > 0;) {
      result[d] = stride;
      stride *= static_cast<std::ptrdiff_t>(block.extent(d)) + 2 * ghosts[d];
    }
    return result;
  }
  /// Where a place of a block lies, from the beginning of its member's memory.
  std::ptrdiff_t place_in(const piece& p, const index& strides, const index& place) const {
    auto result = static_cast<std::ptrdiff_t>(p.number * layout.chunk_size());
    for (std::size_t d = 0; d < N; ++d)
      result += (place[d] - p.block.first[d] + ghosts[d]) * strides[d];
    return result;
  }
  ptr<T> element(const index& place) const {
    const piece p = layout.piece_of(place);
    return parts[p.member] + place_in(p, strides_of(p.block), place);
  }
  array_view<T, N> local(std::size_t n) const {
    const rank_t me = members.rank();
    const box block = layout.block(me, n);
    if (block.empty()) return {nullptr, block, ghosts};
    const piece all{me, n, block, block};
    return {parts[me].local() + place_in(all, strides_of(block), block.first), block, ghosts};
  }

  /// A patch of memory here, whose widths are `leading` or its own.
  local_shape<N> shape_here(const char* what, const box& p, const leading_dimensions<N>& leading,
                            std::size_t room) const {
    local_shape<N> result;
    std::ptrdiff_t stride = 1;
    for (std::size_t d = N; d-- > 0;) {
      result.strides[d] = stride;
      const auto extent = static_cast<std::ptrdiff_t>(p.extent(d));
      const std::ptrdiff_t wide = leading.given() && d != 0 ? leading[d] : extent;
      if (wide < extent) [[unlikely]]
        raise(full_name(), ": ", what, " of patch ", p, " was given the leading dimension ", wide,
              " for dimension ", d, ", in which the patch has ", extent,
              " elements. It is how many there is room for in memory: give ", extent, " or more.");
      std::ptrdiff_t last = 0;
      if (__builtin_mul_overflow(extent - 1, stride, &last) ||
          __builtin_mul_overflow(stride, wide, &stride) ||
          __builtin_add_overflow(result.reach, static_cast<std::size_t>(last), &result.reach))
        result.reach = ~std::size_t{0} / 2, stride = 1;
    }
    result.reach = p.empty() ? 0 : result.reach + 1;
    if (result.reach > room) [[unlikely]]
      raise(full_name(), ": ", what, " of patch ", p, " needs memory for ", result.reach,
            " elements, from its first to its last one, but was given ", room,
            ". Give a larger span, or the leading dimensions that it has.");
    return result;
  }

  /// Calls work(where a part lies, where that begins here, shape) for the part of a patch in each
  /// block. `here` are strides of memory whose first element stands for p.first.
  template <class Work>
  void for_each_strided(const box& p, const index& here, Work work) const {
    layout.for_each_piece(p, [&](const piece& one) {
      const index there = strides_of(one.block);
      std::ptrdiff_t counts[N], far_strides[N], local_strides[N], local = 0;
      for (std::size_t d = 0; d < N; ++d) {
        const std::size_t level = N - 1 - d;
        counts[level] = static_cast<std::ptrdiff_t>(one.part.extent(d));
        if (level != 0) far_strides[level - 1] = there[d], local_strides[level - 1] = here[d];
        local += (one.part.first[d] - p.first[d]) * here[d];
      }
      work(one.member, parts[one.member] + place_in(one, there, one.part.first), local,
           strided{level_list(std::span<const std::ptrdiff_t>(counts, N)),
                   level_list(std::span<const std::ptrdiff_t>(far_strides, N - 1)),
                   level_list(std::span<const std::ptrdiff_t>(local_strides, N - 1))});
    });
  }

  void require_place(const char* what, const index& place) const {
    if (!layout.all().contains(place)) [[unlikely]]
      raise(full_name(), ": ", what, " of element ", place, ", but it is ", shape_text(),
            ". Indices are counted from zero.");
  }
  void require_patch(const char* what, const box& p) const {
    if (!layout.all().contains(p)) [[unlikely]]
      raise(full_name(), ": ", what, " of patch ", p, ", but it is ", shape_text(),
            ". A patch begins at its first place and ends before its last one, both within the "
            "array.");
  }
  std::string shape_text() const {
    std::string result;
    for (std::ptrdiff_t n : layout.shape().at) result += (result.empty() ? "" : " x ") + text(n);
    return result;
  }
  void require_ghosts() const {
    for (std::size_t d = 0; d < N; ++d) {
      if (ghosts[d] == 0) continue;
      if (ghosts[d] < 0 || ghosts[d] > std::ptrdiff_t{1} << 40)
        raise(full_name(), " was given ", ghosts[d], " ghosts in dimension ", d,
              ". Give how many elements of neighbours a side shows: 0 or more.");
      if (!layout.one_block())
        raise(full_name(),
              " was given ghosts, but its blocks are dealt out in turns. Only arrays whose members "
              "have one block each have ghosts: take far::blocks or far::irregular.");
    }
  }

  const array_layout<N> layout;
  const array_distribution distribution;
  const index ghosts;
  std::vector<ptr<T>> parts;  ///< the memory of each member
  changed_members changed;
};

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND
