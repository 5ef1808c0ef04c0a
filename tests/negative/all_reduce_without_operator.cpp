// expect: a team stands where an operator is expected
#include <farside/core/collectives.hpp>

#ifdef CONTROL
int right(const far::team& some) { return far::all_reduce(1, std::plus<>(), some); }
#else
int wrong(const far::team& some) { return far::all_reduce(1, some); }
#endif
