// expect: read-only
#include <farside/core/rma.hpp>

#ifdef CONTROL
void right(far::ptr<int> p) { far::put(p, 1); }
#else
void wrong(far::ptr<const int> p) { far::put(p, 1); }
#endif
