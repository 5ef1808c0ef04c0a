// Errors. Each says what was done, why that is wrong, and what to do instead.
#pragma once

#include <farside/backend/select.hpp>

#include <sstream>
#include <stdexcept>
#include <string>

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

namespace detail {

/// Joins its arguments as `std::ostream` prints them.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// Throws `Error` with a message of the given parts. Out of line, as it is never the fast path.
template <class Error = usage_error, class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void raise(const Parts&... parts) {
  throw Error(text("farside: ", parts...));
}

}  // namespace detail
}  // namespace far
