// How a program refuses what it was asked for: one line on stderr, status 1, all ranks gone.
#pragma once

#include <farside/base/error.hpp>
#include <farside/core/draft.hpp>

#include <string>

namespace programs {

/// Ends the job: `farside PROGRAM: parts...` is all that is printed, and the status is 1. May be
/// called on one rank or on many; the first one's words count. Destructors run, on this rank;
/// others are ended wherever they are, so what must not be left behind is this rank's to remove.
template <class... Parts>
[[noreturn]] void refuse(const char* program, const Parts&... parts) {
  throw far::refusal(far::text("farside ", program, ": ", parts...));
}

/// Collective: returns if `problem` is empty on all ranks; else all of them refuse, by the words of
/// the first rank that has any.
inline void refuse_together(const char* program, const std::string& problem) {
  std::string first = far::first_problem(problem, far::world());
  if (!first.empty()) refuse(program, first);
}

}  // namespace programs
