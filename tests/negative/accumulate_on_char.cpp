// expect: far::accumulate adds integers of 32 or 64 bits
#include <farside/core/accumulate.hpp>

#ifdef CONTROL
void right(far::ptr<float> p) { far::accumulate(p, 1.5f); }
#else
void wrong(far::ptr<char> p) { far::accumulate(p, 1); }
#endif
