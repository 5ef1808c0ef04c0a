// Errors. Each says what was done, why that is wrong, and what to do instead.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND {

/// What the library throws. Catch it to say more, not to go on: a rank that leaves its
/// `far::runtime` by an exception ends the job.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The library was used in a way that cannot work.
struct usage_error : error {
  using error::error;
};

/// The segment has no room for what was asked.
struct allocation_error : error {
  using error::error;
};

/// Another rank has died: what this rank waits for will never come.
struct rank_failure : error {
  using error::error;
};

/// The handler of an rpc threw on another rank. The text says which rank, and what.
struct rpc_error : error {
  using error::error;
};

/// Thrown by a program, out of the body of far::run: it cannot do what its user asks for, as a file
/// is missing or an option makes no sense. One rank or all of them may throw it. The job ends with
/// status 1, and the message, to which nothing is added, is the one line that is printed.
struct refusal : error {
  using error::error;
};

namespace detail {

/// A piece of a message: text, a number, or what has a function to_text. Not a stream, so that a
/// message costs the compiler little.
struct message_part {
  std::string text;

  message_part(const char* s) : text(s) {}
  message_part(const std::string& s) : text(s) {}
  message_part(std::string_view s) : text(s) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  message_part(T number) : text(std::to_string(number)) {}
  template <class T>
    requires requires(const T& value) { to_text(value); }
  message_part(const T& value) : text(to_text(value)) {}
};

inline std::string join(std::initializer_list<message_part> parts) {
  std::string result;
  for (const auto& part : parts) result += part.text;
  return result;
}

}  // namespace detail

/// Its arguments, one after another, as a string: text, numbers, and what has a function to_text.
/// Local; no communication.
template <class... Parts>
std::string text(const Parts&... parts) {
  return detail::join({detail::message_part(parts)...});
}

namespace detail {

template <class Error>
[[noreturn, gnu::cold, gnu::noinline]] void raise_joined(
    std::initializer_list<message_part> parts) {
  throw Error("farside: " + join(parts));
}

/// Throws `Error` with a message of the given parts.
template <class Error = usage_error, class... Parts>
[[noreturn, gnu::cold]] void raise(const Parts&... parts) {
  raise_joined<Error>({message_part(parts)...});
}

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND
