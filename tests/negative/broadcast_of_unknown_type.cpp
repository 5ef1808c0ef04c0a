// expect: specialise far::serializer
#include <farside/core/collectives.hpp>
#include <memory>

#ifdef CONTROL
auto right() { return far::broadcast(1, 0); }
#else
auto wrong() { return far::broadcast(std::make_shared<int>(1), 0); }
#endif
