// expect: far::device_queue<bool> would return std::vector<bool>.*push and pop unsigned char
#include <farside/device.hpp>

#ifdef CONTROL
std::size_t right(far::device_queue<unsigned char>& of) { return of.capacity(); }
#else
std::size_t wrong(far::device_queue<bool>& of) { return of.capacity(); }
#endif
