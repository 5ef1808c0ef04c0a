// The sum of two sparse matrices in device memory, by kernels: C = A + B, rows sorted. One call for each
// entry, so that long rows cost no more than short ones.
//
//   fresh[e]    whether entry e of B has no entry of A at its place      a search in a row of A each
//   before(e)   how many entries of B are fresh before e                 counts of 64, added up level by level
//
//   entry e of A goes to   e + before(the first entry of its row of B that is not left of it)
//   fresh entry e of B     before(e) + the first entry of its row of A that is not left of it
//   row i of C begins at   row_begin_A[i] + before(row_begin_B[i])
//
// An entry of A that has one of B at its place takes its value along.
#pragma once

#include <farside/containers/device_tile.hpp>

#include <cstdint>
#include <limits>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// Addresses of a sparse matrix, for kernels.
template <class T, class I>
struct csr_addresses {
  const I* row_begin;
  const I* columns;
  const T* values;

  FARSIDE_KERNEL_CODE csr_addresses(const device_view& d, const device_csr_view<T, I>& of)
      : row_begin(d.address(of.row_begin, of.shape.rows + 1)),
        columns(d.address(of.columns, of.nnz)),
        values(d.address(of.values, of.nnz)) {}

  /// The row in which entry `e` stands.
  FARSIDE_KERNEL_CODE std::size_t row_of(std::size_t rows, std::size_t e) const {
    std::size_t low = 0, high = rows;  // row_begin[low] <= e < row_begin[high]
    while (high - low > 1) {
      std::size_t middle = (low + high) / 2;
      (static_cast<std::size_t>(row_begin[middle]) <= e ? low : high) = middle;
    }
    return low;
  }
  /// The first entry of a row whose column is not less.
  FARSIDE_KERNEL_CODE std::size_t find(std::size_t row, I column) const {
    auto low = static_cast<std::size_t>(row_begin[row]),
         high = static_cast<std::size_t>(row_begin[row + 1]);
    while (low < high) {
      std::size_t middle = (low + high) / 2;
      if (columns[middle] < column)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  FARSIDE_KERNEL_CODE bool has(std::size_t e, std::size_t row, I column) const {
    return e < static_cast<std::size_t>(row_begin[row + 1]) && columns[e] == column;
  }
};

/// Flags of 8 entries in a word, a byte each: 1 or 0.
FARSIDE_KERNEL_CODE inline unsigned flags_in(std::uint64_t word) {
  return static_cast<unsigned>((word * 0x0101'0101'0101'0101) >> 56);
}

/// How many fresh entries of B there are before one.
struct fresh_before {
  device_ptr<std::uint64_t> fresh{};       ///< a byte for each, in words
  device_ptr<std::uint32_t> of_each_64{};  ///< how many are before each 64

  FARSIDE_KERNEL_CODE std::size_t operator()(const device_view& d, std::size_t e) const {
    std::size_t n = d.get(of_each_64 + static_cast<std::ptrdiff_t>(e / 64));
    std::size_t word = e / 64 * 8;
    const std::uint64_t* flags = d.address(fresh);
    for (; word < e / 8; ++word) n += flags_in(flags[word]);
    if (e % 8 != 0) n += flags_in(flags[word] & ((std::uint64_t{1} << e % 8 * 8) - 1));
    return n;
  }
};

template <class T, class I>
struct mark_fresh {
  device_csr_view<T, I> a, b;
  device_ptr<std::uint64_t> fresh;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t e) const {
    const csr_addresses<T, I> of_a(d, a), of_b(d, b);
    const std::size_t row = of_b.row_of(b.shape.rows, e);
    const I column = of_b.columns[e];
    reinterpret_cast<unsigned char*>(d.address(fresh))[e] =
        of_a.has(of_a.find(row, column), row, column) ? 0 : 1;
  }
};

struct count_fresh {
  device_ptr<std::uint64_t> fresh;
  device_ptr<std::uint32_t> counts;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t i) const {
    const std::uint64_t* flags = d.address(fresh) + i * 8;
    unsigned sum = 0;
    for (int w = 0; w < 8; ++w) sum += flags_in(flags[w]);
    d.put(counts + static_cast<std::ptrdiff_t>(i), std::uint32_t{sum});
  }
};

/// Sums of each 64 numbers.
struct sum_up {
  device_ptr<std::uint32_t> from, to;
  std::size_t n;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t i) const {
    const std::uint32_t* numbers = d.address(from, n);
    std::uint32_t sum = 0;
    for (std::size_t e = i * 64; e < n && e < i * 64 + 64; ++e) sum += numbers[e];
    d.put(to + static_cast<std::ptrdiff_t>(i), sum);
  }
};
/// Each number becomes the sum of those before it; of those before each 64 it is known.
struct spread_down {
  device_ptr<std::uint32_t> numbers, before;
  std::size_t n;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t i) const {
    std::uint32_t* own = d.address(numbers, n);
    std::uint32_t sum = before ? d.get(before + static_cast<std::ptrdiff_t>(i)) : 0;
    for (std::size_t e = i * 64; e < n && e < i * 64 + 64; ++e) {
      const std::uint32_t here = own[e];
      own[e] = sum;
      sum += here;
    }
  }
};

template <class T, class I>
struct place_rows {
  device_csr_view<T, I> a, b, c;
  fresh_before before;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t i) const {
    auto at = static_cast<std::ptrdiff_t>(i);
    const auto in_b = static_cast<std::size_t>(d.get(b.row_begin + at));
    d.put(c.row_begin + at,
          static_cast<I>(d.get(a.row_begin + at) + static_cast<I>(before(d, in_b))));
  }
};

/// Entries of A, and after them those of B.
template <class T, class I>
struct place_entries {
  device_csr_view<T, I> a, b, c;
  fresh_before before;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t n) const {
    const csr_addresses<T, I> of_a(d, a), of_b(d, b);
    std::size_t to = 0;
    I column = 0;
    T value{};
    if (n < a.nnz) {
      const std::size_t row = of_a.row_of(a.shape.rows, n);
      column = of_a.columns[n];
      value = of_a.values[n];
      const std::size_t there = of_b.find(row, column);
      if (of_b.has(there, row, column)) value = value + of_b.values[there];
      to = n + before(d, there);
    } else {
      const std::size_t e = n - a.nnz;
      if (reinterpret_cast<const unsigned char*>(d.address(before.fresh))[e] == 0) return;
      column = of_b.columns[e];
      value = of_b.values[e];
      to = before(d, e) + of_a.find(of_b.row_of(b.shape.rows, e), column);
    }
    d.put(c.columns + static_cast<std::ptrdiff_t>(to), column);
    d.put(c.values + static_cast<std::ptrdiff_t>(to), value);
  }
};

/// Whether rows are sorted: `wrong` becomes 1 if not. An entry that is not right of the one before
/// it begins a row.
template <class T, class I>
struct look_for_disorder {
  device_csr_view<T, I> of;
  device_ptr<std::uint32_t> wrong;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t e) const {
    const csr_addresses<T, I> a(d, of);
    if (e == 0 || a.columns[e - 1] < a.columns[e]) return;
    if (static_cast<std::size_t>(a.row_begin[a.row_of(of.shape.rows, e)]) != e)
      d.atomic_store(wrong, std::uint32_t{1});
  }
};

template <class T, class I>
bool has_sorted_rows(const device& gpu, device_stream& on, const device_csr_view<T, I>& of) {
  device_block flag(gpu, sizeof(std::uint32_t));
  auto wrong = pointer_cast<std::uint32_t>(flag.get());
  std::uint32_t result = 0;
  on.fill(wrong, 0);
  on.launch(of.nnz, look_for_disorder<T, I>{of, wrong});
  on.get(wrong, &result);
  on.synchronize();
  return result == 0;
}

/// A + B in new memory. Waits for the stream. 4 kernels, and 2 for each level of counts.
template <class T, class I>
device_csr<T, I> sparse_sum(const device& gpu, device_stream& on, const device_csr_view<T, I>& a,
                            const device_csr_view<T, I>& b) {
  if (!a.sorted || !b.sorted)
    raise(
        "multiply: tiles whose rows are not sorted cannot be added in device memory. Sort the rows "
        "of "
        "A, B and C on the host (far::csr::sort_rows) before you copy them to the device.");
  require_offsets<I>(a.nnz + b.nnz);
  // Counts are there for one entry after the last too: rows end there.
  const std::size_t groups = b.nnz / 64 + 1;
  std::vector<std::size_t> levels{groups};
  while (levels.back() > 1) levels.push_back((levels.back() + 63) / 64);
  std::size_t counts = 0;
  for (std::size_t n : levels) counts += n;
  device_block memory(gpu, groups * 64 + counts * sizeof(std::uint32_t));
  fresh_before before{
      pointer_cast<std::uint64_t>(memory.get()),
      pointer_cast<std::uint32_t>(memory.get() + static_cast<std::ptrdiff_t>(groups * 64))};
  on.fill(before.fresh, 0, groups * 8);
  on.launch(b.nnz, mark_fresh<T, I>{a, b, before.fresh});
  on.launch(groups, count_fresh{before.fresh, before.of_each_64});
  std::vector<device_ptr<std::uint32_t>> at{before.of_each_64};
  for (std::size_t l = 0; l + 1 < levels.size(); ++l) {
    at.push_back(at[l] + static_cast<std::ptrdiff_t>(levels[l]));
    on.launch(levels[l + 1], sum_up{at[l], at[l + 1], levels[l]});
  }
  std::uint32_t fresh = 0;
  on.get(at.back(), &fresh);
  for (std::size_t l = levels.size(); l-- > 0;) {
    const bool top = l + 1 == levels.size();
    on.launch(top ? 1 : levels[l + 1],
              spread_down{at[l], top ? device_ptr<std::uint32_t>() : at[l + 1], levels[l]});
  }
  on.synchronize();
  device_csr<T, I> sum(gpu, a.shape, a.nnz + fresh);
  const auto c = sum.view();
  on.launch(a.shape.rows + 1, place_rows<T, I>{a, b, c, before});
  on.launch(a.nnz + b.nnz, place_entries<T, I>{a, b, c, before});
  on.synchronize();
  return sum;
}

/// to = to + from.
template <class T>
struct add_elements {
  device_ptr<const T> from;
  device_ptr<T> to;
  FARSIDE_KERNEL_CODE void operator()(const device_view& d, std::size_t i) const {
    auto at = static_cast<std::ptrdiff_t>(i);
    d.put(to + at, d.get(to + at) + d.get(from + at));
  }
};

}  // namespace far::inline FARSIDE_BACKEND::detail
