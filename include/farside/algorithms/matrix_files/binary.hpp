// The binary form of a sparse matrix: compressed rows that can be mapped, of which a rank needs to
// look at its own rows only.
//
//   | header | row_begin | columns | values | index |        values before columns, if they are
//   wider
//
// row_begin has rows + 1 numbers of 64 bits, columns have 32 or 64 bits, a pattern has no values.
// So every array is aligned without gaps. The index has {offset, bytes, entries, checksum} of
// blocks, which lie side by side from the header to the index; a block belongs to one array. The
// header has a checksum of itself, one of the index, and the length of all, so that every byte is
// covered. Checksums find accidents, not forgeries; but what a forger might write is checked before
// it is used as an address.
#pragma once

#include <farside/algorithms/matrix_files/format.hpp>
#include <farside/containers/csr_view.hpp>
#include <farside/containers/matrix_part.hpp>
#include <farside/core/detail/checked_file.hpp>
#include <farside/core/hash.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

struct matrix_header {
  char magic[8] = {'\n', 'F', 'A', 'R', 'M', 'T', 'X', '1'};  ///< the last one: of the format
  std::uint64_t byte_order = 0x0102030405060708;
  char value[16] = {};  ///< "float64" and the like, or "pattern"
  std::uint64_t value_bytes = 0, column_bytes = 4;
  std::uint64_t rows = 0, columns = 0, entries = 0;
  std::uint64_t sorted = 1;  ///< rows are in the order of their columns
  std::uint64_t file_bytes = 0;
  std::uint64_t index = 0, blocks = 0;  ///< where it begins, how many it has
  std::uint64_t index_checksum = 0;
  std::uint64_t checksum = 0;  ///< of all above

  std::uint64_t row_begin_at() const { return sizeof(matrix_header); }
  std::uint64_t wide_at() const { return row_begin_at() + 8 * (rows + 1); }
  bool values_first() const { return value_bytes > column_bytes; }
  std::uint64_t values_at() const {
    return wide_at() + (values_first() ? 0 : column_bytes * entries);
  }
  std::uint64_t columns_at() const {
    return wide_at() + (values_first() ? value_bytes * entries : 0);
  }
  std::uint64_t arrays_end() const { return wide_at() + (value_bytes + column_bytes) * entries; }
  std::uint64_t own_checksum() const { return hash_bytes(this, offsetof(matrix_header, checksum)); }
  std::string value_word() const {
    return {value, static_cast<std::size_t>(std::find(value, value + sizeof value, '\0') - value)};
  }
};
static_assert(sizeof(matrix_header) % 8 == 0);

/// Calls `use(name, bytes, kind)` for all types of values that files may have, until it says yes.
template <class Use>
bool any_value_type(Use&& use) {
  auto of = [&]<class... T>(std::type_identity<T>... type) {
    return (use(value_name<T>(), sizeof(T), type) || ...);
  };
  using std::type_identity;
  return of(type_identity<double>(), type_identity<float>(), type_identity<bool>(),
            type_identity<std::int8_t>(), type_identity<std::int16_t>(),
            type_identity<std::int32_t>(), type_identity<std::int64_t>(),
            type_identity<std::uint8_t>(), type_identity<std::uint16_t>(),
            type_identity<std::uint32_t>(), type_identity<std::uint64_t>(),
            type_identity<std::complex<float>>(), type_identity<std::complex<double>>());
}

/// `from` as a T; false if T has no such value. Reals are rounded to nearest.
template <matrix_value T, matrix_value From>
bool convert_value(const From& from, T& to) {
  if constexpr (std::is_same_v<T, bool>) {
    to = from != From{};
  } else if constexpr (is_complex<T> && is_complex<From>) {
    to = T(from);
  } else if constexpr (is_complex<From>) {
    return false;
  } else if constexpr (is_complex<T>) {
    to = T(static_cast<typename T::value_type>(from));
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<From>) {
    // Both limits are powers of two, or one less: exact as doubles, or rounded up to one.
    const double value = static_cast<double>(from);
    if (!(value == std::floor(value) &&
          value >= static_cast<double>(std::numeric_limits<T>::min()) &&
          value < std::ldexp(1.0, std::numeric_limits<T>::digits)))
      return false;
    to = static_cast<T>(from);
  } else {
    to = static_cast<T>(from);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<From, bool>)
      return std::in_range<T>(from);
  }
  return true;
}

/// A binary file that is open and mapped for reading. What is read is checked, block by block. The
/// file must not become shorter meanwhile: the system would end the process by SIGBUS.
class binary_matrix {
 public:
  /// Reads header and index. Throws error, which names the file. Local.
  explicit binary_matrix(const std::string& path) : file_(path) {
    if (file_.problem.empty()) file_.problem = read_header();
    if (!file_.problem.empty()) throw error("farside: " + file_.problem);
    size_ = static_cast<std::size_t>(file_.size());
    void* at = mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_.descriptor(), 0);
    if (at == MAP_FAILED) {
      file_.fail("cannot map");
      throw error("farside: " + file_.problem);
    }
    base_ = static_cast<const std::byte*>(at);
  }
  binary_matrix(const binary_matrix&) = delete;
  binary_matrix& operator=(const binary_matrix&) = delete;
  ~binary_matrix() { munmap(const_cast<std::byte*>(base_), size_); }

  const matrix_header& header() const { return header_; }
  const std::string& path() const { return file_.path(); }
  std::size_t blocks() const { return blocks_.size(); }

  matrix_file_info info() const {
    matrix_file_info result;
    result.format = matrix_format::binary;
    result.shape = {header_.rows, header_.columns};
    result.entries = header_.entries;
    const std::string word = header_.value_word();
    result.values = matrix_values::pattern;
    any_value_type([&]<class T>(const std::string& name, std::size_t, std::type_identity<T>) {
      if (name == word && word != "bool") result.values = values_of<T>();
      if (name == word && word == "bool") result.values = matrix_values::integer;
      return name == word;
    });
    return result;
  }

  /// Checks some rows: their checksums, and that their columns lie in the matrix and in order.
  /// Throws error. Local; costs a pass over them.
  void check_rows(const index_range& rows) const {
    check_blocks(header_.row_begin_at() + 8 * rows.first,
                 header_.row_begin_at() + 8 * (rows.last + 1));
    const std::int64_t* begin = row_begin() + rows.first;
    for (std::size_t i = 0; i <= rows.size(); ++i)
      if (begin[i] < (i == 0 ? 0 : begin[i - 1]) ||
          static_cast<std::uint64_t>(begin[i]) > header_.entries)
        damaged("row ", rows.first + i, " does not begin behind the row before it");
    if (rows.first == 0 && begin[0] != 0)
      damaged("its first row does not begin at its first entry");
    if (rows.last == header_.rows &&
        static_cast<std::uint64_t>(begin[rows.size()]) != header_.entries)
      damaged("its last row does not end at its last entry");
    const auto first = static_cast<std::uint64_t>(begin[0]);
    const auto last = static_cast<std::uint64_t>(begin[rows.size()]);
    check_blocks(header_.columns_at() + header_.column_bytes * first,
                 header_.columns_at() + header_.column_bytes * last);
    check_blocks(header_.values_at() + header_.value_bytes * first,
                 header_.values_at() + header_.value_bytes * last);
    header_.column_bytes == 4 ? check_columns<std::uint32_t>(rows)
                              : check_columns<std::uint64_t>(rows);
  }

  const std::int64_t* row_begin() const {
    return reinterpret_cast<const std::int64_t*>(base_ + header_.row_begin_at());
  }
  template <class I>
  const I* columns() const {
    return reinterpret_cast<const I*>(base_ + header_.columns_at());
  }
  const std::byte* values() const { return base_ + header_.values_at(); }

  /// Throws error.
  template <class... Parts>
  [[noreturn, gnu::cold]] void damaged(const Parts&... parts) const {
    throw error("farside: " + text(path(), " is damaged: ", parts...));
  }

 private:
  template <class I>
  void check_columns(const index_range& rows) const {
    for (std::size_t r = rows.first; r < rows.last; ++r) {
      const I* begin = columns<I>() + row_begin()[r];
      const I* end = columns<I>() + row_begin()[r + 1];
      for (const I* c = begin; c != end; ++c)
        if (*c >= header_.columns || (header_.sorted != 0 && c != begin && c[-1] >= *c))
          damaged("row ", r, " has column ", *c, " where it cannot be");
    }
  }

  void check_blocks(std::uint64_t first, std::uint64_t last) const {
    if (first == last) return;
    auto block =
        std::upper_bound(blocks_.begin(), blocks_.end(), first,
                         [](std::uint64_t at, const file_block& b) { return at < b.offset; });
    for (--block; block != blocks_.end() && block->offset < last; ++block)
      if (hash_bytes(base_ + block->offset, block->bytes) != block->checksum)
        damaged("the checksum of block ", block - blocks_.begin(), " is wrong");
  }

  std::string read_header() {
    const std::uint64_t size = file_.size();
    const matrix_header known;
    const std::string name = file_.path();
    if (size < sizeof header_) return name + " is no binary matrix: it is too short";
    file_.read_at(0, &header_, sizeof header_);
    if (!file_.problem.empty()) return file_.problem;
    if (std::memcmp(header_.magic, known.magic, sizeof known.magic - 1) != 0)
      return name + " is no binary matrix";
    if (header_.magic[7] != known.magic[7])
      return name + " has another format than 1, the one that this version of farside reads";
    if (header_.byte_order != known.byte_order)
      return name + (header_.byte_order == __builtin_bswap64(known.byte_order)
                         ? " was written on a machine with another order of bytes"
                         : " is damaged: its header says no order of bytes");
    if (header_.checksum != header_.own_checksum())
      return name + " is damaged: the checksum of its header is wrong";
    if (size < header_.file_bytes)
      return text(name, " was cut off: it has ", size, " of ", header_.file_bytes, " bytes");
    if (size > header_.file_bytes)
      return text(name, " is damaged: it has ", size - header_.file_bytes,
                  " bytes more than were written");
    const std::string word = header_.value_word();
    const bool pattern = word == "pattern" && header_.value_bytes == 0;
    if (!pattern && !any_value_type([&](const std::string& one, std::size_t bytes, auto) {
          return one == word && bytes == header_.value_bytes;
        }))
      return name + " is damaged: its values have no type that is known";
    if ((header_.column_bytes != 4 && header_.column_bytes != 8) || header_.rows >= size / 8 ||
        header_.entries > size / header_.column_bytes || header_.index != header_.arrays_end() ||
        header_.index > size || header_.blocks != (size - header_.index) / sizeof(file_block) ||
        (size - header_.index) % sizeof(file_block) != 0)
      return name + " is damaged: its arrays do not lie where its header says";
    blocks_.resize(static_cast<std::size_t>(header_.blocks));
    file_.read_at(header_.index, blocks_.data(), blocks_.size() * sizeof(file_block));
    if (!file_.problem.empty()) return file_.problem;
    if (hash_bytes(blocks_.data(), blocks_.size() * sizeof(file_block)) != header_.index_checksum)
      return name + " is damaged: the checksum of its index is wrong";
    std::uint64_t end = sizeof header_;
    for (const file_block& block : blocks_) {
      if (block.offset != end || block.bytes == 0 || block.bytes > header_.index - end)
        return name + " is damaged: its blocks do not lie where its index says";
      end += block.bytes;
    }
    if (end != header_.index) return name + " is damaged: its blocks are not all that was written";
    return {};
  }

  open_file file_;
  matrix_header header_{};
  std::vector<file_block> blocks_;
  const std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
