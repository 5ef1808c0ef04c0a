// expect: device memory cannot be dereferenced: the CPU cannot reach it
#include <farside/device.hpp>

#ifdef CONTROL
long* right(far::device_ptr<long> p) { return p.local(); }
#else
long wrong(far::device_ptr<long> p) { return *p; }
#endif
