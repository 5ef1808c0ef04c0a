// far::promise: what may run at the same time as an operation of a container.
//
//   map.find(key);                                             // anything may
//   map.find(key, far::promise::find);                         // only finds do: cheaper
//   queue.push(x, far::promise::push);                         // only pushes do
//   map.insert(k, v, far::promise::insert | far::promise::find);
//
// Two operations run at the same time if no barrier of the container's team lies between them. A
// promise is about everybody's operations on that container, and picks the cheapest protocol that
// is right if it is kept (docs/costs.md). In checked builds (FARSIDE_CHECKED) a promise that is
// broken is an error that names both operations; in others it may lose or mix up data.
#pragma once

#include <farside/backend/select.hpp>

#include <cstdint>
#include <string>

namespace far::inline FARSIDE_BACKEND {

enum class promise : std::uint32_t {
  nothing = 0,
  find = 1,    ///< find, contains, reading elements
  insert = 2,  ///< insert
  modify = 4,  ///< insert_or_assign, modify, accumulate, writing elements
  erase = 8,   ///< erase
  push = 16,
  pop = 32,
  local = 64,  ///< only by the rank that the element or the structure lives on
  everything = find | insert | modify | erase | push | pop
};

constexpr promise operator|(promise a, promise b) {
  return static_cast<promise>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr promise operator&(promise a, promise b) {
  return static_cast<promise>(static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b));
}
constexpr promise operator~(promise a) {
  return static_cast<promise>(~static_cast<std::uint32_t>(a));
}

/// Whether all of `some` is among `all`. Local; no communication.
constexpr bool includes(promise all, promise some) { return (all & some) == some; }

/// "find | insert" and the like. Local; no communication.
inline std::string to_text(promise set) {
  if (includes(set, promise::everything)) return "everything";
  constexpr const char* names[] = {"find", "insert", "modify", "erase", "push", "pop", "local"};
  std::string result;
  for (unsigned i = 0; i < 7; ++i)
    if (includes(set, static_cast<promise>(1U << i)))
      result += (result.empty() ? "" : " | ") + std::string(names[i]);
  return result.empty() ? "nothing" : result;
}

}  // namespace far::inline FARSIDE_BACKEND
