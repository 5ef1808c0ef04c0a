// far::concurrency: which operations of a container may run at the same time as this one.
//
//   map.find(key);                                                 // anything may
//   map.find(key, far::concurrency::find);                         // only finds do: cheaper
//   queue.push(x, far::concurrency::push);                         // only pushes do
//   map.insert(k, v, far::concurrency::insert | far::concurrency::find);
//
// Two operations run at the same time if no barrier of the container's team lies between them. What
// a call says is a promise about everybody's operations on that container. It picks the cheapest
// protocol that is right if the promise is kept (docs/costs.md). Checked builds (FARSIDE_CHECKED)
// report a promise that is broken, with both operations; other builds may lose or mix up data.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <cstdint>
#include <string>

namespace far::inline FARSIDE_BACKEND {

/// The kinds of operations that containers have.
enum class container_operation : std::uint32_t {
  find = 1,    ///< find, contains, reading elements
  insert = 2,  ///< insert
  modify = 4,  ///< insert_or_assign, modify, accumulate, writing elements
  erase = 8,   ///< erase
  push = 16,
  pop = 32
};

/// A set of them: what else may run at the same time.
enum class concurrency : std::uint32_t {
  nothing = 0,
  find = 1,
  insert = 2,
  modify = 4,
  erase = 8,
  push = 16,
  pop = 32,
  owner_only = 64,  ///< only by the rank that the element or the structure lives on
  everything = find | insert | modify | erase | push | pop
};

constexpr concurrency operator|(concurrency a, concurrency b) {
  return static_cast<concurrency>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr concurrency operator&(concurrency a, concurrency b) {
  return static_cast<concurrency>(static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b));
}
constexpr concurrency operator~(concurrency a) {
  return static_cast<concurrency>(~static_cast<std::uint32_t>(a));
}

/// Whether all of `some` is among `all`. Local; no communication.
constexpr bool includes(concurrency all, concurrency some) { return (all & some) == some; }

/// Whether operations of that kind are in the set. Local; no communication.
constexpr bool includes(concurrency all, container_operation one) {
  return includes(all, static_cast<concurrency>(one));
}

/// "find | insert" and the like. Local; no communication.
inline std::string to_text(concurrency set) {
  if (includes(set, concurrency::everything)) return "everything";
  constexpr const char* names[] = {"find", "insert", "modify",    "erase",
                                   "push", "pop",    "owner_only"};
  std::string result;
  for (unsigned i = 0; i < 7; ++i)
    if (includes(set, static_cast<concurrency>(1U << i)))
      result += (result.empty() ? "" : " | ") + std::string(names[i]);
  return result.empty() ? "nothing" : result;
}

}  // namespace far::inline FARSIDE_BACKEND
