// What `farside matrix` does, for each type of values.
#pragma once

#include "options.hpp"

namespace matrix_program {

/// Collective.
template <class T>
void make(const request& asked);
template <class T>
void convert(const request& asked);
template <class T>
void show(const request& asked);
template <class T>
void check(const request& asked);

/// What a file is read as, unless --type says something else.
far::matrix_read_options read_options(const request& asked);

}  // namespace matrix_program
