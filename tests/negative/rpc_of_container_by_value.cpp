// expect: and containers, which it has by & or const&
#include <farside/containers/counter.hpp>
#include <farside/core/rpc.hpp>

#ifdef CONTROL
void right(far::counter& c) {
  far::rpc_ff(0, [](far::counter& there) { there.next(); }, c);
}
#else
void wrong(far::counter& c) {
  far::rpc_ff(0, [](far::counter there) { there.next(); }, c);
}
#endif
