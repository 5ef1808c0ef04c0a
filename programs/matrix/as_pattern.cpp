#include "read.hpp"

template void matrix_program::make<bool>(const request&);
template void matrix_program::convert<bool>(const request&);
template void matrix_program::show<bool>(const request&);
template void matrix_program::check<bool>(const request&);
