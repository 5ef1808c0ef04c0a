// expect: volatile types makes no sense
#include <farside/core/ptr.hpp>

#ifdef CONTROL
far::ptr<int> right;
#else
far::ptr<volatile int> wrong;
#endif
