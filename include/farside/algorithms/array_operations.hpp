// Operations on patches of far::global_arrays by all members of a team together.
//
//   far::fill(a, {{0, 0}, {10, 10}}, 1.0);        // a patch, or all of it without one
//   far::add(2.0, a, pa, 3.0, b, pb, c, pc);      // c = 2 a + 3 b
//   double d = far::dot(a, pa, b, pb);
//   far::multiply(1.0, a, pa, b, pb, 0.0, c, pc); // c = a b
//
// All are collective, over the team of the arrays, which is one for all arrays of a call, and are
// given the same by all. They begin and end with a barrier: they see what was done before, and all
// see what they have done. Arrays may be divided in any ways. The member that has a part of the
// result computes it, with gets of what it needs of the others, in pieces of up to 1 MiB.
//
// Each takes one patch per array, of shapes that suit each other; without patches, all of them. A
// patch of the result must not overlap one that is read of the same array, unless they are the same
// patch and the operation says so.
#pragma once

#include <farside/algorithms/detail/array_operands.hpp>
#include <farside/algorithms/local/gemm.hpp>

#include <functional>
#include <type_traits>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// All elements of a patch become `value`. Collective. 2 barriers.
template <class T, std::size_t N>
void fill(global_array<T, N>& a, const std::type_identity_t<patch<N>>& p,
          const std::type_identity_t<T>& value) {
  detail::require_operand("fill", a, p);
  detail::with_own_rows(a, p, [&](const array_index<N>&, std::span<T> row) {
    std::fill(row.begin(), row.end(), value);
  });
}
template <class T, std::size_t N>
void fill(global_array<T, N>& a, const std::type_identity_t<T>& value) {
  fill(a, a.all(), value);
}

/// All elements of a patch are multiplied by `factor`. Collective. 2 barriers.
template <class T, std::size_t N>
void scale(global_array<T, N>& a, const std::type_identity_t<patch<N>>& p,
           const std::type_identity_t<T>& factor) {
  detail::require_operand("scale", a, p);
  detail::with_own_rows(a, p, [&](const array_index<N>&, std::span<T> row) {
    for (T& element : row) element = element * factor;
  });
}
template <class T, std::size_t N>
void scale(global_array<T, N>& a, const std::type_identity_t<T>& factor) {
  scale(a, a.all(), factor);
}

/// c = alpha a + beta b. Patch c may be patch a or b itself. Collective. 2 barriers, and the gets
/// of what others have of a and b.
template <class T, std::size_t N>
void add(const std::type_identity_t<T>& alpha, const global_array<T, N>& a,
         const std::type_identity_t<patch<N>>& pa, const std::type_identity_t<T>& beta,
         const global_array<T, N>& b, const std::type_identity_t<patch<N>>& pb,
         global_array<T, N>& c, const std::type_identity_t<patch<N>>& pc) {
  detail::require_result("add", c, pc, a, pa, detail::same_patch::allowed);
  detail::require_result("add", c, pc, b, pb, detail::same_patch::allowed);
  std::vector<T> of_a, of_b;
  detail::with_own_slabs(c, pc, [&](const patch<N>& slab, const array_view<T, N>& mine) {
    detail::read_shifted(a, slab, pc, pa, of_a);
    detail::read_shifted(b, slab, pc, pb, of_b);
    std::size_t i = 0;
    mine.for_each_row(slab, [&](const array_index<N>&, std::span<T> row) {
      for (T& element : row) element = alpha * of_a[i] + beta * of_b[i], ++i;
    });
  });
}
template <class T, std::size_t N>
void add(const std::type_identity_t<T>& alpha, const global_array<T, N>& a,
         const std::type_identity_t<T>& beta, const global_array<T, N>& b, global_array<T, N>& c) {
  add(alpha, a, a.all(), beta, b, b.all(), c, c.all());
}

/// b = a. Collective. 2 barriers, and the gets of what others have of a.
template <class T, std::size_t N>
void copy(const global_array<T, N>& a, const std::type_identity_t<patch<N>>& pa,
          global_array<T, N>& b, const std::type_identity_t<patch<N>>& pb) {
  detail::require_result("copy", b, pb, a, pa, detail::same_patch::allowed);
  std::vector<T> of_a;
  detail::with_own_slabs(b, pb, [&](const patch<N>& slab, const array_view<T, N>& mine) {
    detail::read_shifted(a, slab, pb, pa, of_a);
    const T* from = of_a.data();
    mine.for_each_row(slab, [&](const array_index<N>&, std::span<T> row) {
      std::copy_n(from, row.size(), row.begin());
      from += row.size();
    });
  });
}
template <class T, std::size_t N>
void copy(const global_array<T, N>& a, global_array<T, N>& b) {
  copy(a, a.all(), b, b.all());
}

/// The sum of all products of elements at corresponding places, on all members. Collective. 2
/// barriers, 1 all_reduce, and the gets of what others have of b.
template <class T, std::size_t N>
T dot(const global_array<T, N>& a, const std::type_identity_t<patch<N>>& pa,
      const global_array<T, N>& b, const std::type_identity_t<patch<N>>& pb) {
  detail::require_same_team("dot", a, b);
  detail::require_operand("dot", a, pa);
  detail::require_operand("dot", b, pb);
  detail::require_same_extents("dot", a, pa, b, pb);
  T sum{};
  std::vector<T> of_b;
  detail::with_own_slabs(a, pa, [&](const patch<N>& slab, const array_view<T, N>& mine) {
    detail::read_shifted(b, slab, pa, pb, of_b);
    std::size_t i = 0;
    mine.for_each_row(slab, [&](const array_index<N>&, std::span<T> row) {
      for (const T& element : row) sum = sum + element * of_b[i], ++i;
    });
  });
  return all_reduce(sum, std::plus<>(), a.members());
}
template <class T, std::size_t N>
T dot(const global_array<T, N>& a, const global_array<T, N>& b) {
  return dot(a, a.all(), b, b.all());
}

/// b becomes the transpose of a. Collective. 2 barriers, and the gets of what others have of a.
template <class T>
void transpose(const global_array<T, 2>& a, const std::type_identity_t<patch<2>>& pa,
               global_array<T, 2>& b, const std::type_identity_t<patch<2>>& pb) {
  detail::require_apart("transpose", b, pb, a, pa);
  detail::require_extents("transpose", b, pb, {pa.extent(1), pa.extent(0)});
  std::vector<T> of_a;
  detail::with_own_slabs(b, pb, [&](const patch<2>& slab, const array_view<T, 2>& mine) {
    const auto row = pa.first[0] + slab.first[1] - pb.first[1],
               column = pa.first[1] + slab.first[0] - pb.first[0];
    const std::size_t rows = slab.extent(1), columns = slab.extent(0);
    of_a.resize(rows * columns);
    a.get({{row, column}, {row + slab.extents()[1], column + slab.extents()[0]}}, of_a);
    std::size_t i = 0;
    mine.for_each_row(slab, [&](const array_index<2>&, std::span<T> to) {
      for (std::size_t j = 0; j < to.size(); ++j) to[j] = of_a[j * columns + i];
      ++i;
    });
  });
}
template <class T>
void transpose(const global_array<T, 2>& a, global_array<T, 2>& b) {
  transpose(a, a.all(), b, b.all());
}

/// c = alpha a b + beta c, of m x k and k x n. With beta of zero c is not looked at. Collective. 2
/// barriers, and the gets of a block row of a and a block column of b by each member.
template <class T>
void multiply(const std::type_identity_t<T>& alpha, const global_array<T, 2>& a,
              const std::type_identity_t<patch<2>>& pa, const global_array<T, 2>& b,
              const std::type_identity_t<patch<2>>& pb, const std::type_identity_t<T>& beta,
              global_array<T, 2>& c, const std::type_identity_t<patch<2>>& pc) {
  detail::require_apart("multiply", c, pc, a, pa);
  detail::require_apart("multiply", c, pc, b, pb);
  detail::require_extents("multiply", c, pc, {pa.extent(0), pb.extent(1)});
  if (pa.extent(1) != pb.extent(0))
    detail::raise("far::multiply of patches ", pa, " and ", pb, ": the first has ", pa.extent(1),
                  " columns and the second ", pb.extent(0), " rows. Both must be the same.");
  barrier(c.members());
  for (std::size_t n = 0; n < c.local_blocks(); ++n) {
    const array_view<T, 2> mine = c.local(n);
    detail::multiply_block(alpha, a, pa, b, pb, beta, mine, pc);
  }
  barrier(c.members());
}
template <class T>
void multiply(const std::type_identity_t<T>& alpha, const global_array<T, 2>& a,
              const global_array<T, 2>& b, const std::type_identity_t<T>& beta,
              global_array<T, 2>& c) {
  multiply(alpha, a, a.all(), b, b.all(), beta, c, c.all());
}

/// y = alpha a x + beta y, of m x n and n. With beta of zero y is not looked at. Each member adds
/// what its part of a gives, so that a stays where it is; the sum's order is not determined.
/// Collective. 3 barriers, and for each member a get of x and an accumulate to y for its part of a.
template <class T>
void matvec(const std::type_identity_t<T>& alpha, const global_array<T, 2>& a,
            const std::type_identity_t<patch<2>>& pa, const global_array<T, 1>& x,
            const std::type_identity_t<patch<1>>& px, const std::type_identity_t<T>& beta,
            global_array<T, 1>& y, const std::type_identity_t<patch<1>>& py) {
  detail::require_same_team("matvec", y, a);
  detail::require_apart("matvec", y, py, x, px);
  detail::require_operand("matvec", a, pa);
  detail::require_extents("matvec", x, px, {pa.extent(1)});
  detail::require_extents("matvec", y, py, {pa.extent(0)});
  barrier(y.members());
  for (std::size_t n = 0; n < y.local_blocks(); ++n)
    y.local(n).for_each_row(py, [&](const array_index<1>&, std::span<T> part) {
      for (T& element : part) element = beta == T{} ? T{} : beta * element;
    });
  if (!FARSIDE_MUTANT(array_matvec_adds_at_once)) barrier(y.members());
  std::vector<T> of_x, sums;
  a.layout().for_each_own_piece(a.members().rank(), pa, [&](const auto& piece) {
    const patch<2>& part = piece.part;
    const auto column = px.first[0] + part.first[1] - pa.first[1],
               row = py.first[0] + part.first[0] - pa.first[0];
    of_x.resize(part.extent(1));
    sums.clear();
    x.get({{column}, {column + part.extents()[1]}}, of_x);
    a.local(piece.number).for_each_row(part, [&](const array_index<2>&, std::span<const T> line) {
      T sum{};
      for (std::size_t j = 0; j < line.size(); ++j) sum = sum + line[j] * of_x[j];
      sums.push_back(sum);
    });
    y.accumulate({{row}, {row + part.extents()[0]}}, sums, {}, alpha);
  });
  barrier(y.members());
}
template <class T>
void matvec(const std::type_identity_t<T>& alpha, const global_array<T, 2>& a,
            const global_array<T, 1>& x, const std::type_identity_t<T>& beta,
            global_array<T, 1>& y) {
  matvec(alpha, a, a.all(), x, x.all(), beta, y, y.all());
}

}  // namespace far::inline FARSIDE_BACKEND
