// Files of matrices: Matrix Market, edge lists, and a binary form that is mapped. All members of a
// team read their parts of a file side by side, and write them so.
//
//   // all.shape, and all.entries: those that this rank owns
//   auto all = far::read_matrix<double>("a.mtx", [](far::matrix_shape shape) {
//     return [=](std::size_t row, std::size_t column) { return owner of that place; };
//   });
//
//   // even parts of the rows
//   far::csr<double> rows = far::read_rows<double>("a.mtx");
//
//   far::write_matrix<double>("a.fsm", shape, rows, entries);
//   far::mapped_rows<double> mapped("a.fsm", far::even_part(n, me, ranks));
//
// A file that is not what it should be is a matrix_file_error on all members, in one line: with the
// file, the line if one is to blame, and the reason. What is written appears under its name when it
// is whole.
#pragma once

#include <farside/algorithms/exchange.hpp>
#include <farside/algorithms/matrix_files/binary_writer.hpp>
#include <farside/algorithms/matrix_files/order.hpp>
#include <farside/algorithms/matrix_files/text_reader.hpp>
#include <farside/algorithms/matrix_files/text_writer.hpp>
#include <farside/containers/csr.hpp>
#include <farside/containers/matrix_part.hpp>

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// Entries of a matrix that this rank has, in order, each place once.
template <class T>
struct matrix_entries {
  matrix_shape shape;
  matrix_file_info file;  ///< what the file says
  std::vector<triplet<T>> entries;
};

/// The format that a name stands for: .mtx, .fsm, and .el, .edges, .txt or .tsv; a .gz behind them
/// does not count. Local.
inline std::optional<matrix_format> format_of_name(std::string_view path) {
  if (path.ends_with(".gz")) path.remove_suffix(3);
  if (path.ends_with(".mtx")) return matrix_format::market;
  if (path.ends_with(".fsm")) return matrix_format::binary;
  for (const char* ending : {".el", ".edges", ".txt", ".tsv"})
    if (path.ends_with(ending)) return matrix_format::edge_list;
  return std::nullopt;
}

namespace detail {

inline matrix_format require_format(const std::string& path, std::optional<matrix_format> given) {
  if (given) return *given;
  if (auto format = format_of_name(path)) return *format;
  throw matrix_file_error(
      text("farside: ", path,
           ": the name says no format: it ends neither in .mtx (Matrix Market) nor in .el, .edges, "
           ".txt or .tsv (edge list) nor in .fsm (binary); .gz may follow. Name the format"));
}

/// Opens a binary file on all members, or throws on all of them.
class shared_binary {
 public:
  shared_binary(const std::string& path, const team& over) : over_(over) {
    together([&] { file_.emplace(path); });
    const std::uint64_t identity = file_->header().checksum;
    throw_together(broadcast(identity, 0, over_) == identity
                       ? ""
                       : path + ": ranks see different files of this name",
                   over_);
  }
  const binary_matrix& file() const { return *file_; }

  template <class Work>
  void together(Work&& work) {
    throw_together(problem_of([&] {
                     work();
                     return std::string();
                   }),
                   over_);
  }

 private:
  team over_;
  std::optional<binary_matrix> file_;
};

/// Calls `sink(located_entry)` for the entries of some rows, which have been checked.
template <matrix_value T, class Sink>
void binary_entries(const binary_matrix& file, const index_range& rows, Sink&& sink) {
  const matrix_header& header = file.header();
  bool (*load)(const std::byte*, T&) = [](const std::byte*, T& to) { return to = T(1), true; };
  any_value_type([&]<class From>(const std::string& name, std::size_t, std::type_identity<From>) {
    if (name != header.value_word()) return false;
    load = [](const std::byte* at, T& to) {
      From from;
      std::memcpy(&from, at, sizeof from);
      return convert_value(from, to);
    };
    return true;
  });
  for (std::size_t r = rows.first; r < rows.last; ++r)
    for (auto e = static_cast<std::uint64_t>(file.row_begin()[r]);
         e < static_cast<std::uint64_t>(file.row_begin()[r + 1]); ++e) {
      std::size_t column = header.column_bytes == 4 ? file.columns<std::uint32_t>()[e]
                                                    : file.columns<std::uint64_t>()[e];
      T value{};
      if (!load(file.values() + header.value_bytes * e, value))
        throw error(text("the value in row ", r + 1, " and column ", column + 1, " of type ",
                         header.value_word(), " does not fit ", value_name<T>()));
      sink(located_entry<T>{r, column, value, e});
    }
}

/// Those of entries in order that have a place of their own; `problem` gets the first other one.
template <class T>
std::vector<triplet<T>> without_duplicates(
    const std::vector<located_entry<T>>& sorted, duplicate_entries duplicates,
    std::pair<const located_entry<T>*, const located_entry<T>*>& first_two) {
  std::vector<triplet<T>> result;
  result.reserve(sorted.size());
  const located_entry<T>* kept = nullptr;
  for (const auto& e : sorted) {
    if (kept == nullptr || kept->row != e.row || kept->column != e.column) {
      kept = &e;
      result.push_back({e.row, e.column, e.value});
    } else if (duplicates == duplicate_entries::sum) {
      if constexpr (std::is_same_v<T, bool>)
        result.back().value = result.back().value || e.value;
      else
        result.back().value = static_cast<T>(result.back().value + e.value);
    } else if (duplicates == duplicate_entries::refuse &&
               (first_two.second == nullptr || e.where < first_two.second->where)) {
      first_two = {kept, &e};
    }
  }
  return result;
}

/// Collects entries at their owners: read(sink) calls the sink for each that this member has found.
/// `about`: how many this member may get, for room. Throws on all members if reading fails on one.
template <class T, class Owner, class Read>
std::vector<located_entry<T>> collect_entries(const std::string& path, Owner& owner,
                                              std::size_t about, const team& over, Read&& read) {
  exchange<located_entry<T>> mail({.over = over});
  std::vector<located_entry<T>> mine;
  try {
    mine.reserve(about);
  } catch (const std::exception&) {
    // Room only saves copies: without it the vector grows as entries come.
  }
  auto take = [&](std::span<const located_entry<T>> some) {
    mine.insert(mine.end(), some.begin(), some.end());
  };
  const std::string problem = problem_of([&] {
    read([&](const located_entry<T>& e) {
      const rank_t to = owner(e.row, e.column);
      if (to == over.rank())
        mine.push_back(e);
      else
        mail.send(to, e, take);
    });
    return std::string();
  });
  mail.finish(take);  // others may wait for this member in their sends, whatever has come of it
  throw_together(problem.empty() ? problem : text(path, ": ", problem), over);
  return mine;
}

}  // namespace detail

/// Collective. Reads a matrix: each rank gets the entries that it owns. `owner_of(shape)` is called
/// when the shape is known, and returns a function of row and column that tells the owner's
/// position in the team, the same on all members. `format`: what the file is, whatever its name
/// ends in. Each rank parses its share of the text and sends entries to their owners by an
/// exchange, sizeof(T) + 24 bytes each; the owners sort them. Compressed files are inflated by
/// every rank. Time for the share; memory twice for the entries owned, and of edge lists and arrays
/// once for those parsed. Throws matrix_file_error on all members.
template <detail::matrix_value T, class OwnerOf>
matrix_entries<T> read_matrix(const std::string& path, OwnerOf&& owner_of,
                              const matrix_read_options& options = {}, const team& over = world(),
                              std::optional<matrix_format> format = std::nullopt) {
  using entry = detail::located_entry<T>;
  const matrix_format as = detail::require_format(path, format);
  matrix_entries<T> result;
  std::vector<entry> mine;
  std::optional<detail::text_reader<T>> reader;
  if (as == matrix_format::binary) {
    detail::shared_binary shared(path, over);
    const index_range rows = even_part(shared.file().header().rows, over.rank(), over.size());
    shared.together([&] { shared.file().check_rows(rows); });
    result.file = shared.file().info();
    auto owner = owner_of(result.file.shape);
    mine = detail::collect_entries<T>(path, owner, 0, over, [&](auto&& sink) {
      detail::binary_entries<T>(shared.file(), rows, sink);
    });
  } else {
    reader.emplace(path, as, options, over);
    result.file = reader->info();
    reader->prepare();
    auto owner = owner_of(result.file.shape);
    mine = detail::collect_entries<T>(path, owner, reader->entries_about(), over,
                                      [&](auto&& sink) { reader->entries(sink); });
    reader->check();
  }
  result.shape = result.file.shape;
  std::pair<const entry*, const entry*> two{};
  detail::throw_together(detail::problem_of([&] {
                           detail::sort_entries(mine, entry::before);
                           result.entries =
                               detail::without_duplicates(mine, options.duplicates, two);
                           return std::string();
                         }),
                         over);
  if (reader) reader->throw_duplicate(two);
  return result;
}

/// Collective. Reads a matrix: each rank gets an even part of its rows, in the order of ranks. Rows
/// of the result are numbered from its first row on. Costs what read_matrix does.
template <detail::matrix_value T, class I = std::int32_t>
csr<T, I> read_rows(const std::string& path, const matrix_read_options& options = {},
                    const team& over = world(),
                    std::optional<matrix_format> format = std::nullopt) {
  std::string problem;
  auto all = read_matrix<T>(
      path,
      [&](const matrix_shape& shape) {
        return [rows = shape.rows, members = over.size()](std::size_t row, std::size_t) {
          return static_cast<rank_t>(even_part_of(rows, row, members));
        };
      },
      options, over, format);
  const index_range rows = even_part(all.shape.rows, over.rank(), over.size());
  csr<T, I> result;
  problem = detail::too_large(rows.size(), sizeof(std::int64_t), "the row pointers");
  if (problem.empty())
    problem = detail::problem_of([&] {
      for (auto& e : all.entries) e.row -= rows.first;
      result = csr<T, I>::from_triplets({rows.size(), all.shape.columns}, all.entries);
      return std::string();
    });
  detail::throw_together(problem.empty() ? "" : path + ": " + problem, over);
  return result;
}

/// Collective. What a file says of its matrix, without its entries; of an edge list, all of it is
/// read. Throws matrix_file_error on all members.
inline matrix_file_info look_at_matrix(const std::string& path,
                                       const matrix_read_options& options = {},
                                       const team& over = world(),
                                       std::optional<matrix_format> format = std::nullopt) {
  const matrix_format as = detail::require_format(path, format);
  if (as == matrix_format::binary) return detail::shared_binary(path, over).file().info();
  return detail::text_header(path, as, options, over);
}

/// Collective. Writes a matrix in the format that the name ends in. Each rank gives entries in the
/// order of rows and columns, each place once; for the binary form, those of `rows`, all rows of
/// the matrix, the first rank's first. Ranks write their parts side by side; memory for what a rank
/// writes. The file appears under its name when it is whole. Throws matrix_file_error on all
/// members.
template <detail::matrix_value T>
void write_matrix(const std::string& path, const matrix_shape& shape, const index_range& rows,
                  std::span<const triplet<T>> entries, const matrix_write_options& options = {},
                  const team& over = world(), std::optional<matrix_format> format = std::nullopt) {
  const matrix_format as = detail::require_format(path, format);
  if (as == matrix_format::binary)
    detail::write_binary(path, shape, rows, entries, over);
  else
    detail::write_text(path, as, shape, entries, options, over);
}

/// Collective. Writes a dense matrix as a Matrix Market array: each rank gives a rectangle, and
/// they make up the matrix. One write for each column of a rectangle. Throws matrix_file_error.
template <detail::matrix_value T>
void write_matrix_array(const std::string& path, const matrix_shape& shape, const matrix_part& part,
                        matrix_view<const T> elements, const matrix_write_options& options = {},
                        const team& over = world()) {
  detail::write_array(path, shape, part, elements, options, over);
}

/// Some rows of a binary file, mapped: nothing is copied, and what is looked at is in memory.
/// Moving it keeps views valid.
template <detail::matrix_value T, class I = std::int32_t>
class mapped_rows {
 public:
  /// Maps the file and checks these rows, as their checksums say and as a csr_view requires. Throws
  /// matrix_file_error if the file is damaged, or holds values or indices of other types. The file
  /// must not become shorter meanwhile. Local; costs a pass over the rows.
  mapped_rows(const std::string& path, const index_range& rows) : rows_(rows) {
    std::string problem = detail::problem_of([&] {
      file_ = std::make_unique<detail::binary_matrix>(path);
      const auto& header = file_->header();
      if (rows.first > rows.last || rows.last > header.rows)
        return text(path, " has ", header.rows, " rows, not rows ", rows.first, " to ", rows.last);
      if (header.value_word() != detail::value_name<T>() || header.column_bytes != sizeof(I))
        return text(path, " holds values of type ", header.value_word(), " and columns of ",
                    8 * header.column_bytes, " bits, not ", detail::value_name<T>(), " and ",
                    8 * sizeof(I), "; read_matrix converts");
      file_->check_rows(rows);
      return std::string();
    });
    if (!problem.empty()) throw matrix_file_error("farside: " + problem);
  }

  /// The rows, of all columns. Valid as long as this object lives. Local; no communication.
  csr_view<T, I> view() const {
    const std::int64_t* begin = file_->row_begin() + rows_.first;
    return {{rows_.size(), file_->header().columns},
            begin,
            file_->template columns<I>() + *begin,
            reinterpret_cast<const T*>(file_->values()) + *begin,
            file_->header().sorted != 0};
  }
  /// Of the whole matrix. Local; no communication.
  matrix_shape shape() const { return file_->info().shape; }
  index_range rows() const { return rows_; }

 private:
  index_range rows_;
  std::unique_ptr<detail::binary_matrix> file_;
};

}  // namespace far::inline FARSIDE_BACKEND
