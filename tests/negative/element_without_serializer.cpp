// expect: specialise far::serializer
#include <farside/farside.hpp>
#include <memory>
#include <vector>

#ifdef CONTROL
auto right() { return far::to_bytes(std::vector<std::vector<int>>()); }
#else
auto wrong() { return far::to_bytes(std::vector<std::shared_ptr<int>>()); }
#endif
