// A product in device memory. The rest of the program knows matrices in host memory alone, so that nvcc
// compiles one source of it.
#pragma once

#include <farside/algorithms/multiply.hpp>
#include <farside/algorithms/multiply_options.hpp>

#include <memory>

namespace multiply_program {

/// "cuda" or "stand-in".
const char* device_kind();

/// Copies of A and B in device memory, cut as they are, and room for C.
template <class A, class B, class C>
class device_product {
 public:
  /// Collective. Throws far::error on all ranks where there is no device memory, or not enough.
  device_product(const A& a, const B& b, const C& c);
  ~device_product();
  /// Collective: begins C = A B.
  far::multiplication begin(const far::multiply_options& how);
  /// Collective: the product becomes `c`.
  void copy_to(C& c) const;

 private:
  struct matrices;
  std::unique_ptr<matrices> on_device_;
};

}  // namespace multiply_program
