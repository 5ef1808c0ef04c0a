#include "read.hpp"

template void matrix_program::make<std::complex<double>>(const request&);
template void matrix_program::convert<std::complex<double>>(const request&);
template void matrix_program::show<std::complex<double>>(const request&);
template void matrix_program::check<std::complex<double>>(const request&);
