// expect: no viable conversion|could not convert|cannot convert|conversion from .* requested
#include <farside/core/ptr.hpp>

#ifdef CONTROL
far::ptr<const int> right(far::ptr<int> p) { return p; }
#else
far::ptr<int> wrong(far::ptr<const int> p) { return p; }
#endif
