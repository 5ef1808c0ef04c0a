// C = A B, all of them sparse (SpGEMM), on one rank, over any semiring.
//
//   far::csr<double> c = far::spgemm(a.view(), b.view());
//
//   far::sparse_multiplier<float, std::int32_t, far::min_plus<float>> m;  // keeps its tables
//   auto paths = m.multiply(a.view(), b.view(), {.sorted = false});
//
// Row by row (Gustavson): row i of C is the sum of those rows of B that the entries of row i of A
// name, each multiplied by its entry. A pass over row i of A alone gives the number of products, a
// bound for the row's size, and, where rows of B are sorted, the window of columns in which it
// lies. Both choose how the row is added up (row_sum.hpp).
//
// Time: about one load and one store for each product. Rows of B come from memory once for each
// entry of A that names them, and are asked for ahead of time.
//
// Memory: multiply() writes C once, in order, into arrays with room for all products, and gives
// back what is left. Room that is not written takes no memory (containers/detail/plain_array.hpp). So A, B, C
// and the tables, less than 2 x sizeof(T) + 8 bytes for each column of B, are all there is.
//
// A sum of several products, C = A0 B0 + A1 B1 + ..., is made in the same way: a row is added up from
// all of them at once, so that no partial result is written or read again.
//
// Where the result has to lie in memory of the caller's, multiply_into() writes it there row by row, if
// there is room for all products. Or count() says how much it is, and fill()
// computes it: twice the passes over B. The result's pattern depends on the patterns of A and B
// only: entries whose products cancel out stay stored.
//
// Everything is local. A sparse_multiplier is for one thread at a time.
#pragma once

#include <farside/algorithms/local/csr_writer.hpp>
#include <farside/algorithms/local/options.hpp>
#include <farside/algorithms/local/row_sum.hpp>

namespace far::inline FARSIDE_BACKEND {

/// How many products of entries C = A B takes: half its flops, and a bound for the entries of C.
/// Local; costs a pass over A.
template <class T, class I>
std::uint64_t count_products(const csr_view<T, I>& a, const csr_view<T, I>& b) {
  detail::require_product("count_products", a.shape(), b.shape());
  std::uint64_t products = 0;
  for (I k : a.columns()) products += b.row_size(static_cast<std::size_t>(k));
  return products;
}

/// The factors of one product of a sum.
template <class T, class I = std::int32_t>
struct sparse_factors {
  csr_view<T, I> a, b;
};

/// How many entries a sum of products has at most: no row has more than all its products, or than it has
/// columns. Local; costs a pass over the left factors.
template <class T, class I>
std::size_t most_entries(std::span<const sparse_factors<T, I>> terms) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < terms.front().a.rows(); ++i) {
    std::size_t products = 0;
    for (const auto& [a, b] : terms) {
      const auto columns = a.row(i).columns();
      for (I k : columns) products += b.row_size(static_cast<std::size_t>(k));
    }
    sum += std::min(products, terms.front().b.shape().columns);
  }
  return sum;
}

/// Multiplies sparse matrices. Keeps its tables, so that many small products cost no allocations.
template <class T, class I = std::int32_t, semiring_over<T> S = plus_times<T>>
class sparse_multiplier {
 public:
  /// Local; no communication.
  explicit sparse_multiplier(const S& over = S()) : over_(over), sum_(over) {}

  /// C = A B. Local; see the header for what it costs.
  csr<T, I> multiply(const csr_view<T, I>& a, const csr_view<T, I>& b,
                     const kernel_options& options = {}) {
    const sparse_factors<T, I> one{a, b};
    return multiply(std::span(&one, 1), options);
  }
  /// C = A0 B0 + A1 B1 + ..., of at least one product; all of them have one shape. Local; costs what they
  /// do.
  csr<T, I> multiply(std::span<const sparse_factors<T, I>> terms,
                     const kernel_options& options = {});
  /// Likewise, written to `rows`: rows.room(most) gives the arrays, of columns and of values, for a
  /// row of at most so many entries, and rows.end_row(entries) ends it. Local; costs the same.
  template <class Rows>
  void multiply_into(std::span<const sparse_factors<T, I>> terms, Rows& rows,
                     const kernel_options& options = {});

  /// Sets row_begin[i + 1] to how many entries rows 0 to i of C = A B have together, and
  /// row_begin[0] to 0. Local; costs about what the product costs, and writes nothing else.
  void count(const csr_view<T, I>& a, const csr_view<T, I>& b, std::span<std::int64_t> row_begin,
             const kernel_options& options = {});

  /// C = A B into arrays of the size that count() has found. The values of A and B may have changed
  /// since then, the places of their entries not. Local; costs what multiply() costs.
  void fill(const csr_view<T, I>& a, const csr_view<T, I>& b,
            std::span<const std::int64_t> row_begin, std::span<I> columns, std::span<T> values,
            const kernel_options& options = {});

 private:
  struct row_plan {
    std::size_t products = 0;
    detail::column_window window;
  };

  using terms_view = std::span<const sparse_factors<T, I>>;

  /// That they can be multiplied, and added up.
  static void require(terms_view terms) {
    for (const auto& [a, b] : terms)
      detail::require_product("spgemm", a.shape(), b.shape(),
                              {terms.front().a.rows(), terms.front().b.shape().columns});
  }
  /// Calls row(i, plan) for all rows of C, in blocks.
  template <class Row>
  void for_each_row(terms_view terms, const kernel_options& options, Row row);
  /// Adds a product's part of row i to its plan.
  static void plan(const sparse_factors<T, I>& of, std::size_t i, row_plan& to);
  /// Writes row i of C, if there is room for its entries, and returns how many it has.
  std::size_t write_row(terms_view terms, std::size_t i, const row_plan& plan, bool sorted,
                        I* columns, T* values, std::size_t room);

  [[no_unique_address]] S over_;
  detail::row_sum<T, I, S> sum_;
};

/// C = A B over a semiring. Local; costs what sparse_multiplier::multiply() costs, and the
/// allocation of its tables.
template <class T, class I, semiring_over<T> S = plus_times<T>>
csr<T, I> spgemm(const csr_view<T, I>& a, const csr_view<T, I>& b, const S& over = S(),
                 const kernel_options& options = {}) {
  return sparse_multiplier<T, I, S>(over).multiply(a, b, options);
}

// ---- definitions ------------------------------------------------------------------------------

template <class T, class I, semiring_over<T> S>
void sparse_multiplier<T, I, S>::plan(const sparse_factors<T, I>& of, std::size_t i, row_plan& to) {
  // How far ahead, in entries of A, things are asked for: first where a row of B begins, then the
  // row itself.
  constexpr std::size_t ahead = 8;
  const auto& [a, b] = of;
  const I* all = a.columns().data();
  const I* b_columns = b.columns().data();
  const T* b_values = b.values().data();
  const std::size_t last = a.nnz() - 1;
  const std::size_t begin = a.entries_before(i), end = begin + a.row_size(i);

  for (std::size_t e = begin; e < end; ++e) {
    auto later = static_cast<std::size_t>(all[std::min(e + 2 * ahead, last)]);
    __builtin_prefetch(b.row_begin().data() + later);
    std::size_t soon = b.entries_before(static_cast<std::size_t>(all[std::min(e + ahead, last)]));
    __builtin_prefetch(b_columns + soon);
    __builtin_prefetch(b_values + soon);

    auto k = static_cast<std::size_t>(all[e]);
    const std::size_t first = b.entries_before(k), size = b.row_size(k);
    if (size == 0) continue;
    to.products += size;
    if (b.sorted()) {
      auto& [low, high] = to.window;
      low = std::min(low, static_cast<std::size_t>(b_columns[first]));
      high = std::max(high, static_cast<std::size_t>(b_columns[first + size - 1]) + 1);
    }
  }
  if (!b.sorted() && begin != end) to.window = {0, b.shape().columns};
}

template <class T, class I, semiring_over<T> S>
template <class Row>
void sparse_multiplier<T, I, S>::for_each_row(terms_view terms, const kernel_options& options,
                                              Row row) {
  require(terms);
  const auto& first = terms.front();
  detail::block_count blocks(options);
  for (std::size_t i = 0; i < first.a.rows(); ++i) {
    row_plan found;
    found.window = {first.b.shape().columns, 0};
    for (const auto& term : terms)
      if (term.a.row_size(i) != 0 && term.b.nnz() != 0) plan(term, i, found);
    blocks.next(found.products);
    row(i, found);
  }
}

template <class T, class I, semiring_over<T> S>
std::size_t sparse_multiplier<T, I, S>::write_row(terms_view terms, std::size_t i,
                                                  const row_plan& plan, bool sorted, I* columns,
                                                  T* values, std::size_t room) {
  if (plan.products == 0) return 0;
  if (terms.size() == 1 && terms[0].a.row_size(i) == 1 && (terms[0].b.sorted() || !sorted)) {
    const auto [k, x] = *terms[0].a.row(i).begin();  // nothing to add: a multiple of a row of B
    const auto of_b = terms[0].b.row(static_cast<std::size_t>(k));
    if (of_b.size() > room) return of_b.size();
    std::ranges::copy(of_b.columns(), columns);
    for (std::size_t e = 0; e < of_b.size(); ++e) values[e] = over_.multiply(x, of_b.values()[e]);
    return of_b.size();
  }
  sum_.begin(plan.products, plan.window);
  for (const auto& [a, b] : terms)
    for (auto [k, x] : a.row(i)) {
      const auto of_b = b.row(static_cast<std::size_t>(k));
      const T* with = of_b.values().data();
      sum_.add(of_b.columns().data(), of_b.size(), 0,
               [&, x = x](std::size_t e) -> T { return over_.multiply(x, with[e]); });
    }
  return sum_.take(columns, values, room, sorted);
}

template <class T, class I, semiring_over<T> S>
template <class Rows>
void sparse_multiplier<T, I, S>::multiply_into(terms_view terms, Rows& rows,
                                               const kernel_options& options) {
  for_each_row(terms, options, [&](std::size_t i, const row_plan& plan) {
    const std::size_t most = std::min(plan.products, terms.front().b.shape().columns);
    auto [columns, values] = rows.room(most);
    rows.end_row(write_row(terms, i, plan, options.sorted, columns, values, most));
  });
}

template <class T, class I, semiring_over<T> S>
csr<T, I> sparse_multiplier<T, I, S>::multiply(terms_view terms, const kernel_options& options) {
  require(terms);
  std::size_t products = 0;
  for (const auto& [a, b] : terms) products += count_products(a, b);
  detail::csr_writer<T, I> c({terms.front().a.rows(), terms.front().b.shape().columns}, products);
  multiply_into(terms, c, options);
  return c.finish(options.sorted);
}

template <class T, class I, semiring_over<T> S>
void sparse_multiplier<T, I, S>::count(const csr_view<T, I>& a, const csr_view<T, I>& b,
                                       std::span<std::int64_t> row_begin,
                                       const kernel_options& options) {
  if (row_begin.size() != a.rows() + 1)
    detail::raise("count of a sparse product was given ", row_begin.size(),
                  " row pointers for a result of ", a.rows(),
                  " rows. Give one more than there are rows.");
  row_begin[0] = 0;
  const sparse_factors<T, I> one{a, b};
  for_each_row(terms_view(&one, 1), options, [&](std::size_t i, const row_plan& plan) {
    std::size_t size = plan.products;
    if (a.row_size(i) > 1 && size != 0) {
      sum_.begin(plan.products, plan.window);
      for (I k : a.row(i).columns()) {
        const auto of_b = b.row(static_cast<std::size_t>(k)).columns();
        sum_.add(of_b.data(), of_b.size(), 0);
      }
      size = sum_.count();
    }
    row_begin[i + 1] = row_begin[i] + static_cast<std::int64_t>(size);
  });
}

template <class T, class I, semiring_over<T> S>
void sparse_multiplier<T, I, S>::fill(const csr_view<T, I>& a, const csr_view<T, I>& b,
                                      std::span<const std::int64_t> row_begin, std::span<I> columns,
                                      std::span<T> values, const kernel_options& options) {
  if (row_begin.size() != a.rows() + 1 || row_begin[0] != 0 ||
      static_cast<std::size_t>(row_begin.back()) > std::min(columns.size(), values.size()))
    detail::raise("fill of a sparse product was given arrays that do not fit each other: ",
                  row_begin.size(), " row pointers for ", a.rows(), " rows, and room for ",
                  std::min(columns.size(), values.size()),
                  " entries. Give the row pointers that count() has set, and arrays as long as the "
                  "last one of them says.");
  const sparse_factors<T, I> one{a, b};
  const terms_view terms(&one, 1);
  for_each_row(terms, options, [&](std::size_t i, const row_plan& plan) {
    // A row that is larger than was counted must not be written: its bound is compared before, its
    // size after.
    auto first = static_cast<std::size_t>(row_begin[i]);
    auto size = static_cast<std::size_t>(row_begin[i + 1]) - first;
    std::size_t written = write_row(terms, i, plan, options.sorted, columns.data() + first,
                                    values.data() + first, size);
    if (written != size)
      detail::raise("row ", i, " of a sparse product has ", written, " entries, but ", size,
                    " were counted. The places of entries must not change between count() and "
                    "fill().");
  });
}

}  // namespace far::inline FARSIDE_BACKEND
