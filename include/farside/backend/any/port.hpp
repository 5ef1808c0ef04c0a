// What the back end `any` asks of what carries it: the contract of backend/concept.hpp as virtual
// functions, so that a program is compiled once and finds its transport when it starts.
//
//   the program (FARSIDE_USE_ANY)          a carrier: farside_NAME.so
//   backend --port*--------------------->  port_of<NAME_backend::backend>
//           <----carrier (carrier.hpp)---
//
// Both are compiled in the namespace of `any`, from headers of one version (carrier.hpp compares
// them): types, errors among them, are the same on both sides.
#pragma once

#include <farside/backend/any/request.hpp>
#include <farside/backend/concept.hpp>
#include <farside/backend/shared/add_in_place.hpp>
#include <farside/backend/shared/runs.hpp>
#include <farside/backend/shared/shared_memory.hpp>

#include <span>
#include <string>

namespace far::inline FARSIDE_BACKEND::detail::any_backend {

/// The types of an atomic's word.
enum class word_kind { i32, u32, i64, u64 };
/// Those of what an accumulate adds.
enum class component_kind { u32, u64, f32, f64 };

template <atomic_word T>
constexpr word_kind kind_of_word() {
  if (sizeof(T) == 4) return std::is_signed_v<T> ? word_kind::i32 : word_kind::u32;
  return std::is_signed_v<T> ? word_kind::i64 : word_kind::u64;
}
template <component C>
constexpr component_kind kind_of_component() {
  if (std::is_integral_v<C>) return sizeof(C) == 4 ? component_kind::u32 : component_kind::u64;
  return sizeof(C) == 4 ? component_kind::f32 : component_kind::f64;
}

/// What belongs to a rank beyond its stack, for a machine that runs ranks in turns on one thread.
struct rank_binding {
  void* context = nullptr;
  void (*enter)(void* context) = nullptr;
  std::string (*describe)(void* context) = nullptr;  ///< what it waits for
  std::uint64_t (*stands)(void* context) = nullptr;  ///< see sim_backend::world::binding
  std::string (*explain)() = nullptr;
};

/// What does not change during a job.
struct port_facts {
  bool coherent = false, async_progress = false, racy_get = false;
  bool watches_memory = false;  ///< see the concept of that name
  rank_t rank = 0, nprocs = 1;
  std::size_t segment_size = 0;
  mapped_segments segments{};  ///< null unless all ranks share memory
};

class port {
 public:
  virtual ~port() = default;
  virtual port_facts facts() const = 0;
  virtual void* address(rank_t rank, std::size_t offset) const = 0;

  virtual void put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) = 0;
  virtual void get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) = 0;
  virtual request async_put(rank_t rank, std::size_t offset, const void* from,
                            std::size_t bytes) = 0;
  virtual request async_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) = 0;

  virtual bool accumulates(component_kind) const = 0;
  virtual accumulated accumulate(component_kind, rank_t rank, std::size_t offset, const void* from,
                                 std::size_t n, rank_t me) = 0;
  virtual request async_accumulate(component_kind, rank_t rank, std::size_t offset,
                                   const void* from, std::size_t n) = 0;

  virtual run_limits limits_of_runs() const = 0;
  virtual request async_put_runs(rank_t rank, std::span<const run> where, const void* from,
                                 std::size_t bytes) = 0;
  virtual request async_get_runs(rank_t rank, std::span<const run> where, void* to,
                                 std::size_t bytes) = 0;
  virtual request async_accumulate_runs(component_kind, rank_t rank, std::span<const run> where,
                                        const void* from, std::size_t n) = 0;

  // Words of 32 bits travel in the lower half.
  virtual std::uint64_t fetch_op(atomic_op, word_kind, rank_t rank, std::size_t offset,
                                 std::uint64_t value) = 0;
  virtual std::uint64_t compare_swap(word_kind, rank_t rank, std::size_t offset,
                                     std::uint64_t expected, std::uint64_t desired) = 0;
  virtual std::uint64_t atomic_load(word_kind, rank_t rank, std::size_t offset) = 0;
  virtual request async_fetch_op(atomic_op, word_kind, rank_t rank, std::size_t offset,
                                 std::uint64_t value, void* old) = 0;
  virtual request async_compare_swap(word_kind, rank_t rank, std::size_t offset,
                                     std::uint64_t expected, std::uint64_t desired, void* old) = 0;

  virtual void flush(rank_t rank) = 0;
  virtual void flush() = 0;
  virtual void signal(rank_t rank, std::size_t offset) = 0;
  virtual bool await(std::size_t offset, std::uint64_t count) = 0;
  virtual bool start_barrier() = 0;
  virtual bool await_barrier() = 0;
  virtual void progress() = 0;
  virtual void pause() = 0;
  virtual std::int64_t lost_rank() = 0;
  virtual void finish() = 0;
  virtual void abort(const char* why) = 0;

  // What the runtime tells a simulated machine; others hear nothing.
  virtual void bind(const rank_binding& to) = 0;
  virtual void terminated(bool excusable) = 0;
  virtual bool allocation_fails() = 0;

  // What the heaps tell a back end that watches memory; others are not called.
  virtual void note_heap(std::size_t begin, std::size_t end) = 0;
  virtual void note_allocated(rank_t rank, std::size_t offset, std::size_t bytes) = 0;
  virtual std::string note_freed(rank_t rank, std::size_t offset) = 0;
  virtual void heap_access(bool begins) = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::any_backend
