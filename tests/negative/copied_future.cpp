// expect: deleted
#include <farside/farside.hpp>

#ifdef CONTROL
far::future<int> right(far::future<int>& f) { return std::move(f); }
#else
far::future<int> wrong(far::future<int>& f) { return f; }
#endif
