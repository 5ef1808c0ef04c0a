// Writes the binary form of a sparse matrix: each member its rows. Collective.
#pragma once

#include <farside/algorithms/matrix_files/binary.hpp>
#include <farside/algorithms/matrix_files/text_reader.hpp>
#include <farside/containers/csr.hpp>
#include <farside/core/collectives.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// Collective: throws on all members if one of them has a problem.
inline void throw_together(const std::string& problem, const team& over) {
  std::string first = first_problem(problem, over);
  if (!first.empty()) throw matrix_file_error("farside: " + first);
}

/// Why an array of so many elements of `bytes` each cannot be in this machine's memory, or nothing.
inline std::string too_large(std::uint64_t elements, std::size_t bytes, const char* what) {
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  const auto memory = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (elements <= memory / bytes) return {};
  return text(what, " of ", elements, " elements with ", bytes,
              " bytes each do not fit the memory of this machine, which has ", memory, " bytes");
}

/// A file that members write side by side; it has its name when all of it is written.
class draft_file {
 public:
  /// Collective. Throws matrix_file_error.
  draft_file(const std::string& path, const team& over) : path_(path), over_(over), draft_(over) {
    throw_together(over_.rank() == 0 ? objection_to_writing(path_) : std::string(), over_);
    fail_if(draft_.create(path_));
  }
  /// Collective: `write(file)` is what this member writes.
  template <class Write>
  void write(Write&& write) {
    throw_together(problem_of([&] {
                     open_file file(path_, draft_.descriptor());
                     write(file);
                     file.sync();
                     return file.problem;
                   }),
                   over_);
  }
  /// Collective.
  void publish() { fail_if(draft_.publish()); }

 private:
  void fail_if(const std::string& problem) const {
    if (!problem.empty())
      throw matrix_file_error(text("farside: cannot write ", path_, ": ", problem));
  }

  std::string path_;
  team over_;
  draft draft_;
};

/// Collective. Each member gives the rows `rows`, whose entries are `mine`, in order: all rows of
/// the matrix, those of the first member first.
template <matrix_value T>
void write_binary(const std::string& path, const matrix_shape& shape, const index_range& rows,
                  std::span<const triplet<T>> mine, const team& over) {
  draft_file file(path, over);  // before the work: where it cannot be, that is said at once
  matrix_header header;
  bool pattern = false;
  if constexpr (std::is_same_v<T, bool>) {
    int all = std::all_of(mine.begin(), mine.end(), [](const auto& e) { return e.value; });
    pattern = all_reduce(all, minimum{}, over) == 1;
  }
  const std::string word = pattern ? "pattern" : value_name<T>();
  std::copy(word.begin(), word.end(), header.value);
  header.value_bytes = pattern ? 0 : sizeof(T);
  header.column_bytes = shape.columns <= std::uint64_t{1} << 31 ? 4 : 8;
  header.rows = shape.rows;
  header.columns = shape.columns;
  const std::uint64_t count = mine.size();
  header.entries = all_reduce(count, std::plus<>(), over);
  const std::uint64_t before = exclusive_scan(count, std::uint64_t{0}, std::plus<>(), over);

  const bool last = over.rank() + 1 == over.size();
  std::vector<std::int64_t> begins;
  std::vector<std::byte> columns, values;
  std::string problem = too_large(rows.size(), sizeof(std::int64_t), "the row pointers");
  if (problem.empty())
    problem = problem_of([&] {
      begins.reserve(rows.size() + 1);
      columns.resize(static_cast<std::size_t>(header.column_bytes) * mine.size());
      values.resize(static_cast<std::size_t>(header.value_bytes) * mine.size());
      std::size_t e = 0;
      for (std::size_t r = rows.first; r < rows.last; ++r) {
        begins.push_back(static_cast<std::int64_t>(before + e));
        while (e < mine.size() && mine[e].row == r) ++e;
      }
      if (last) begins.push_back(static_cast<std::int64_t>(header.entries));
      if (e != mine.size()) return text("entries are not in the order of rows");
      for (std::size_t i = 0; i < mine.size(); ++i) {
        std::memcpy(&columns[i * header.column_bytes], &mine[i].column, header.column_bytes);
        if (!pattern) std::memcpy(&values[i * sizeof(T)], &mine[i].value, sizeof(T));
      }
      return std::string();
    });
  throw_together(problem.empty() ? "" : text("cannot write ", path, ": ", problem), over);

  // The arrays one after another; within an array, members in their order.
  std::vector<file_block> blocks[3];
  file.write([&](open_file& to) {
    auto write = [&](std::vector<file_block>& list, std::uint64_t at, const void* from,
                     std::size_t bytes) {
      constexpr std::size_t most = std::size_t{1} << 20;
      auto* next = static_cast<const std::byte*>(from);
      while (bytes != 0) {
        const std::size_t some = std::min(bytes, most);
        list.push_back({at, some, 0, hash_bytes(next, some)});
        to.write_at(at, next, some);
        at += some, next += some, bytes -= some;
      }
    };
    write(blocks[0], header.row_begin_at() + 8 * rows.first, begins.data(), 8 * begins.size());
    write(blocks[header.values_first() ? 2 : 1], header.columns_at() + header.column_bytes * before,
          columns.data(), columns.size());
    write(blocks[header.values_first() ? 1 : 2], header.values_at() + header.value_bytes * before,
          values.data(), values.size());
  });
  std::vector<file_block> index;
  for (auto& list : blocks)
    for (const auto& some : gather(list, 0, over))
      index.insert(index.end(), some.begin(), some.end());
  file.write([&](open_file& to) {
    if (over.rank() != 0) return;
    header.index = header.arrays_end();
    header.blocks = index.size();
    header.file_bytes = header.index + index.size() * sizeof(file_block);
    header.index_checksum = hash_bytes(index.data(), index.size() * sizeof(file_block));
    header.checksum = header.own_checksum();
    to.write_at(header.index, index.data(), index.size() * sizeof(file_block));
    to.write_at(0, &header, sizeof header);
  });
  file.publish();
}

}  // namespace far::inline FARSIDE_BACKEND::detail
