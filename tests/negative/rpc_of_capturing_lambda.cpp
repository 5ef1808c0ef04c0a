// expect: cannot carry a lambda that captures
#include <farside/core/rpc.hpp>

#ifdef CONTROL
far::future<int> right(int x) {
  return far::rpc(0, [](int y) { return y; }, x);
}
#else
far::future<int> wrong(int x) {
  return far::rpc(0, [&x] { return x; });
}
#endif
