// What is known of a multiplication before it is done: which algorithm `automatic` takes, what each
// member multiplies and moves by any of them, and how long that takes, about.
//
//   far::stationary best = far::multiply_choose(a, b, c);
//   auto work = far::multiply_predict(a, b, c, far::stationary::a);       // work.bytes(), ...
//   double seconds = far::multiply_seconds(a, b, c, far::stationary::a);
//
// detail/multiply/model.hpp says what the model counts. It knows shapes of tiles and how many entries
// they have, so it is exact for dense matrices, and as good for sparse ones as their entries are spread
// evenly within tiles.
#pragma once

#include <farside/algorithms/multiply.hpp>

namespace far::inline FARSIDE_BACKEND {

/// How fast the members multiply and move tiles. Collective. Measured once a job, in about 2 ms; then
/// costs 1 all_reduce.
inline multiply_rates measure_rates(const team& over = world()) {
  return detail::measured_rates(over);
}

/// The algorithm that far::multiply takes with these options. Collective; costs what measure_rates
/// does, and time for a look at each piece.
template <class MatrixA, class MatrixB, class MatrixC>
stationary multiply_choose(const MatrixA& a, const MatrixB& b, const MatrixC& c,
                           const multiply_options& how = {}) {
  const auto left = detail::operand_of<MatrixA>::make(a);
  const auto right = detail::operand_of<MatrixB>::make(b);
  detail::require_factors(left, right, c);
  return detail::choose(left, right, c, how);
}

/// What each member multiplies and moves by an algorithm, which must not be `automatic`, without
/// stealing. Local; no communication, a look at each piece.
template <class MatrixA, class MatrixB, class MatrixC>
multiply_estimate multiply_predict(const MatrixA& a, const MatrixB& b, const MatrixC& c,
                                   stationary algorithm) {
  const auto left = detail::operand_of<MatrixA>::make(a);
  const auto right = detail::operand_of<MatrixB>::make(b);
  detail::require_factors(left, right, c);
  if (algorithm == stationary::automatic)
    detail::raise("multiply_predict was asked about no algorithm in particular. Give the one that ",
                  "far::multiply_choose returns.");
  return detail::estimate(detail::choose(left, right, c, {.algorithm = algorithm}), left, right, c);
}

/// How long that takes, in seconds. Collective; costs what measure_rates does, and a look at each
/// piece.
template <class MatrixA, class MatrixB, class MatrixC>
double multiply_seconds(const MatrixA& a, const MatrixB& b, const MatrixC& c, stationary algorithm,
                        stealing how = stealing::none) {
  using A = typename detail::operand_of<MatrixA>::type;
  using B = typename detail::operand_of<MatrixB>::type;
  const multiply_rates rates = detail::measured_rates(c.members());
  return detail::predict<A, B>(multiply_predict(a, b, c, algorithm), rates, how,
                               detail::cores_of(c.members()));
}

}  // namespace far::inline FARSIDE_BACKEND
