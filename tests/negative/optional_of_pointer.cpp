// expect: means nothing on another rank
#include <farside/farside.hpp>
#include <optional>

#ifdef CONTROL
auto right() { return far::broadcast(std::optional<int>(1), 0); }
#else
auto wrong(int* p) { return far::broadcast(std::optional<int*>(p), 0); }
#endif
