// The protocol of far::device_queue: a ring of slots for any number of pushers and poppers. Two counters say
// how many elements may still come and go; two more give out places; each slot has a turn.
//
//   push:  room = fetch_add(filled, 1)      no room: fetch_sub(filled, 1), full
//          place = fetch_add(tail, 1)
//          wait for turn[place % n] == 2 * (place / n)         the pop before has left
//          store the element;  turn = 2 * (place / n) + 1      (release)
//   pop:   fetch_sub(ready, 1) <= 0: fetch_add(ready, 1), empty
//          place = fetch_add(head, 1)
//          wait for turn[place % n] == 2 * (place / n) + 1     the push has come
//          read the element;   turn = 2 * (place / n) + 2      (release)
//          fetch_sub(filled, 1)
//
//   slot:  free for round r (turn 2r) ---push---> full (2r + 1) ---pop---> free for round r + 1
//
// `ready` is raised by a push after its turn is stored, so that a pop which takes a permission finds some
// push complete, if not always that of its own place: then it waits for one that has begun. A push waits only
// for a pop that has begun, as `filled` is lowered after the turn. So every wait is for a thread that has
// begun and only has loads and stores left to do; on GPUs threads that have begun all go on (independent
// thread scheduling, from Volta on).
//
// Memory order: turns are stored with release and read with acquire, so that elements, of any size, are read
// after they were stored. The counters are relaxed: they give out numbers and no data.
//
// `full` and `empty` are told when that many pushes or pops have begun, of which some may give up: with
// others at work a queue that is nearly full may refuse a push.
#pragma once

#include <farside/base/kernel_atomics.hpp>
#include <farside/base/kernel_code.hpp>
#include <farside/base/mutants.hpp>

#include <cstdint>

namespace far::inline FARSIDE_BACKEND::detail {

/// Each on a line of its own: they are what all threads change.
struct device_queue_counters {
  alignas(128) std::uint64_t filled = 0;
  alignas(128) std::uint64_t tail = 0;
  alignas(128) std::uint64_t ready = 0;  ///< as a signed number
  alignas(128) std::uint64_t head = 0;
};

template <class T>
struct device_queue_slot {
  std::uint64_t turn;
  T element;
};

template <class T, class Atomics>
class device_queue_protocol {
 public:
  FARSIDE_KERNEL_CODE device_queue_protocol(device_queue_counters* counters,
                                            device_queue_slot<T>* slots, std::uint64_t count)
      : counters_(counters), slots_(slots), count_(count) {}

  /// False: it is full; 2 atomics. Else 3 atomics, 1 load or more, 2 stores.
  FARSIDE_KERNEL_CODE bool push(const T& element) const {
    if (add(&counters_->filled, 1) >= static_cast<std::int64_t>(count_) &&
        !FARSIDE_MUTANT(device_queue_never_full)) {
      add(&counters_->filled, -1);
      return false;
    }
    auto place = static_cast<std::uint64_t>(add(&counters_->tail, 1));
    device_queue_slot<T>& slot = slots_[place % count_];
    std::uint64_t round = 2 * (place / count_);
    if (!FARSIDE_MUTANT(device_queue_pushes_at_once)) await(slot, round);
    if (FARSIDE_MUTANT(device_queue_turn_before_element)) {
      Atomics::store_release(&slot.turn, round + 1);
      Atomics::pause();
    }
    slot.element = element;
    Atomics::store_release(&slot.turn, round + 1);
    add(&counters_->ready, 1);
    return true;
  }

  /// False: it is empty; 2 atomics. Else 3 atomics, 2 loads or more, 1 store.
  FARSIDE_KERNEL_CODE bool pop(T& element) const {
    if (add(&counters_->ready, -1) <= 0) {
      add(&counters_->ready, 1);
      return false;
    }
    auto place = static_cast<std::uint64_t>(add(&counters_->head, 1));
    device_queue_slot<T>& slot = slots_[place % count_];
    std::uint64_t round = 2 * (place / count_);
    if (!FARSIDE_MUTANT(device_queue_pops_at_once)) await(slot, round + 1);
    element = slot.element;
    Atomics::store_release(&slot.turn, round + 2);
    add(&counters_->filled, -1);
    return true;
  }

 private:
  FARSIDE_KERNEL_CODE static std::int64_t add(std::uint64_t* counter, std::int64_t by) {
    return static_cast<std::int64_t>(
        Atomics::template fetch_op<atomic_op::add>(counter, static_cast<std::uint64_t>(by)));
  }
  FARSIDE_KERNEL_CODE static void await(const device_queue_slot<T>& slot, std::uint64_t turn) {
    while (Atomics::load_acquire(&slot.turn) != turn) Atomics::pause();
  }

  device_queue_counters* counters_;
  device_queue_slot<T>* slots_;
  std::uint64_t count_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
