// expect: integers of 32 or 64 bits
// expect: far::accumulate
#include <farside/core/atomics.hpp>

#ifdef CONTROL
double right(far::ptr<double> p) { return far::swap(p, 1.0); }
#else
double wrong(far::ptr<double> p) { return far::fetch_add(p, 1.0); }
#endif
