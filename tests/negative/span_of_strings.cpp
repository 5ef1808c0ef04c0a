// expect: far memory holds trivially copyable types only
#include <farside/farside.hpp>
#include <string>
#include <vector>

#ifdef CONTROL
void right(std::vector<int>& values) { far::broadcast(std::span(values), 0); }
#else
void wrong(std::vector<std::string>& values) { far::broadcast(std::span(values), 0); }
#endif
