// How patches of a far::global_array travel: one strided operation for each block that a patch has
// a part of, all in flight together.
#pragma once

#include <farside/containers/detail/global_array/state.hpp>
#include <farside/core/future.hpp>

#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// The three operations, each at once and begun.
struct reads_patch {
  static constexpr bool changes = false;
  template <class T>
  static void at_once(ptr<T> there, T* here, const strided& shape) {
    get_strided(there, here, shape);
  }
  template <class T>
  static future<void> begin(ptr<T> there, T* here, const strided& shape) {
    return async_get_strided(there, here, shape);
  }
};
struct writes_patch {
  static constexpr bool changes = true;
  template <class T>
  static void at_once(ptr<T> there, const T* here, const strided& shape) {
    put_strided(there, here, shape);
  }
  template <class T>
  static future<void> begin(ptr<T> there, const T* here, const strided& shape) {
    return async_put_strided(there, here, shape);
  }
};
template <class T>
struct adds_to_patch {
  static constexpr bool changes = true;
  T scale;
  void at_once(ptr<T> there, const T* here, const strided& shape) const {
    accumulate_strided(there, here, shape, scale);
  }
  future<void> begin(ptr<T> there, const T* here, const strided& shape) const {
    return async_accumulate_strided(there, here, shape, scale);
  }
};

/// Begins the operation on all parts of a patch. `here` stands for the first place of the patch, and
/// has these strides.
template <class Form, class T, std::size_t N, class Memory>
future<void> begin_patch(const Form& form, global_array_state<T, N>& s, const patch<N>& p,
                         Memory* here, const array_index<N>& strides) {
  context& c = far::detail::here();
  std::vector<future<void>> begun;
  s.for_each_strided(p, strides,
                     [&](rank_t member, ptr<T> there, std::ptrdiff_t at, const strided& shape) {
                       if (Form::changes) s.changed.note(c, member);
                       if (c.link.coherent())
                         form.at_once(there, here + at, shape);
                       else
                         begun.push_back(form.begin(there, here + at, shape));
                     });
  if (begun.empty()) return future<void>::ready();
  if (begun.size() == 1) return std::move(begun[0]);
  return when_all(std::move(begun));
}

/// The operation on all parts of a patch: complete here on return.
template <class Form, class T, std::size_t N, class Memory>
void whole_patch(const Form& form, global_array_state<T, N>& s, const patch<N>& p, Memory* here,
                 const array_index<N>& strides) {
  context& c = far::detail::here();
  if (!c.link.coherent() && !s.layout.in_one_block(p))
    return begin_patch(form, s, p, here, strides).get();
  s.for_each_strided(p, strides,
                     [&](rank_t member, ptr<T> there, std::ptrdiff_t at, const strided& shape) {
                       if (Form::changes) s.changed.note(c, member);
                       form.at_once(there, here + at, shape);
                     });
}

/// Calls work(patch of the array, where its first place stands in p) for the parts of a box that
/// goes beyond the edges of an array, where it comes in again on the other side.
template <std::size_t N, class Work>
void for_each_period(const array_index<N>& shape, const patch<N>& p, Work work) {
  if (p.empty()) return;
  auto cut = [&](auto& self, std::size_t d, patch<N> part, array_index<N> place) -> void {
    if (d == N) return work(part, place);
    for (std::ptrdiff_t at = p.first[d]; at < p.last[d];) {
      const std::ptrdiff_t within = ((at % shape[d]) + shape[d]) % shape[d];
      const std::ptrdiff_t n = std::min(p.last[d] - at, shape[d] - within);
      part.first[d] = within, part.last[d] = within + n;
      place[d] = at - p.first[d];
      self(self, d + 1, part, place);
      at += n;
    }
  };
  cut(cut, 0, {}, {});
}

/// Calls work(box) for boxes that together are the ghosts around a block, without overlap: in each
/// dimension one below it and one above, which take in the ghosts of the dimensions before.
template <std::size_t N, class Work>
void for_each_ghost_box(const patch<N>& block, const array_index<N>& ghosts, Work work) {
  patch<N> core = block;
  for (std::size_t d = 0; d < N; ++d) {
    if (ghosts[d] == 0) continue;
    patch<N> below = core, above = core;
    below.first[d] = block.first[d] - ghosts[d], below.last[d] = block.first[d];
    above.first[d] = block.last[d], above.last[d] = block.last[d] + ghosts[d];
    work(below);
    work(above);
    if (!FARSIDE_MUTANT(array_ghost_corners_missed))
      core.first[d] = below.first[d], core.last[d] = above.last[d];
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail
