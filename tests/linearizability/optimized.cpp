// The checker for what suites record. They are compiled without optimisation, and it computes for
// long: they declare it (checks.hpp), and it is compiled here.
#include "checks.hpp"

namespace linearizability {

template result check(std::vector<event<map>>, const map&, options);
template result check(std::vector<event<set>>, const set&, options);
template result check(std::vector<event<queue>>, const queue&, options);
template result check(std::vector<event<counter>>, const counter&, options);
template result check(std::vector<event<keyed_store>>, const keyed_store&, options);

}  // namespace linearizability
