// expect: a kernel is copied to the device byte by byte.*use a struct
#include <farside/device.hpp>
#include <string>

template <class T>
struct kernel {
  T what;
  FARSIDE_KERNEL_CODE void operator()(const far::device_view&, std::size_t) const {}
};

#ifdef CONTROL
void right(far::device_stream& on) { on.launch(1, kernel<int>{}); }
#else
void wrong(far::device_stream& on) { on.launch(1, kernel<std::string>{}); }
#endif
