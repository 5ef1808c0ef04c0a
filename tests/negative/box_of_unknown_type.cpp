// expect: specialise far::serializer
#include <farside/farside.hpp>
#include <functional>

#ifdef CONTROL
auto right() { return far::box<std::string>::pack("a"); }
#else
auto wrong() { return far::box<std::function<void()>>::pack(std::function<void()>()); }
#endif
