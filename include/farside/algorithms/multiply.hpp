// far::multiply: products of matrices that are spread over a team.
//
//   far::multiply(a, b, c);                                          // C = A B; collective
//   far::multiply(a, far::transposed(b), c);
//   far::multiply(a, b, c, far::min_plus<double>());                 // over another semiring
//   far::multiply(a, b, c, {.algorithm = far::stationary::a, .stealing = far::stealing::near});
//
//   auto work = far::async_multiply(a, b, c);                        // collective; begins
//   while (work.step()) something_else();                            // a piece at a time, or ...
//   work.wait();                                                     // ... all that is left; collective
//   far::print(work.report());                                       // who did what; collective
//
//   A                    B                    C
//   far::matrix          far::matrix          far::matrix            dense (GEMM)
//   far::sparse_matrix   far::matrix          far::matrix            sparse by dense (SpMM)
//   far::sparse_matrix   far::sparse_matrix   far::sparse_matrix     sparse (SpGEMM)
//
// Members fetch the tiles that they need and send partial tiles to their owners, without waiting for
// each other: containers/matrix_layout.hpp says how matrices are cut, multiply_options.hpp which
// algorithms there are, docs/protocols/multiply.md how they work. Tiles that fit each other: those of
// A are as high as those of C and as wide as those of B are high, and so on; where they do not fit,
// slices are fetched.
#pragma once

#include <farside/algorithms/detail/multiply/algorithms.hpp>
#include <farside/algorithms/multiply_options.hpp>

#include <memory>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

/// A multiplication that was begun. What it multiplies must outlive it. Destroying one that was not
/// waited for does that, and is collective then.
class [[nodiscard]] multiplication {
 public:
  /// For the library. Local; no communication.
  explicit multiplication(std::unique_ptr<detail::multiply_work> work) : work_(std::move(work)) {}
  multiplication(multiplication&&) noexcept = default;
  multiplication& operator=(multiplication&&) noexcept = default;
  ~multiplication() {
    if (work_ && !work_->finished() && std::uncaught_exceptions() <= unwinding_) work_->finish();
  }

  /// Multiplies two tiles, while those after them are on their way, and adds up what has come here.
  /// One-sided; waits for no member but for room for partial tiles. False: nothing is left to begin.
  bool step() { return work_->step(); }
  /// All that is left of this member's part, and then until all members are done. Collective; C is
  /// complete on return, for all to see. Throws far::allocation_error on all members if one has no
  /// room; a dense C may then hold anything, a sparse one is as it was.
  void wait() { work_->finish(); }
  /// What each member did, and how long it took. Collective, after wait. 1 all_gather.
  multiply_report report() const { return work_->report(); }

 private:
  std::unique_ptr<detail::multiply_work> work_;
  int unwinding_ = std::uncaught_exceptions();
};

namespace detail {

template <class A, class B, class C>
void require_factors(const A& a, const B& b, const C& c) {
  if (a.shape().columns != b.shape().rows || a.shape().rows != c.shape().rows ||
      b.shape().columns != c.shape().columns)
    raise("multiply: a matrix of ", a.shape(), " and one of ", b.shape(), " have no product of ",
          c.shape(), ". With A of m x k and B of k x n, C is m x n.");
  if (static_cast<const void*>(&a.matrix()) == &c || static_cast<const void*>(&b.matrix()) == &c)
    raise("multiply: '", c.name(), "' is a factor and the product too. Give another matrix for C, ",
          "and copy_from it afterwards.");
  auto& over = c.members().members();
  if (&a.members().members() != &over || &b.members().members() != &over)
    raise("multiply: '", a.name(), "', '", b.name(), "' and '", c.name(),
          "' are not spread over one team. Make them with the same container_options::over.");
}

template <class A, class B, class C>
bool tiles_fit(const A& a, const B& b, const C& c) {
  return a.tile_shape().rows == c.tile_shape().rows &&
         a.tile_shape().columns == b.tile_shape().rows &&
         b.tile_shape().columns == c.tile_shape().columns;
}
template <class A, class B, class C>
bool grids_fit(const A& a, const B& b, const C& c) {
  return !A::is_transposed && !B::is_transposed && a.process_grid() == c.layout().process_grid() &&
         b.process_grid() == c.layout().process_grid();
}

/// The algorithm that is asked for, if it can do this; else an error. `automatic`, which is collective:
/// the one that takes least time, as the model says.
template <class A, class B, class C>
stationary choose(const A& a, const B& b, const C& c, const multiply_options& how) {
  stationary chosen = how.algorithm;
  const bool fit = tiles_fit(a, b, c);
  if (chosen == stationary::automatic) {
    if (!fit) return stationary::slices;
    const multiply_rates rates = measured_rates(c.members());
    double best = 0;
    for (stationary candidate : {stationary::c, stationary::a, stationary::b, stationary::layers}) {
      if (how.stealing != stealing::none && candidate != stationary::c &&
          candidate != stationary::a)
        continue;
      const double time =
          predict<A, B>(estimate(candidate, a, b, c), rates, how.stealing, cores_of(c.members()));
      // Stationary C, the first one, unless another is clearly better: it takes least memory.
      if (chosen == stationary::automatic || time < 0.95 * best) chosen = candidate, best = time;
    }
    return chosen;
  }
  if (chosen != stationary::slices && !fit)
    raise("multiply: tiles of '", a.name(), "' (", a.tile_shape(), "), '", b.name(), "' (",
          b.tile_shape(), ") and '", c.name(), "' (", c.tile_shape(),
          ") do not fit each other, as ", name_of(chosen),
          " needs. Cut them alike (far::block_matmul does), or take far::stationary::slices.");
  if (chosen == stationary::summa && !grids_fit(a, b, c))
    raise(
        "multiply: SUMMA needs three matrices on one grid of members, none of them transposed. "
        "Lay them out alike, or take far::stationary::c.");
  if (how.stealing != stealing::none && chosen != stationary::c && chosen != stationary::a)
    raise("multiply: ", name_of(chosen), " gives nothing to steal. Stealing goes with ",
          "far::stationary::c and far::stationary::a.");
  return chosen;
}

}  // namespace detail

/// Begins C = A B over a semiring. Collective; returns when all that the members have done to A and B
/// before is complete, and no piece has been multiplied. 3 barriers or so.
template <class MatrixA, class MatrixB, class MatrixC, class Over>
  requires semiring_over<Over, typename MatrixC::value_type>
multiplication async_multiply(const MatrixA& a, const MatrixB& b, MatrixC& c, const Over& over,
                              const multiply_options& how = {}) {
  using A = typename detail::operand_of<MatrixA>::type;
  using B = typename detail::operand_of<MatrixB>::type;
  using T = typename MatrixC::value_type;
  static_assert(
      std::is_same_v<T, typename A::value_type> && std::is_same_v<T, typename B::value_type>,
      "far::multiply: the three matrices have elements of one type");
  static_assert(detail::is_sparse_matrix<MatrixC> == (A::is_sparse && B::is_sparse) &&
                    (A::is_sparse || !B::is_sparse),
                "far::multiply knows dense x dense and sparse x dense into a far::matrix, and "
                "sparse x sparse into a far::sparse_matrix");
  constexpr bool on_device = detail::is_in_device_memory<MatrixC>;
  static_assert(
      on_device == detail::is_in_device_memory<typename A::matrix_type> &&
          on_device == detail::is_in_device_memory<typename B::matrix_type>,
      "far::multiply: the three matrices lie in one kind of memory. Copy those that do not: "
      "far::matrix<T, far::device_memory>::copy_from takes one in host memory");
  static_assert(
      !on_device || (std::is_same_v<Over, plus_times<T>> && !A::is_transposed && !B::is_transposed),
      "far::multiply: in device memory there are sums of products alone, of matrices as they "
      "are. Multiply in host memory, or transpose_from there before");
  const A left = detail::operand_of<MatrixA>::make(a);
  const B right = detail::operand_of<MatrixB>::make(b);
  detail::require_factors(left, right, c);
  const stationary chosen = detail::choose(left, right, c, how);
  if (on_device && (chosen == stationary::slices || chosen == stationary::summa))
    detail::raise(
        "multiply: in device memory there is no product ",
        chosen == stationary::summa ? "by SUMMA" : "by slices, which tiles that do not fit need",
        ". Cut '", left.name(), "' (tiles of ", left.tile_shape(), "), '", right.name(), "' (",
        right.tile_shape(), ") and '", c.name(), "' (", c.tile_shape(),
        ") so that their tiles fit (far::block_matmul does), and take "
        "far::stationary::c, a or b.");
  std::unique_ptr<detail::multiply_work> work;
  if (chosen != stationary::slices && chosen != stationary::summa)
    work = std::make_unique<detail::tiled_product<A, B, MatrixC, Over>>(left, right, c, over, how,
                                                                        chosen);
  else if constexpr (on_device)
    work = nullptr;  // refused above
  else if (chosen == stationary::slices)
    work = std::make_unique<detail::sliced_product<A, B, MatrixC, Over>>(left, right, c, over, how);
  else if constexpr (!A::is_transposed && !B::is_transposed)
    work = std::make_unique<detail::summa_product<A, B, MatrixC, Over>>(left, right, c, over, how);
  barrier(c.members());
  return multiplication(std::move(work));
}
/// Likewise over the usual sum of products.
template <class MatrixA, class MatrixB, class MatrixC>
multiplication async_multiply(const MatrixA& a, const MatrixB& b, MatrixC& c,
                              const multiply_options& how = {}) {
  return async_multiply(a, b, c, plus_times<typename MatrixC::value_type>(), how);
}

/// C = A B over a semiring, or C + A B with options.accumulate. Collective; C is complete on return,
/// for all to see. Costs what the algorithm does: docs/costs.md.
template <class MatrixA, class MatrixB, class MatrixC, class Over>
  requires semiring_over<Over, typename MatrixC::value_type>
void multiply(const MatrixA& a, const MatrixB& b, MatrixC& c, const Over& over,
              const multiply_options& how = {}) {
  async_multiply(a, b, c, over, how).wait();
}
/// Likewise over the usual sum of products.
template <class MatrixA, class MatrixB, class MatrixC>
void multiply(const MatrixA& a, const MatrixB& b, MatrixC& c, const multiply_options& how = {}) {
  async_multiply(a, b, c, how).wait();
}

}  // namespace far::inline FARSIDE_BACKEND
