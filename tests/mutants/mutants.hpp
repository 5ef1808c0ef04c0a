// FARSIDE_MUTANT for builds with planted bugs. One that the adversary hunts, or the late MPI, is
// chosen when the program starts, by the variable FAR_MUTANT, so that one program has all of them.
// One that needs real cores may be what the compiler makes of a memory order:
// -DFARSIDE_MUTANT_CHOSEN=name says which. Without either there is none, which is the control. A
// name that is not in `list` does not compile, here or where it is planted.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#if !defined(FARSIDE_MUTANT_CHOSEN)
#define FARSIDE_MUTANT_CHOSEN none
#endif

namespace far_mutants {

enum class name {
  none,
#define MUTANT(name, ...) name,
#include "list"
#undef MUTANT
};

struct mutant {
  std::string_view name, hunter;
};
inline constexpr mutant list[] = {
    {"none", "sim"},
#define MUTANT(name, what, where, hunter, sources) {#name, #hunter},
#include "list"
#undef MUTANT
};

constexpr bool is_chosen_at_start(std::string_view hunter) {
  return hunter == "sim" || hunter == "mpi";
}

inline const name chosen_at_start = [] {
  const char* wanted = std::getenv("FAR_MUTANT");
  if (wanted == nullptr) return name::none;
  for (const mutant& m : list)
    if (m.name == wanted && is_chosen_at_start(m.hunter)) return static_cast<name>(&m - list);
  std::fprintf(stderr,
               "FAR_MUTANT=%s: no mutant that is chosen when a program starts has that name\n",
               wanted);
  std::abort();
}();

constexpr bool planted(name n) {
  if (is_chosen_at_start(list[static_cast<int>(n)].hunter)) return n == chosen_at_start;
  return n == name::FARSIDE_MUTANT_CHOSEN;
}

}  // namespace far_mutants

#define FARSIDE_MUTANT(bug) far_mutants::planted(far_mutants::name::bug)
