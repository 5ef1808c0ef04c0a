// expect: far memory holds trivially copyable types only
#include <farside/core/ptr.hpp>
#include <string>

#ifdef CONTROL
far::ptr<char> right;
#else
far::ptr<std::string> wrong;
#endif
