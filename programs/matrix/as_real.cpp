#include "read.hpp"

template void matrix_program::make<double>(const request&);
template void matrix_program::convert<double>(const request&);
template void matrix_program::show<double>(const request&);
template void matrix_program::check<double>(const request&);
