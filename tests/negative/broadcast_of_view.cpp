// expect: means nothing on another rank
#include <farside/core/collectives.hpp>
#include <string>
#include <string_view>

#ifdef CONTROL
auto right() { return far::broadcast(std::string("a"), 0); }
#else
auto wrong() { return far::broadcast(std::string_view("a"), 0); }
#endif
