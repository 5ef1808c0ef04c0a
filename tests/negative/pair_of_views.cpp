// expect: means nothing on another rank
#include <farside/farside.hpp>
#include <string>
#include <string_view>

#ifdef CONTROL
auto right() { return far::all_gather(std::pair<int, std::string>(1, "a")); }
#else
auto wrong() { return far::all_gather(std::pair<int, std::string_view>(1, "a")); }
#endif
