// expect: no_such_mutant
// expect: planted_but_not_listed
// before the library
#define FARSIDE_MUTANTS "../../../tests/mutants/mutants.hpp"  // seen from base/mutants.hpp
#ifdef CONTROL
#define FARSIDE_MUTANT_CHOSEN none
#else
#define FARSIDE_MUTANT_CHOSEN no_such_mutant
#endif
#include <farside/base/cpu_atomics.hpp>

#ifdef CONTROL
static_assert(!FARSIDE_MUTANT(atomics_relaxed));
#else
static_assert(!FARSIDE_MUTANT(planted_but_not_listed));
#endif
