// FARSIDE_MUTANT for builds with a planted bug: -DFARSIDE_MUTANT_CHOSEN=name says which, `none` is
// the control. A name that is not in `list` does not compile, here or where it is planted.
#pragma once

namespace far_mutants {

enum class name {
  none,
#define MUTANT(name, ...) name,
#include "list"
#undef MUTANT
};

inline constexpr name chosen = name::FARSIDE_MUTANT_CHOSEN;

}  // namespace far_mutants

#define FARSIDE_MUTANT(planted) (far_mutants::chosen == far_mutants::name::planted)
