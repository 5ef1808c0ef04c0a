// A port onto one of the other back ends: translates kinds, which are values, to types.
#pragma once

#include <farside/backend/any/port.hpp>

#include <cstring>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::any_backend {

/// Calls f.template operator()<T>() with the type that a kind stands for.
template <class F>
auto with_word(word_kind kind, F f) {
  switch (kind) {
    case word_kind::i32:
      return f.template operator()<std::int32_t>();
    case word_kind::u32:
      return f.template operator()<std::uint32_t>();
    case word_kind::i64:
      return f.template operator()<std::int64_t>();
    default:
      return f.template operator()<std::uint64_t>();
  }
}

template <class F>
auto with_component(component_kind kind, F f) {
  switch (kind) {
    case component_kind::u32:
      return f.template operator()<std::uint32_t>();
    case component_kind::u64:
      return f.template operator()<std::uint64_t>();
    case component_kind::f32:
      return f.template operator()<float>();
    default:
      return f.template operator()<double>();
  }
}

template <class F>
auto with_op(atomic_op op, F f) {
  switch (op) {
    case atomic_op::add:
      return f.template operator()<atomic_op::add>();
    case atomic_op::bit_and:
      return f.template operator()<atomic_op::bit_and>();
    case atomic_op::bit_or:
      return f.template operator()<atomic_op::bit_or>();
    case atomic_op::bit_xor:
      return f.template operator()<atomic_op::bit_xor>();
    case atomic_op::min:
      return f.template operator()<atomic_op::min>();
    case atomic_op::max:
      return f.template operator()<atomic_op::max>();
    default:
      return f.template operator()<atomic_op::swap>();
  }
}

template <class Link>
class port_of final : public port {
 public:
  template <class... Start>
  explicit port_of(const Start&... start) : link_(start...) {}

  port_facts facts() const override {
    port_facts result;
    result.coherent = link_.coherent();
    result.async_progress = link_.async_progress();
    result.racy_get = link_.racy_get();
    result.watches_memory = watches_memory<Link>;
    result.rank = link_.rank();
    result.nprocs = link_.nprocs();
    result.segment_size = link_.segment_size();
    if constexpr (maps_segments<Link>) result.segments = link_.segments();
    return result;
  }
  void* address(rank_t rank, std::size_t offset) const override {
    return link_.address(rank, offset);
  }

  void put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) override {
    link_.put(rank, offset, from, bytes);
  }
  void get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) override {
    link_.get(rank, offset, to, bytes);
  }
  request async_put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) override {
    return request(link_.async_put(rank, offset, from, bytes));
  }
  request async_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) override {
    return request(link_.async_get(rank, offset, to, bytes));
  }

  bool accumulates(component_kind kind) const override {
    return with_component(kind, [&]<class C> {
      if constexpr (detail::accumulates<Link, C>)
        return link_.template accumulates<C>();
      else
        return false;
    });
  }
  accumulated accumulate(component_kind kind, rank_t rank, std::size_t offset, const void* from,
                         std::size_t n, rank_t me) override {
    return with_component(kind, [&]<class C> {
      if constexpr (detail::accumulates<Link, C>)
        return link_.accumulate(rank, offset, static_cast<const C*>(from), n, me);
      else
        return accumulated{};
    });
  }
  request async_accumulate(component_kind kind, rank_t rank, std::size_t offset, const void* from,
                           std::size_t n) override {
    return with_component(kind, [&]<class C> {
      return begin_accumulate(link_, rank, offset, static_cast<const C*>(from), n);
    });
  }

  run_limits limits_of_runs() const override {
    if constexpr (moves_runs<Link>)
      return link_.limits_of_runs();
    else
      return {};
  }
  request async_put_runs([[maybe_unused]] rank_t rank, [[maybe_unused]] std::span<const run> where,
                         [[maybe_unused]] const void* from,
                         [[maybe_unused]] std::size_t bytes) override {
    if constexpr (moves_runs<Link>)
      return request(link_.async_put_runs(rank, where, from, bytes));
    else
      return {};
  }
  request async_get_runs([[maybe_unused]] rank_t rank, [[maybe_unused]] std::span<const run> where,
                         [[maybe_unused]] void* to, [[maybe_unused]] std::size_t bytes) override {
    if constexpr (moves_runs<Link>)
      return request(link_.async_get_runs(rank, where, to, bytes));
    else
      return {};
  }
  request async_accumulate_runs([[maybe_unused]] component_kind kind, [[maybe_unused]] rank_t rank,
                                [[maybe_unused]] std::span<const run> where,
                                [[maybe_unused]] const void* from,
                                [[maybe_unused]] std::size_t n) override {
    if constexpr (moves_runs<Link>)
      return with_component(kind, [&]<class C> {
        return request(link_.async_accumulate_runs(rank, where, static_cast<const C*>(from), n));
      });
    else
      return {};
  }

  std::uint64_t fetch_op(atomic_op op, word_kind kind, rank_t rank, std::size_t offset,
                         std::uint64_t value) override {
    return with_op(op, [&]<atomic_op Op> {
      return with_word(kind, [&]<class T> {
        return static_cast<std::uint64_t>(
            link_.template fetch_op<Op>(rank, offset, static_cast<T>(value)));
      });
    });
  }
  std::uint64_t compare_swap(word_kind kind, rank_t rank, std::size_t offset,
                             std::uint64_t expected, std::uint64_t desired) override {
    return with_word(kind, [&]<class T> {
      return static_cast<std::uint64_t>(
          link_.compare_swap(rank, offset, static_cast<T>(expected), static_cast<T>(desired)));
    });
  }
  std::uint64_t atomic_load(word_kind kind, rank_t rank, std::size_t offset) override {
    return with_word(kind, [&]<class T> {
      return static_cast<std::uint64_t>(link_.template atomic_load<T>(rank, offset));
    });
  }
  request async_fetch_op(atomic_op op, word_kind kind, rank_t rank, std::size_t offset,
                         std::uint64_t value, void* old) override {
    return with_op(op, [&]<atomic_op Op> {
      return with_word(kind, [&]<class T> {
        return request(link_.template async_fetch_op<Op>(rank, offset, static_cast<T>(value),
                                                         *static_cast<T*>(old)));
      });
    });
  }
  request async_compare_swap(word_kind kind, rank_t rank, std::size_t offset,
                             std::uint64_t expected, std::uint64_t desired, void* old) override {
    return with_word(kind, [&]<class T> {
      return request(link_.async_compare_swap(rank, offset, static_cast<T>(expected),
                                              static_cast<T>(desired), *static_cast<T*>(old)));
    });
  }

  void flush(rank_t rank) override { link_.flush(rank); }
  void flush() override { link_.flush(); }
  void signal(rank_t rank, std::size_t offset) override { link_.signal(rank, offset); }
  bool await(std::size_t offset, std::uint64_t count) override {
    return link_.await(offset, count);
  }
  bool start_barrier() override {
    if constexpr (has_barrier<Link>)
      return link_.start_barrier();
    else
      return false;
  }
  bool await_barrier() override {
    if constexpr (has_barrier<Link>)
      return link_.await_barrier();
    else
      return true;
  }
  void progress() override { link_.progress(); }
  void pause() override { link_.pause(); }
  std::int64_t lost_rank() override { return link_.lost_rank(); }
  void finish() override { link_.finish(); }
  void abort(const char* why) override { link_.abort(why); }

  void bind([[maybe_unused]] const rank_binding& to) override {
    if constexpr (simulates_machine<Link>)
      link_.machine().bind(link_.rank(),
                           {to.context, to.enter, to.describe, to.stands, to.explain});
  }
  void terminated([[maybe_unused]] bool excusable) override {
    if constexpr (simulates_machine<Link>) link_.machine().terminated(link_.rank(), excusable);
  }
  bool allocation_fails() override {
    if constexpr (simulates_machine<Link>)
      return link_.machine().allocation_fails();
    else
      return false;
  }

  void note_heap([[maybe_unused]] std::size_t begin, [[maybe_unused]] std::size_t end) override {
    if constexpr (watches_memory<Link>) link_.note_heap(begin, end);
  }
  void note_allocated([[maybe_unused]] rank_t rank, [[maybe_unused]] std::size_t offset,
                      [[maybe_unused]] std::size_t bytes) override {
    if constexpr (watches_memory<Link>) link_.note_allocated(rank, offset, bytes);
  }
  std::string note_freed([[maybe_unused]] rank_t rank,
                         [[maybe_unused]] std::size_t offset) override {
    if constexpr (watches_memory<Link>)
      return link_.note_freed(rank, offset);
    else
      return "";
  }
  void heap_access([[maybe_unused]] bool begins) override {
    if constexpr (watches_memory<Link>) link_.heap_access(begins);
  }

 private:
  /// With its own link parameter: what only some links have is looked up where one is used.
  template <class L, class C>
  static request begin_accumulate(L& link, rank_t rank, std::size_t offset, const C* from,
                                  std::size_t n) {
    if constexpr (starts_accumulates<L, C>)
      return request(link.async_accumulate(rank, offset, from, n));
    else if constexpr (detail::accumulates<L, C>)
      return link.accumulate(rank, offset, from, n, link.rank()), request();
    else
      return request();
  }

  Link link_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::any_backend
