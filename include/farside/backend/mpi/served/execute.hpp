// Atomics and additions that a header asks for, on memory of this node: by CPU atomics, as the
// ranks of the node make their own, so that all atomics of a word agree.
#pragma once

#include <farside/backend/mpi/served/message.hpp>
#include <farside/backend/shared/shared_memory.hpp>

#include <cstring>
#include <span>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served {

template <atomic_word T>
T execute_as(mapped_segments memory, const header& h) {
  T value, expected;
  std::memcpy(&value, &h.value, sizeof value);
  std::memcpy(&expected, &h.expected, sizeof expected);
  if (h.what == kind::load) return memory.atomic_load<T>(h.local, h.offset);
  if (h.what == kind::compare_swap)
    return memory.compare_swap<T>(h.local, h.offset, expected, value);
  switch (static_cast<atomic_op>(h.op)) {
    case atomic_op::add:
      return memory.fetch_op<atomic_op::add>(h.local, h.offset, value);
    case atomic_op::bit_and:
      return memory.fetch_op<atomic_op::bit_and>(h.local, h.offset, value);
    case atomic_op::bit_or:
      return memory.fetch_op<atomic_op::bit_or>(h.local, h.offset, value);
    case atomic_op::bit_xor:
      return memory.fetch_op<atomic_op::bit_xor>(h.local, h.offset, value);
    case atomic_op::min:
      return memory.fetch_op<atomic_op::min>(h.local, h.offset, value);
    case atomic_op::max:
      return memory.fetch_op<atomic_op::max>(h.local, h.offset, value);
    default:
      return memory.fetch_op<atomic_op::swap>(h.local, h.offset, value);
  }
}

/// The old value, in the first `h.width` bytes of the result as they lie in memory.
inline std::uint64_t execute(mapped_segments memory, const header& h) {
  std::uint64_t result = 0;
  auto keep = [&](auto old) { std::memcpy(&result, &old, sizeof old); };
  if (h.width == 8)
    h.is_signed ? keep(execute_as<std::int64_t>(memory, h))
                : keep(execute_as<std::uint64_t>(memory, h));
  else
    h.is_signed ? keep(execute_as<std::int32_t>(memory, h))
                : keep(execute_as<std::uint32_t>(memory, h));
  return result;
}

/// The additions of an accumulate, as the ranks of the node make theirs; `done` counts its bytes.
/// Whether that was all: false, if somebody else is adding to the same place.
inline bool execute_additions(mapped_segments memory, const header& h, const char* addends,
                              std::size_t& done, rank_t me) {
  auto add = [&]<component C>(C) {
    auto now =
        memory.accumulate(h.local, h.offset + done, reinterpret_cast<const C*>(addends + done),
                          (h.bytes - done) / sizeof(C), me);
    done += now.elements * sizeof(C);
    return done == h.bytes;
  };
  switch (static_cast<addend>(h.op)) {
    case addend::uint32:
      return add(std::uint32_t{});
    case addend::uint64:
      return add(std::uint64_t{});
    case addend::float32:
      return add(float{});
    default:
      return add(double{});
  }
}

/// The additions of many pieces, whose addends lie one after another; `done` and the result as above.
inline bool execute_additions(mapped_segments memory, const header& h, std::span<const run> where,
                              const char* addends, std::size_t& done, rank_t me) {
  std::size_t begin = 0;
  return for_each_piece(where, [&](std::uint64_t offset, std::size_t bytes) {
    if (done < begin + bytes) {
      header piece = h;
      piece.offset = offset;
      piece.bytes = bytes;
      std::size_t inside = done - begin;
      bool all = execute_additions(memory, piece, addends + begin, inside, me);
      done = begin + inside;
      if (!all) return false;
    }
    begin += bytes;
    return true;
  });
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served
