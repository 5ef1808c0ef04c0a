// Bugs that are planted on purpose, to see that a test finds each of them (docs/testing.md). In
// every build but those of scripts/mutants FARSIDE_MUTANT(name) is false, and the compiler drops
// what it guards.
#pragma once

#if defined(FARSIDE_MUTANTS)
#include FARSIDE_MUTANTS
#else
#define FARSIDE_MUTANT(name) false
#endif
