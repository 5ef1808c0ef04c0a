// expect: For std::string, containers and the like use far::box
#include <farside/core/memory.hpp>
#include <string>

#ifdef CONTROL
auto right() { return far::alloc<char>(1); }
#else
auto wrong() { return far::alloc<std::string>(1); }
#endif
