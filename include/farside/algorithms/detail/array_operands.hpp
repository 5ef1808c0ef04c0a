// What the operations on patches of far::global_arrays have in common: what they refuse, and how a
// member goes through its part of a result.
#pragma once

#include <farside/algorithms/local/gemm.hpp>
#include <farside/containers/global_array.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// Whether the patch of the result may be the one that is read.
enum class same_patch { allowed, refused };

template <class T, std::size_t N>
void require_operand(const char* what, const global_array<T, N>& a, const patch<N>& p) {
  if (!a.all().contains(p))
    raise("far::", what, " on global_array '", a.name(), "', which has all of ", a.all(),
          ", was given patch ", p,
          ". A patch begins at its first place and ends before its last one, both within the "
          "array.");
}

template <class A, class B>
void require_same_team(const char* what, const A& a, const B& b) {
  if (&a.members().members() != &b.members().members())
    raise("far::", what, " was given global_array '", a.name(), "' and '", b.name(),
          "' of different teams. All arrays of an operation are of one team.");
}

template <class T, std::size_t N>
void require_extents(const char* what, const global_array<T, N>& a, const patch<N>& p,
                     const array_index<N>& wanted) {
  if (p.extents() != wanted)
    raise("far::", what, ": patch ", p, " of global_array '", a.name(), "' has the extents ",
          p.extents(), ", but the others ask for ", wanted, ".");
}

template <class T, std::size_t N>
void require_same_extents(const char* what, const global_array<T, N>&, const patch<N>& pa,
                          const global_array<T, N>& b, const patch<N>& pb) {
  require_extents(what, b, pb, pa.extents());
}

/// A result, and what is read for it: both are there, and do not overlap.
template <class T, std::size_t N, std::size_t M>
void require_apart(const char* what, const global_array<T, N>& c, const patch<N>& pc,
                   const global_array<T, M>& a, const patch<M>& pa,
                   [[maybe_unused]] same_patch same = same_patch::refused) {
  require_same_team(what, c, a);
  require_operand(what, a, pa);
  require_operand(what, c, pc);
  if constexpr (N == M)
    if (&c.layout() == &a.layout() && !intersection(pc, pa).empty() &&
        !(same == same_patch::allowed && pc == pa))
      raise("far::", what, " reads patch ", pa, " of global_array '", c.name(),
            "' and writes patch ", pc,
            " of it, which overlap. Members would read what others have written already: write to "
            "another array, and copy.");
}

template <class T, std::size_t N>
void require_result(const char* what, const global_array<T, N>& c, const patch<N>& pc,
                    const global_array<T, N>& a, const patch<N>& pa, same_patch same) {
  require_apart(what, c, pc, a, pa, same);
  require_same_extents(what, a, pa, c, pc);
}

/// Between two barriers, for each row of this member's part of a patch.
template <class T, std::size_t N, class Work>
void with_own_rows(const global_array<T, N>& a, const patch<N>& p, Work work) {
  barrier(a.members());
  for (std::size_t n = 0; n < a.local_blocks(); ++n) a.local(n).for_each_row(p, work);
  barrier(a.members());
}

/// Calls work(slab) for parts of a box, cut along its first dimensions, of `most` elements or one
/// row.
template <std::size_t N, class Work>
void for_each_slab(const patch<N>& p, std::size_t most, Work& work, std::size_t d = 0) {
  if (p.empty()) return;
  if (p.size() <= most || d == N) return work(p);
  std::size_t below = p.size() / p.extent(d);  // elements that one index of dimension d has
  const auto step = static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, most / below));
  patch<N> slab = p;
  for (std::ptrdiff_t i = p.first[d]; i < p.last[d]; i += step) {
    slab.first[d] = i, slab.last[d] = std::min(p.last[d], i + step);
    for_each_slab(slab, most, work, d + 1);
  }
}

/// Between two barriers: work(slab, view of the block that it is in) for this member's part of a
/// patch.
template <class T, std::size_t N, class Work>
void with_own_slabs(const global_array<T, N>& a, const patch<N>& p, Work work) {
  barrier(a.members());
  a.layout().for_each_own_piece(a.members().rank(), p, [&](const auto& piece) {
    const array_view<T, N> mine = a.local(piece.number);
    auto with = [&](const patch<N>& slab) { work(slab, mine); };
    for_each_slab(piece.part, std::max<std::size_t>(1, (std::size_t{1} << 20) / sizeof(T)), with);
  });
  barrier(a.members());
}

/// What stands in patch `from` of an array where `slab` stands in patch `of`.
template <class T, std::size_t N>
void read_shifted(const global_array<T, N>& a, const patch<N>& slab, const patch<N>& of,
                  const patch<N>& from, std::vector<T>& to) {
  array_index<N> by;
  for (std::size_t d = 0; d < N; ++d) by[d] = from.first[d] - of.first[d];
  to.resize(slab.size());
  a.get(shifted(slab, by), to);
}

/// c = alpha a b + beta c for one block of c, in steps of the inner dimension.
template <class T>
void multiply_block(const T& alpha, const global_array<T, 2>& a, const patch<2>& pa,
                    const global_array<T, 2>& b, const patch<2>& pb, const T& beta,
                    const array_view<T, 2>& mine, const patch<2>& pc) {
  const patch<2> part = intersection(mine.block(), pc);
  if (part.empty()) return;
  constexpr std::ptrdiff_t most = 512;
  const auto rows = part.extents()[0], columns = part.extents()[1];
  const auto row = pa.first[0] + part.first[0] - pc.first[0],
             column = pb.first[1] + part.first[1] - pc.first[1];
  std::vector<T> of_a, of_b, product(part.size());
  const auto in = [](std::ptrdiff_t n) { return static_cast<std::size_t>(n); };
  for (std::ptrdiff_t k = 0; k < static_cast<std::ptrdiff_t>(pa.extent(1)); k += most) {
    const std::ptrdiff_t deep = std::min(most, static_cast<std::ptrdiff_t>(pa.extent(1)) - k);
    of_a.resize(in(rows * deep)), of_b.resize(in(deep * columns));
    auto came = a.async_get({{row, pa.first[1] + k}, {row + rows, pa.first[1] + k + deep}}, of_a);
    b.get({{pb.first[0] + k, column}, {pb.first[0] + k + deep, column + columns}}, of_b);
    came.get();
    gemm(matrix_view<const T>(of_a.data(), {in(rows), in(deep)}),
         matrix_view<const T>(of_b.data(), {in(deep), in(columns)}),
         matrix_view<T>(product.data(), {in(rows), in(columns)}));
  }
  const T* from = product.data();
  mine.for_each_row(part, [&](const array_index<2>&, std::span<T> to) {
    for (T& element : to) {
      element = beta == T{} ? alpha * *from : alpha * *from + beta * element;
      ++from;
    }
  });
}

}  // namespace far::inline FARSIDE_BACKEND::detail
