// Which types are complex numbers.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <complex>

namespace far::inline FARSIDE_BACKEND {

/// Whether T is a std::complex.
template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

}  // namespace far::inline FARSIDE_BACKEND
