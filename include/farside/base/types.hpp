// The words that every room uses: ranks, and what an atomic can do to which integers.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <concepts>
#include <cstdint>

namespace far::inline FARSIDE_BACKEND {

using rank_t = std::uint32_t;

namespace detail {

enum class atomic_op { add, bit_and, bit_or, bit_xor, min, max, swap };

/// What an atomic works on: an integer of 32 or 64 bits.
template <class T>
concept atomic_word =
    std::integral<T> && !std::same_as<T, bool> && (sizeof(T) == 4 || sizeof(T) == 8);

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND
