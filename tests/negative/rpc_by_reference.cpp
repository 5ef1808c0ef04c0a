// expect: cannot be called with its arguments as they arrive
#include <farside/core/rpc.hpp>

#ifdef CONTROL
void right(int x) {
  far::rpc_ff(0, [](const int&) {}, x);
}
#else
void wrong(int x) {
  far::rpc_ff(0, [](int&) {}, x);
}
#endif
