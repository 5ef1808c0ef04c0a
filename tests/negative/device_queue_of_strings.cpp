// expect: elements of far::device_queue are trivially copyable
#include <farside/device.hpp>
#include <string>

#ifdef CONTROL
std::size_t right(far::device_queue<int>& of) { return of.capacity(); }
#else
std::size_t wrong(far::device_queue<std::string>& of) { return of.capacity(); }
#endif
