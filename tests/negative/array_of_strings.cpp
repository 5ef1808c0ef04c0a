// expect: hold elements of a fixed length
#include <farside/containers/array.hpp>
#include <string>

#ifdef CONTROL
auto right() { return far::array<int>(0, 3); }
#else
auto wrong() { return far::array<std::string>(0, 3); }
#endif
