// expect: far::hash does not know how to hash this type
#include <farside/containers/hash_map.hpp>

struct padded {
  char c;
  int i;
  friend bool operator==(const padded&, const padded&) = default;
};

#ifdef CONTROL
std::uint64_t right() { return far::hash<int>()(1); }
#else
std::uint64_t wrong() { return far::hash<padded>()(padded{}); }
#endif
