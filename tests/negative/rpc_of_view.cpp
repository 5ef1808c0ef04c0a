// expect: means nothing on another rank
#include <farside/core/rpc.hpp>

#ifdef CONTROL
void right() {
  far::rpc_ff(0, [](std::string) {}, std::string("text"));
}
#else
void wrong() {
  far::rpc_ff(0, [](std::string) {}, "text");
}
#endif
