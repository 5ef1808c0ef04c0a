// any: the transport is chosen when the program starts (`farside run --backend NAME`), not when it
// is compiled. Without a choice it is smp, which is built in; all others are carriers
// (carrier.hpp).
//
// Where ranks share memory (smp, MPI on one node) puts, gets and atomics are the loads, stores and
// CPU instructions that they are on smp. Elsewhere each is one virtual call more than in a program
// built for that back end alone: some nanoseconds, where the transport takes hundreds.
#pragma once

#include <farside/backend/any/carrier.hpp>
#include <farside/backend/any/port_of.hpp>
#include <farside/backend/smp/backend.hpp>

#include <memory>
#include <span>
#include <tuple>

namespace far::inline FARSIDE_BACKEND::detail::any_backend {

class backend {
 public:
  using request = any_backend::request;
  static constexpr const char* name = "any";

  explicit backend(const start_options& options) {
    const carrier* by = chosen_carrier();
    if (by == nullptr)
      port_ = std::make_unique<port_of<smp_backend::backend>>(options);
    else
      port_.reset(by->open(options));
    facts_ = port_->facts();
  }

  bool coherent() const { return facts_.coherent; }
  bool async_progress() const { return facts_.async_progress; }
  bool racy_get() const { return facts_.racy_get; }
  rank_t rank() const { return facts_.rank; }
  rank_t nprocs() const { return facts_.nprocs; }
  std::size_t segment_size() const { return facts_.segment_size; }

  std::tuple<fixed_segments> fast_links() const { return {facts_.segments.fixed()}; }
  mapped_segments segments() const { return facts_.segments; }

  void* address(rank_t rank, std::size_t offset) const {
    if (facts_.segments) [[likely]]
      return facts_.segments.address(rank, offset);
    return port_->address(rank, offset);
  }

  void put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    if (facts_.segments) [[likely]]
      return facts_.segments.put(rank, offset, from, bytes);
    port_->put(rank, offset, from, bytes);
  }
  void get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    if (facts_.segments) [[likely]]
      return facts_.segments.get(rank, offset, to, bytes);
    port_->get(rank, offset, to, bytes);
  }
  request async_put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    if (!facts_.segments) [[unlikely]]
      return port_->async_put(rank, offset, from, bytes);
    facts_.segments.put(rank, offset, from, bytes);
    return {};
  }
  request async_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    if (!facts_.segments) [[unlikely]]
      return port_->async_get(rank, offset, to, bytes);
    facts_.segments.get(rank, offset, to, bytes);
    return {};
  }

  template <component C>
  bool accumulates() const {
    return port_->accumulates(kind_of_component<C>());
  }
  template <component C>
  accumulated accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n, rank_t me) {
    if (facts_.segments) [[likely]]
      return facts_.segments.accumulate(rank, offset, from, n, me);
    return port_->accumulate(kind_of_component<C>(), rank, offset, from, n, me);
  }
  template <component C>
  request async_accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n) {
    return port_->async_accumulate(kind_of_component<C>(), rank, offset, from, n);
  }

  run_limits limits_of_runs() const { return port_->limits_of_runs(); }
  request async_put_runs(rank_t rank, std::span<const run> where, const void* from,
                         std::size_t bytes) {
    return port_->async_put_runs(rank, where, from, bytes);
  }
  request async_get_runs(rank_t rank, std::span<const run> where, void* to, std::size_t bytes) {
    return port_->async_get_runs(rank, where, to, bytes);
  }
  template <component C>
  request async_accumulate_runs(rank_t rank, std::span<const run> where, const C* from,
                                std::size_t n) {
    return port_->async_accumulate_runs(kind_of_component<C>(), rank, where, from, n);
  }

  template <atomic_op Op, atomic_word T>
  T fetch_op(rank_t rank, std::size_t offset, T value) {
    if (facts_.segments) [[likely]]
      return facts_.segments.fetch_op<Op>(rank, offset, value);
    return static_cast<T>(
        port_->fetch_op(Op, kind_of_word<T>(), rank, offset, static_cast<std::uint64_t>(value)));
  }
  template <atomic_word T>
  T compare_swap(rank_t rank, std::size_t offset, T expected, T desired) {
    if (facts_.segments) [[likely]]
      return facts_.segments.compare_swap(rank, offset, expected, desired);
    return static_cast<T>(port_->compare_swap(kind_of_word<T>(), rank, offset,
                                              static_cast<std::uint64_t>(expected),
                                              static_cast<std::uint64_t>(desired)));
  }
  template <atomic_word T>
  T atomic_load(rank_t rank, std::size_t offset) {
    if (facts_.segments) [[likely]]
      return facts_.segments.atomic_load<T>(rank, offset);
    return static_cast<T>(port_->atomic_load(kind_of_word<T>(), rank, offset));
  }
  template <atomic_op Op, atomic_word T>
  request async_fetch_op(rank_t rank, std::size_t offset, T value, T& old) {
    if (!facts_.segments) [[unlikely]]
      return port_->async_fetch_op(Op, kind_of_word<T>(), rank, offset,
                                   static_cast<std::uint64_t>(value), &old);
    old = facts_.segments.fetch_op<Op>(rank, offset, value);
    return {};
  }
  template <atomic_word T>
  request async_compare_swap(rank_t rank, std::size_t offset, T expected, T desired, T& old) {
    if (!facts_.segments) [[unlikely]]
      return port_->async_compare_swap(kind_of_word<T>(), rank, offset,
                                       static_cast<std::uint64_t>(expected),
                                       static_cast<std::uint64_t>(desired), &old);
    old = facts_.segments.compare_swap(rank, offset, expected, desired);
    return {};
  }

  void flush(rank_t rank) { facts_.segments ? facts_.segments.flush() : port_->flush(rank); }
  void flush() { facts_.segments ? facts_.segments.flush() : port_->flush(); }
  void signal(rank_t rank, std::size_t offset) { port_->signal(rank, offset); }
  bool await(std::size_t offset, std::uint64_t count) { return port_->await(offset, count); }
  bool start_barrier() { return port_->start_barrier(); }
  bool await_barrier() { return port_->await_barrier(); }
  void progress() { port_->progress(); }
  void pause() { port_->pause(); }
  std::int64_t lost_rank() { return port_->lost_rank(); }
  void finish() { port_->finish(); }
  void abort(const char* why) { port_->abort(why); }

  // Where the carrier watches memory.
  void note_heap(std::size_t begin, std::size_t end) {
    if (facts_.watches_memory) port_->note_heap(begin, end);
  }
  void note_allocated(rank_t rank, std::size_t offset, std::size_t bytes) {
    if (facts_.watches_memory) port_->note_allocated(rank, offset, bytes);
  }
  std::string note_freed(rank_t rank, std::size_t offset) {
    return facts_.watches_memory ? port_->note_freed(rank, offset) : std::string();
  }
  void heap_access(bool begins) {
    if (facts_.watches_memory) port_->heap_access(begins);
  }

  /// What carries this job, for reports.
  const char* carried_by() const {
    const carrier* by = the_carrier().use;
    return by == nullptr ? "smp" : by->name;
  }

  // What the runtime tells the simulated machine, if it is one.
  class machine_link {
   public:
    explicit machine_link(port& of) : port_(of) {}
    void bind(rank_t, const rank_binding& to) { port_.bind(to); }
    void terminated(rank_t, bool excusable) { port_.terminated(excusable); }
    bool allocation_fails() { return port_.allocation_fails(); }

   private:
    port& port_;
  };
  machine_link machine() { return machine_link(*port_); }

 private:
  std::unique_ptr<port> port_;
  port_facts facts_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::any_backend
