// expect: integers of 32 or 64 bits
#include <farside/core/atomics.hpp>

#ifdef CONTROL
int right(far::ptr<int> p) { return far::fetch_add(p, 1); }
#else
char wrong(far::ptr<char> p) { return far::fetch_add(p, 1); }
#endif
