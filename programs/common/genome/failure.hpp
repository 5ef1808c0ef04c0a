// What goes wrong for reasons that lie outside of the program (a file, a disk, an option), and how
// all ranks come to agree on it, so that a job says one line and ends.
#pragma once

#include <farside/core/runtime.hpp>

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace genome {

/// Its text is the whole line that the user gets to see.
struct failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Parts>
[[noreturn, gnu::cold]] void fail(const Parts&... parts) {
  throw failure(far::text(parts...));
}

/// `what` and why the system refused it.
[[noreturn, gnu::cold]] inline void fail_with_errno(const std::string& what, int number) {
  fail(what, ": ", std::strerror(number));
}

/// Runs work that communicates with nobody, and returns why it failed, or nothing.
template <class Work>
std::string reason_of(Work&& work) {
  try {
    work();
    return {};
  } catch (const failure& e) {
    return e.what();
  }
}

/// Collective: throws on all ranks if one of them has a reason, that of the lowest rank.
inline void agree(const std::string& reason) {
  if (far::all_reduce(reason.empty() ? 0 : 1, far::maximum()) == 0) return;
  for (const std::string& one : far::all_gather(reason))
    if (!one.empty()) throw failure(one);
}

/// Collective: work that communicates with nobody, on every rank.
template <class Work>
void together(Work&& work) {
  agree(reason_of(work));
}

/// Collective: work of rank 0 alone.
template <class Work>
void on_first_rank(Work&& work) {
  agree(far::rank() == 0 ? reason_of(work) : std::string());
}

/// main of a program: `body()` returns its exit status, and throws failures on all ranks alike.
/// Files that are not whole are gone before the job ends.
template <class Body>
int run_program(const char* name, int argc, char** argv, Body body) {
  return far::run(argc, argv, [&](int count, char** arguments) {
    try {
      return body(count, arguments);
    } catch (const failure& e) {
      far::barrier();
      throw far::refusal(far::text(name, ": ", e.what()));
    }
  });
}

}  // namespace genome
