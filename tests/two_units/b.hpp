// What the second translation unit offers the first.
#pragma once

#include <farside/farside.hpp>

/// Adds this rank's number plus one to `*sum`.
void add_rank(far::ptr<long> sum);
