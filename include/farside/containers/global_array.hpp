// far::global_array<T, N>: an array of N dimensions that is spread over a team in blocks, and that
// every member reads and changes at any time by patches: boxes of places, wherever they lie.
//
//   far::global_array<double, 2> f({n, n}, {.ghosts = {1, 1}});       // collective
//   f.get({{0, 0}, {10, 20}}, out);                                   // from however many members
//   f.put(p, values, ld);  f.accumulate(p, values, {}, 0.5);          // ld: how wide `values` is
//   long t = tasks.fetch_add(0, 1);                                   // of integers
//   f.update_ghosts();                                                // collective
//   for (auto mine = f.local(); ...)                                  // own memory
//
// containers/array_distribution.hpp says how an array is divided, algorithms/array_operations.hpp
// has operations on patches of all members together.
//
// Order. Gets, puts and accumulates are those of far memory (docs/memory_model.md): a get is
// complete on return and sees this rank's own earlier changes; what is put or accumulated is
// complete after fence(), flush or barrier. Two puts of a rank to one place, with no fence between
// them, may change places. A view shows the memory itself: changes of others are in it after a
// barrier, this rank's own after a fence.
//
// Costs. A patch costs one operation for each run of elements that lie side by side both here and
// there: a row, or more where a patch takes whole rows of a block. All are in flight together.
#pragma once

#include <farside/containers/detail/global_array/transfers.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/pieces.hpp>
#include <farside/core/ref.hpp>

#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// What update_ghosts does with ghosts beyond the edges of an array.
enum class edges {
  periodic,  ///< they show the other side
  closed     ///< they stay as they are
};

template <class T, std::size_t N>
class global_array {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>,
                "far::global_array holds elements that are moved as bytes: numbers, complex "
                "numbers, enums, structures of such. For bool take char.");

 public:
  using value_type = T;
  using index = array_index<N>;
  using box = patch<N>;
  using leading = leading_dimensions<N>;
  static constexpr std::size_t dimensions = N;

  /// Collective: all members give the same. Elements and ghosts are T{}. 1 all_reduce, 1
  /// all_gather, 1 barrier.
  explicit global_array(const index& shape, const global_array_options<N>& with = {})
      : state_(new detail::global_array_state<T, N>(shape, with)) {}
  /// Another array of that shape, distribution, ghosts and team; its elements are T{}. Collective.
  /// 1 all_reduce, 1 all_gather, 1 barrier.
  global_array duplicate(const std::string& name = {}) const {
    return global_array(shape(), {.distribution = state_->distribution,
                                  .ghosts = state_->ghosts,
                                  .name = name,
                                  .over = members()});
  }

  /// How many elements there are in each dimension. Local; no communication.
  const index& shape() const { return state_->layout.shape(); }
  /// All places. Local; no communication.
  box all() const { return state_->layout.all(); }
  /// Which member has which places. Local; no communication.
  const array_layout<N>& layout() const { return state_->layout; }
  const index& ghosts() const { return state_->ghosts; }
  const std::string& name() const { return state_->label; }
  const team& members() const { return state_->members; }

  // --- where elements lie ---

  /// The member of the team that has an element. Local; no communication.
  rank_t locate(const index& place) const {
    state_->require_place("locate", place);
    return state_->layout.owner(place);
  }
  /// The parts of a patch that lie in one block each, and their members. Local; no communication.
  std::vector<typename array_layout<N>::piece> locate_patch(const box& p) const {
    state_->require_patch("locate_patch", p);
    std::vector<typename array_layout<N>::piece> result;
    state_->layout.for_each_piece(p, [&](const auto& piece) { result.push_back(piece); });
    return result;
  }
  /// The places of a member: its n-th block, which is empty if it has none. Local; no communication.
  box distribution(rank_t member, std::size_t n = 0) const {
    return state_->layout.block(member, n);
  }
  /// How many blocks this member has: more than one only of a cyclic array. Local; no
  /// communication.
  std::size_t local_blocks() const { return state_->layout.blocks(members().rank()); }
  /// A block of this member, to read and to write, with its ghosts. Local; no communication.
  array_view<T, N> local(std::size_t n = 0) const { return state_->local(n); }
  /// Calls f(place, element) for all elements of this member. Local; no communication.
  template <class F>
  void for_each_local(F f) const {
    for (std::size_t n = 0; n < local_blocks(); ++n) local(n).for_each(f);
  }

  // --- one element ---

  /// Reading it is a get, assigning to it a put that fence() does not know of. One-sided.
  ref<T> operator[](const index& place) const { return ref<T>(element_ptr(place)); }
  /// Where an element lies. Local; no communication.
  ptr<T> element_ptr(const index& place) const {
    state_->require_place("operator[]", place);
    return state_->element(place);
  }
  /// Adds to an integer of 32 or 64 bits, and returns what it was. One-sided. 1 atomic.
  T fetch_add(const index& place, const T& value) const {
    state_->require_place("fetch_add", place);
    return far::fetch_add(state_->element(place), value);
  }

  // --- patches; one-sided ---

  /// Reads a patch; complete on return. One-sided. A get for each run of elements.
  void get(const box& p, std::span<T> to, const leading& ld = {}) const {
    const auto here = begin("get", p, ld, to.size());
    detail::whole_patch(detail::reads_patch(), *state_, p, to.data(), here);
  }
  /// Likewise, as a vector in which the patch lies densely.
  std::vector<T> get(const box& p) const {
    state_->require_patch("get", p);
    std::vector<T> result(p.size());
    get(p, result);
    return result;
  }
  /// Writes a patch; `from` may change on return. One-sided. A put for each run of elements.
  void put(const box& p, std::span<const T> from, const leading& ld = {}) const {
    const auto here = begin("put", p, ld, from.size());
    detail::whole_patch(detail::writes_patch(), *state_, p, from.data(), here);
  }
  /// Adds `scale` times what is here; `from` may change on return. Others may add to the same
  /// elements at the same time. One-sided. A put for each run of elements.
  void accumulate(const box& p, std::span<const T> from, const leading& ld = {},
                  const T& scale = T(1)) const {
    const auto here = begin("accumulate", p, ld, from.size());
    detail::whole_patch(detail::adds_to_patch<T>{scale}, *state_, p, from.data(), here);
  }
  /// Begins to read; `to` must live until the future is ready. One-sided. A get for each run.
  future<void> async_get(const box& p, std::span<T> to, const leading& ld = {}) const {
    const auto here = begin("async_get", p, ld, to.size());
    return detail::begin_patch(detail::reads_patch(), *state_, p, to.data(), here);
  }
  /// Begins to write; `from` must not change until the future is ready. One-sided. A put for each
  /// run.
  future<void> async_put(const box& p, std::span<const T> from, const leading& ld = {}) const {
    const auto here = begin("async_put", p, ld, from.size());
    return detail::begin_patch(detail::writes_patch(), *state_, p, from.data(), here);
  }
  /// Begins to add; likewise, and complete after a fence that follows that. One-sided. A put for
  /// each run.
  future<void> async_accumulate(const box& p, std::span<const T> from, const leading& ld = {},
                                const T& scale = T(1)) const {
    const auto here = begin("async_accumulate", p, ld, from.size());
    return detail::begin_patch(detail::adds_to_patch<T>{scale}, *state_, p, from.data(), here);
  }

  // --- patches that go beyond the edges and come in again on the other side; one-sided ---

  /// Reads a patch of an array that repeats itself in all directions: of any place and size.
  /// One-sided. Costs what get does.
  void periodic_get(const box& p, std::span<T> to, const leading& ld = {}) const {
    periodic("periodic_get", detail::reads_patch(), p, to, ld);
  }
  /// Writes one, which is no larger than the array. One-sided. Costs what put does.
  void periodic_put(const box& p, std::span<const T> from, const leading& ld = {}) const {
    require_one_period("periodic_put", p);
    periodic("periodic_put", detail::writes_patch(), p, from, ld);
  }
  /// Adds to one. One-sided. Costs what accumulate does.
  void periodic_accumulate(const box& p, std::span<const T> from, const leading& ld = {},
                           const T& scale = T(1)) const {
    periodic("periodic_accumulate", detail::adds_to_patch<T>{scale}, p, from, ld);
  }

  // --- lists of elements; one-sided ---

  /// Reads the elements at these places. One-sided. A get each, up to 64 in flight together.
  void gather(std::span<const index> places, std::span<T> to) const;
  /// Writes elements; of a place that is named twice either value stays. One-sided. A put each.
  void scatter(std::span<const index> places, std::span<const T> from) const;
  /// Adds `scale` times values to elements; all are added to a place that is named twice.
  /// One-sided. A put each.
  void scatter_add(std::span<const index> places, std::span<const T> from,
                   const T& scale = T(1)) const;

  // --- completion ---

  /// Completes what this rank has changed by way of this array: all reads that follow see it.
  /// One-sided. 1 flush for each member that it has changed something of since the last barrier or
  /// fence; a rank with several threads flushes all, 1 flush.
  void fence() const;

  /// Each member's ghosts become copies of the elements that they stand for. Collective. 2
  /// barriers, and a get for each run of them.
  void update_ghosts(edges beyond = edges::periodic) const;

 private:
  friend struct detail::handle_access;
  explicit global_array(detail::container_handle<detail::global_array_state<T, N>> state)
      : state_(std::move(state)) {}

  index begin(const char* what, const box& p, const leading& ld, std::size_t room) const {
    state_->require_patch(what, p);
    return state_->shape_here(what, p, ld, room).strides;
  }
  template <class Form, class Memory>
  void periodic(const char* what, const Form& form, const box& p, std::span<Memory> here,
                const leading& ld) const;
  void require_one_period(const char* what, const box& p) const;
  void require_list(const char* what, std::span<const index> places, std::size_t values) const;
  /// Calls work(begin, end) for parts of a list, so that what is made of it takes little memory.
  template <class Work>
  static void in_batches(std::size_t n, Work work) {
    constexpr std::size_t most = 4096;
    for (std::size_t i = 0; i < n; i += most) work(i, std::min(n, i + most));
  }

  detail::container_handle<detail::global_array_state<T, N>> state_;
};

template <class T, std::size_t N>
template <class Form, class Memory>
void global_array<T, N>::periodic(const char* what, const Form& form, const box& p,
                                  std::span<Memory> here, const leading& ld) const {
  const index strides = state_->shape_here(what, p, ld, here.size()).strides;
  if (all().empty() && !p.empty())
    detail::raise(state_->full_name(), ": ", what, " of patch ", p, ", but the array is empty.");
  detail::for_each_period(shape(), p, [&](const box& part, const index& place) {
    std::ptrdiff_t at = 0;
    for (std::size_t d = 0; d < N; ++d) at += place[d] * strides[d];
    detail::whole_patch(form, *state_, part, here.data() + at, strides);
  });
}

template <class T, std::size_t N>
void global_array<T, N>::require_one_period(const char* what, const box& p) const {
  for (std::size_t d = 0; d < N; ++d)
    if (p.extent(d) > static_cast<std::size_t>(shape()[d])) [[unlikely]]
      detail::raise(state_->full_name(), ": ", what, " of patch ", p, ", but it is ",
                    state_->shape_text(),
                    ": places would be written twice. Write one period at most.");
}

template <class T, std::size_t N>
void global_array<T, N>::require_list(const char* what, std::span<const index> places,
                                      std::size_t values) const {
  if (places.size() != values) [[unlikely]]
    detail::raise(state_->full_name(), ": ", what, " was given ", places.size(), " places and ",
                  values, " values. Give one for each.");
  for (const index& place : places) state_->require_place(what, place);
}

template <class T, std::size_t N>
void global_array<T, N>::gather(std::span<const index> places, std::span<T> to) const {
  require_list("gather", places, to.size());
  std::vector<get_piece<T>> pieces;
  in_batches(places.size(), [&](std::size_t begin, std::size_t end) {
    pieces.clear();
    for (std::size_t i = begin; i < end; ++i)
      pieces.push_back({state_->element(places[i]), &to[i], 1});
    get_pieces<T>(pieces);
  });
}

template <class T, std::size_t N>
void global_array<T, N>::scatter(std::span<const index> places, std::span<const T> from) const {
  require_list("scatter", places, from.size());
  std::vector<put_piece<T>> pieces;
  in_batches(places.size(), [&](std::size_t begin, std::size_t end) {
    pieces.clear();
    for (std::size_t i = begin; i < end; ++i) {
      state_->changed.note(*state_->where, state_->layout.owner(places[i]));
      pieces.push_back({state_->element(places[i]), &from[i], 1});
    }
    put_pieces<T>(pieces);
  });
}

template <class T, std::size_t N>
void global_array<T, N>::scatter_add(std::span<const index> places, std::span<const T> from,
                                     const T& scale) const {
  require_list("scatter_add", places, from.size());
  std::vector<put_piece<T>> pieces;
  in_batches(places.size(), [&](std::size_t begin, std::size_t end) {
    pieces.clear();
    for (std::size_t i = begin; i < end; ++i) {
      state_->changed.note(*state_->where, state_->layout.owner(places[i]));
      pieces.push_back({state_->element(places[i]), &from[i], 1});
    }
    accumulate_pieces<T>(pieces, scale);
  });
}

template <class T, std::size_t N>
void global_array<T, N>::fence() const {
  if (state_->where->threads != thread_level::single) return flush();
  for (rank_t member : state_->changed.list()) {
    flush(members().world_rank(member));
    if (FARSIDE_MUTANT(array_fence_of_one_member)) break;
  }
  state_->changed.forget();
}

template <class T, std::size_t N>
void global_array<T, N>::update_ghosts(edges beyond) const {
  if (!FARSIDE_MUTANT(ghosts_before_the_barrier)) barrier(members());
  const array_view<T, N> mine = local();
  std::vector<future<void>> begun;
  if (!mine.empty())
    detail::for_each_ghost_box(mine.block(), ghosts(), [&](const box& around) {
      index strides;
      for (std::size_t d = 0; d < N; ++d) strides[d] = mine.stride(d);
      const box shown = beyond == edges::periodic ? around : intersection(around, all());
      detail::for_each_period(shape(), shown, [&](const box& part, const index& place) {
        index first = place;
        for (std::size_t d = 0; d < N; ++d) first[d] += shown.first[d];
        begun.push_back(
            detail::begin_patch(detail::reads_patch(), *state_, part, &mine.at(first), strides));
      });
    });
  when_all(std::move(begun)).get();
  barrier(members());
}

}  // namespace far::inline FARSIDE_BACKEND
