// expect: The operator stands before the promise
#include <farside/containers/hash_map.hpp>

#ifdef CONTROL
void right(far::hash_map<int, int>& map) { map.accumulate(1, 2, far::concurrency::modify); }
#else
void wrong(far::hash_map<int, int>& map) { map.accumulate(1, 2, far::engine::rma); }
#endif
