// expect: aligns to 16 bytes
#include <farside/core/memory.hpp>

struct alignas(64) line {
  char bytes[64];
};

#ifdef CONTROL
auto right() { return far::alloc<line>(1); }
#else
auto wrong() { return far::alloc_on<line>(0); }
#endif
