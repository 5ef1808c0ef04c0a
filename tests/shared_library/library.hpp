// A shared library whose functions travel in messages.
#pragma once

#include <farside/core.hpp>

#include <string>

namespace sample {

/// What the library calls itself, sent as a pointer.
std::string describe(int x);

/// The same by a lambda that only the library knows.
far::future<std::string> ask(far::rank_t rank, int x);

}  // namespace sample
