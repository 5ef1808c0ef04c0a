// expect: deleted
#include <farside/farside.hpp>

#ifdef CONTROL
void right(far::runtime&) {}
#else
far::runtime wrong(far::runtime& r) { return r; }
#endif
