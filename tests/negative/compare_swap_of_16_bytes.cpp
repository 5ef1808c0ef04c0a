// expect: exactly 4 or 8 bytes
#include <farside/core/atomics.hpp>

struct wide {
  long a, b;
};

#ifdef CONTROL
long right(far::ptr<long> p) { return far::compare_swap(p, 1, 2); }
#else
wide wrong(far::ptr<wide> p) { return far::compare_swap(p, wide{1, 2}, wide{3, 4}); }
#endif
