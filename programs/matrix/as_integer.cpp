#include "read.hpp"

template void matrix_program::make<std::int64_t>(const request&);
template void matrix_program::convert<std::int64_t>(const request&);
template void matrix_program::show<std::int64_t>(const request&);
template void matrix_program::check<std::int64_t>(const request&);
