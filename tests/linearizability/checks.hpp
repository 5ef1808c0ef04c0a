// The checker, for suites that are compiled without optimisation: optimized.cpp has it.
#pragma once

#include "linearizability.hpp"
#include "store/store_specification.hpp"

#ifndef __OPTIMIZE__
namespace linearizability {

extern template result check(std::vector<event<map>>, const map&, options);
extern template result check(std::vector<event<set>>, const set&, options);
extern template result check(std::vector<event<queue>>, const queue&, options);
extern template result check(std::vector<event<counter>>, const counter&, options);
extern template result check(std::vector<event<keyed_store>>, const keyed_store&, options);

}  // namespace linearizability
#endif
