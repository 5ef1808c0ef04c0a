// What the unit tests check with: CHECK prints what failed and where; main returns failures().
#pragma once

#include <cstdio>

inline int& failures() {
  static int count = 0;
  return count;
}

/// The exit status of a test program; it must have checked something.
inline int& checks() {
  static int count = 0;
  return count;
}
inline int verdict(const char* name) {
  if (checks() == 0) std::printf("%s: nothing was checked\n", name);
  if (failures() == 0) std::printf("%s: %d checks passed\n", name, checks());
  return failures() == 0 && checks() != 0 ? 0 : 1;
}

#define CHECK(...)                                                         \
  do {                                                                     \
    ++checks();                                                            \
    if (!(__VA_ARGS__)) {                                                  \
      ++failures();                                                        \
      std::printf("%s:%d: CHECK(%s)\n", __FILE__, __LINE__, #__VA_ARGS__); \
    }                                                                      \
  } while (false)

/// `expression` must throw an exception whose message contains `part`.
#define CHECK_THROWS(expression, part)                                                            \
  do {                                                                                            \
    std::string saw = "nothing was thrown";                                                       \
    bool good = false;                                                                            \
    try {                                                                                         \
      static_cast<void>(expression);                                                              \
    } catch (const std::exception& e) {                                                           \
      saw = e.what();                                                                             \
      good = saw.find(part) != std::string::npos;                                                 \
    }                                                                                             \
    ++checks();                                                                                   \
    if (!good) {                                                                                  \
      ++failures();                                                                               \
      std::printf("%s:%d: CHECK_THROWS(%s): %s\n", __FILE__, __LINE__, #expression, saw.c_str()); \
    }                                                                                             \
  } while (false)
