// Files of matrices: good ones, odd ones, bad ones, and what damages make of them.
#include <farside/algorithms/matrix_files.hpp>
#include <farside/algorithms/matrix_generators.hpp>

#include "harness.hpp"
#include "scratch_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace matrix_files_tests {

namespace {

using namespace scratch;

using far::duplicate_entries;
using far::matrix_read_options;
using far::matrix_shape;

template <class T>
using places = std::map<std::pair<std::size_t, std::size_t>, T>;

/// Entries anywhere: neighbours in a row have different owners.
auto scattered(const matrix_shape&) {
  return [](std::size_t row, std::size_t column) {
    return static_cast<far::rank_t>((3 * row + column) % far::nprocs());
  };
}
auto by_rows(const matrix_shape& shape) {
  return [shape](std::size_t row, std::size_t) {
    return static_cast<far::rank_t>(far::even_part_of(shape.rows, row, far::nprocs()));
  };
}

/// Collective: all entries of all ranks, on each.
template <class T>
places<T> everywhere(const std::vector<far::triplet<T>>& mine) {
  places<T> all;
  std::vector<std::size_t> rows, columns;
  std::vector<T> values;
  for (const auto& e : mine) rows.push_back(e.row), columns.push_back(e.column);
  std::vector<unsigned char> bytes(mine.size() * sizeof(T));
  for (std::size_t i = 0; i < mine.size(); ++i)
    std::memcpy(&bytes[i * sizeof(T)], &mine[i].value, sizeof(T));
  auto all_rows = far::all_gather(rows), all_columns = far::all_gather(columns);
  auto all_bytes = far::all_gather(bytes);
  for (std::size_t r = 0; r < all_rows.size(); ++r)
    for (std::size_t i = 0; i < all_rows[r].size(); ++i) {
      T value;
      std::memcpy(&value, &all_bytes[r][i * sizeof(T)], sizeof(T));
      bool fresh = all.emplace(std::pair(all_rows[r][i], all_columns[r][i]), value).second;
      CHECK(fresh);
    }
  return all;
}

/// Collective: rank 0's bytes become a file.
void put_file(const std::string& path, const std::string& bytes) {
  far::barrier();
  if (far::rank() == 0) write_bytes(path, bytes);
  far::barrier();
}

template <class T>
places<T> read_all(const std::string& path, const matrix_read_options& options = {}) {
  return everywhere(far::read_matrix<T>(path, scattered, options).entries);
}

/// Collective: how reading ends; the same words on all ranks, or none.
template <class T>
std::string refusal_of(const std::string& path, const matrix_read_options& options = {}) {
  std::string words;
  try {
    far::read_matrix<T>(path, scattered, options);
  } catch (const far::matrix_file_error& e) {
    words = e.what();
  }
  CHECK_EQ(far::broadcast(words, 0), words);
  return words;
}

const std::string coordinate = "%%MatrixMarket matrix coordinate ",
                  array = "%%MatrixMarket matrix array ";

template <class T>
void check_good(const scratch_folder& folder, const std::string& bytes, const places<T>& expected,
                matrix_read_options options = {}, const char* name = "good.mtx") {
  const std::string path = folder.file(name);
  put_file(path, bytes);
  for (std::size_t piece : {1, 7, 100'000, 0}) {
    if (piece < 100 && bytes.size() > 1000) continue;  // so many pieces take too long
    options.piece_bytes = piece;
    auto got = read_all<T>(path, options);
    CHECK(got == expected);
    if (got != expected && far::rank() == 0) std::fprintf(stderr, "reading: %s\n", bytes.c_str());
  }
}

}  // namespace

FAR_TEST(good_and_odd_files) {
  scratch_folder folder("matrix_good");
  const places<double> two{{{0, 0}, 0.5}, {{2, 3}, -100}};
  check_good<double>(folder, coordinate + "real general\n3 4 2\n1 1 0.5\n3 4 -1e2\n", two);
  check_good<double>(
      folder,
      "%%matrixmarket\tMATRIX  Coordinate REAL General  \r\n% c\r\n\r\n 3\t4 2 \r\n%\n"
      "1 1 +.5\r\n\n% between\n\t3  4\t-1.0D+02 \n  \n%",
      two);
  check_good<double>(folder, coordinate + "double general\n3 4 2\n+1 1 5.E-1\n0003 4 -100", two);
  check_good<double>(folder, coordinate + "integer general\n3 4 1\n3 4 -100\n", {{{2, 3}, -100}});
  check_good<std::int32_t>(folder, coordinate + "real general\n3 4 2\n1 1 2.0\n3 4 -1e2\n",
                           {{{0, 0}, 2}, {{2, 3}, -100}});
  check_good<bool>(folder, coordinate + "pattern symmetric\n3 3 2\n2 1\n3 3\n",
                   {{{1, 0}, true}, {{0, 1}, true}, {{2, 2}, true}});
  check_good<double>(folder, coordinate + "pattern general\n3 4 1\n3 4\n", {{{2, 3}, 1}});
  using c = std::complex<double>;
  check_good<c>(folder, coordinate + "complex hermitian\n2 2 2\n1 1 3 0\n2 1 1 -2\n",
                {{{0, 0}, {3, 0}}, {{1, 0}, {1, -2}}, {{0, 1}, {1, 2}}});
  check_good<c>(folder, coordinate + "complex symmetric\n2 2 1\n2 1 1 -2\n",
                {{{1, 0}, {1, -2}}, {{0, 1}, {1, -2}}});
  check_good<std::int8_t>(folder, coordinate + "integer skew-symmetric\n3 3 1\n3 1 127\n",
                          {{{2, 0}, 127}, {{0, 2}, -127}});
  check_good<double>(folder, array + "real general\n2 3\n1\n0\n 3\n4\n\n% c\n5\n6",
                     {{{0, 0}, 1}, {{0, 1}, 3}, {{1, 1}, 4}, {{0, 2}, 5}, {{1, 2}, 6}});
  check_good<double>(folder, array + "real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n",
                     {{{0, 0}, 1},
                      {{1, 0}, 2},
                      {{0, 1}, 2},
                      {{2, 0}, 3},
                      {{0, 2}, 3},
                      {{1, 1}, 4},
                      {{2, 1}, 5},
                      {{1, 2}, 5},
                      {{2, 2}, 6}});
  check_good<int>(
      folder, array + "integer skew-symmetric\n3 3\n1\n2\n3\n",
      {{{1, 0}, 1}, {{0, 1}, -1}, {{2, 0}, 2}, {{0, 2}, -2}, {{2, 1}, 3}, {{1, 2}, -3}});
  // Nothing of it.
  check_good<double>(folder, coordinate + "real general\n0 7 0\n", {});
  check_good<double>(folder, array + "real general\n7 0\n", {});
  check_good<double>(folder,
                     coordinate +
                         "real general\n1000000000000000 9000000000000000000 1\n"
                         "1000000000000000 9000000000000000000 1\n",
                     {{{999999999999999, 8999999999999999999u}, 1}});
  // Limits of types, and numbers that round.
  check_good<std::int64_t>(
      folder,
      coordinate + "integer general\n1 2 2\n1 1 -9223372036854775808\n1 2 9223372036854775807\n",
      {{{0, 0}, std::numeric_limits<std::int64_t>::min()},
       {{0, 1}, std::numeric_limits<std::int64_t>::max()}});
  check_good<std::uint64_t>(folder,
                            coordinate + "integer general\n1 1 1\n1 1 18446744073709551615\n",
                            {{{0, 0}, ~std::uint64_t{0}}});
  check_good<double>(folder,
                     coordinate +
                         "real general\n1 5 5\n1 1 4.9406564584124654e-324\n1 2 inf\n1 3 "
                         "-Infinity\n1 4 1e-999\n1 5 0.0001e-999999999999999999999\n",
                     {{{0, 0}, 4.9406564584124654e-324},
                      {{0, 1}, INFINITY},
                      {{0, 2}, -INFINITY},
                      {{0, 3}, 0.0},
                      {{0, 4}, 0.0}});
  put_file(folder.file("nan.mtx"), coordinate + "real general\n1 1 1\n1 1 NaN\n");
  CHECK(std::isnan(read_all<double>(folder.file("nan.mtx")).at({0, 0})));
  // Out of range by their digits, whatever the exponent says.
  check_good<double>(
      folder, coordinate + "real general\n1 1 1\n1 1 -0." + std::string(400, '0') + "1e+10\n",
      {{{0, 0}, 0.0}});
  // Duplicates are added up in the order of the file.
  const std::string again = coordinate + "real general\n2 2 4\n1 1 1e16\n1 1 -1e16\n2 2 3\n1 1 1\n";
  check_good<double>(folder, again, {{{0, 0}, 1}, {{1, 1}, 3}},
                     {.duplicates = duplicate_entries::sum});
  check_good<double>(folder, again, {{{0, 0}, 1e16}, {{1, 1}, 3}},
                     {.duplicates = duplicate_entries::first});
  // A comment longer than pieces are, of the length that is allowed.
  check_good<double>(folder,
                     coordinate + "real general\n%" + std::string((1 << 20) - 1, 'x') +
                         "\n1 1 1\n%" + std::string((1 << 20) - 1, 'y') + "\n1 1 2\n",
                     {{{0, 0}, 2}}, {}, "long.mtx");
  // Edge lists.
  check_good<bool>(folder, "# c\n% c\n0\t1\n\n2 0\r\n", {{{0, 1}, true}, {{2, 0}, true}}, {},
                   "g.el");
  check_good<int>(folder, "1 2 -7\n3 1 4", {{{0, 1}, -7}, {{1, 0}, -7}, {{2, 0}, 4}, {{0, 2}, 4}},
                  {.first_vertex = 1, .both_directions = true}, "g.tsv");
  check_good<double>(folder, "# nobody\n", {}, {}, "g.txt");
  CHECK_EQ(far::look_at_matrix(folder.file("g.el")).shape.rows, 3u);
  CHECK_EQ(far::look_at_matrix(folder.file("g.el"), {.vertices = 10}).shape.rows, 10u);
}

FAR_TEST(bad_files) {
  scratch_folder folder("matrix_bad");
  struct bad {
    std::string bytes;
    const char* expected;
    const char* name = "bad.mtx";
    matrix_read_options options{};
  };
  const std::string real = coordinate + "real general\n", ten = real + "10 10 3\n1 1 1\n";
  const std::vector<bad> all = {
      {"", ": is empty"},
      {"\n" + real, "line 1 does not begin with %%MatrixMarket"},
      {std::string("\0\1\2\xff", 4), "line 1 does not begin with"},
      {"%%MatrixMarket\n1 1 1\n", "line 1 has fewer than five words"},
      {coordinate + "real general extra\n", "line 1 has more than five words"},
      {"%%MatrixMarket vector coordinate real general\n", "line 1 has the word 'vector'"},
      {"%%MatrixMarket matrix sparse real general\n", "line 1 has the word 'sparse'"},
      {coordinate + "quaternion general\n", "line 1 has the word 'quaternion'"},
      {coordinate + "real lopsided\n", "line 1 has the word 'lopsided'"},
      {coordinate + "real hermitian\n1 1 0\n", "line 1 says hermitian"},
      {coordinate + "pattern skew-symmetric\n1 1 0\n", "line 1 says skew-symmetric"},
      {array + "pattern general\n1 1\n", "line 1 says that it is an array of a pattern"},
      {real, "line 1 is the last one: there is no line of sizes"},
      {real + "% only\n\n% comments\n", "line 4 is the last one: there is no line of sizes"},
      {real + "3 3\n", "line 2 has no number of entries"},
      {real + "3 3 1 7\n1 1 1\n", "line 2 has '7' behind rows, columns and entries"},
      {real + "-3 3 1\n1 1 1\n", "line 2 has '-3' as number of rows"},
      {real + "3 3 1.5\n1 1 1\n", "line 2 has '1.5' as number of entries"},
      {real + "99999999999999999999 3 1\n1 1 1\n",
       "line 2 has '99999999999999999999' as number of rows"},
      {real + "3 3 100000000000000\n1 1 1\n",
       "line 2 says 100000000000000 entries, which is more than 3 x 3 has places"},
      {real + "30000000 30000000 100000000000000\n1 1 1\n",
       "line 2 says 100000000000000 entries, but the file has room for"},
      {array + "real general\n10000000 10000000\n1\n",
       "line 2 says 100000000000000 entries, but the file has room for"},
      {array + "real general\n9000000000000 9000000000000\n1\n", "so many values are in no file"},
      {coordinate + "real symmetric\n3 4 1\n1 1 1\n", "line 2 says 3 x 4, which is not square"},
      {ten + "2 2 2\n", "line 4 is the last one: the file has 2 of the 3 entries"},
      {ten + "2 2 2\n% c\n\n", "line 6 is the last one: the file has 2 of the 3 entries"},
      {ten + "2 2 2\n3 3 3\n% c\n4 4 4\n5 5 5\n", "line 7 is one more than the 3 entries"},
      {ten + "2 2 2\n3 3 3\n4 4 4\n5 5 x\n", "line 6 is one more than the 3 entries"},
      {ten + "2 2 x\n3 3 3\n4 4 4\n5 5 5\n", "line 4 has 'x' as value, which is no number"},
      {ten + "0 2 2\n3 3 3\n", "line 4 has '0' as row, which is no whole number from 1 to 10"},
      {ten + "2 11 2\n3 3 3\n", "line 4 has '11' as column, which is no whole number from 1 to 10"},
      {ten + "-1 2 2\n3 3 3\n", "line 4 has '-1' as row"},
      {ten + "1.0 2 2\n3 3 3\n", "line 4 has '1.0' as row"},
      {ten + "18446744073709551617 2 2\n3 3 3\n", "line 4 has '18446744073709551617' as row"},
      {ten + "2\n3 3 3\n", "line 4 has no column"},
      {ten + "2 2\n3 3 3\n", "line 4 has no value"},
      {ten + "2 2 2 2\n3 3 3\n", "line 4 has '2' behind row, column and value"},
      {ten + "2 2 2 % c\n3 3 3\n", "line 4 has '%' behind row, column and value"},
      {ten + "2 2 1e999\n3 3 3\n", "line 4 has '1e999' as value, which is too large for float64"},
      {ten + "2 2 1" + std::string(400, '0') + "e-10\n",
       "as value, which is too large for float64"},
      {ten + "2 2 --1\n3 3 3\n", "line 4 has '--1' as value"},
      {ten + "2 2 +-1\n3 3 3\n", "line 4 has '+-1' as value"},
      {ten + "2 2 1e\n3 3 3\n", "line 4 has '1e' as value"},
      {ten + "2 2 1,5\n3 3 3\n", "line 4 has '1,5' as value"},
      {ten + "2 2 0x10\n3 3 3\n", "line 4 has '0x10' as value"},
      {ten + std::string("2 2 2\0 \n3 3 3\n", 14), "line 4 has '2\\x00' as value"},
      {ten + std::string(1, '\0') + "\n3 3 3\n", "line 4 has '\\x00' as row"},
      {ten + "2 2 " + std::string(100, '9') + "z\n",
       "line 4 has '999999999999999999999999999999999999999...' as value"},
      {ten + "2 2 2\n" + std::string(3 << 20, ' ') + "3 3 3\n",
       "line 5 is longer than 1048576 characters"},
      {ten + "2 2 2\n%" + std::string(1 << 20, 'c') + "\n3 3 3\n",
       "line 5 is longer than 1048576 characters"},
      {real + "%" + std::string(3 << 20, 'c'), "line 2 is longer than 1048576 characters"},
      {std::string(3 << 20, '%'), "line 1 is longer than 1048576 characters"},
      {ten + "2 2 2\n1 1 3\n",
       "line 5 has the place of row 1 and column 1 again, which line 3 has"},
      {coordinate + "pattern general\n3 3 1\n1 1 5\n",
       "line 3 has '5' behind row and column, and the header says pattern"},
      {coordinate + "integer general\n3 3 1\n1 1 1.5\n",
       "line 3 has '1.5' as value, which is no whole number"},
      {coordinate + "complex general\n3 3 1\n1 1 1\n",
       "holds complex numbers, and is to be read as float64"},
      {coordinate + "real symmetric\n3 3 1\n1 2 1\n",
       "line 3 has an entry above the diagonal, in row 1 and column 2"},
      {coordinate + "real skew-symmetric\n3 3 1\n2 2 0\n",
       "line 3 has an entry on the diagonal, in row 2"},
      {array + "real general\n2 2\n1\n2\n3\n",
       "line 5 is the last one: the file has 3 of the 4 values"},
      {array + "real general\n2 2\n1\n2\n3\n4\n5\n", "line 7 is one more than the 4 values"},
      {array + "real general\n2 2\n1 2\n3 4\n", "line 3 has '2' behind its value"},
      {"0 1\n1 x\n", "line 2 has 'x' as vertex", "bad.el"},
      {"0 1\n1\n", "line 2 has no vertex", "bad.el"},
      {"0 1\n1 2 5\n",
       "line 2 has '5' behind two vertices; the first edge of the file has no weight", "bad.el"},
      {"0 1 2\n1 2\n", "line 2 has no value", "bad.el"},
      {"0 1 2 3\n", "line 1 has '3' behind two vertices and a weight", "bad.el"},
      {"# c\n0 1\n",
       "line 2 has '0' as vertex, which is no whole number from 1 to",
       "bad.el",
       {.first_vertex = 1}},
      {"0 1\n0 7\n",
       "line 2 has '7' as vertex, which is no whole number from 0 to 6",
       "bad.el",
       {.vertices = 7}},
      {"0 1\n1 0\n",
       "line 2 has the place of row 1 and column 0 again, which line 1 has",
       "bad.el",
       {.both_directions = true}},
      {real, "line 1 begins with %%: it is no edge list", "bad.el"},
      {"\x1f\x8b\x08", "it is compressed by gzip, which this program does not inflate"},
      {"", "the name says no format", "bad.xyz"},
      {"short", "is no binary matrix: it is too short", "bad.fsm"},
      {std::string(500, 'x'), "is no binary matrix", "bad.fsm"},
  };
  for (const bad& one : all) {
    const std::string path = folder.file(one.name);
    put_file(path, one.bytes);
    for (std::size_t piece : {std::size_t{0}, std::size_t{5}}) {
      if (piece != 0 && one.bytes.size() > 1000) continue;  // so many pieces take too long
      auto options = one.options;
      options.piece_bytes = piece;
      const std::string words = refusal_of<double>(path, options);
      bool good = words.find(one.expected) != words.npos && words.find(path) != words.npos &&
                  words.find('\n') == words.npos;
      CHECK(good);
      if (!good && far::rank() == 0)
        std::fprintf(stderr, "%s\n  instead of: %s\n", words.c_str(), one.expected);
    }
  }
  auto refused = [&](auto type, const std::string& bytes, const char* expected) {
    put_file(folder.file("type.mtx"), bytes);
    CHECK(refusal_of<decltype(type)>(folder.file("type.mtx")).find(expected) != std::string::npos);
  };
  const std::string whole = coordinate + "integer general\n3 3 1\n1 1 ";
  refused(std::int8_t(), whole + "128\n", "line 3 has '128' as value, which does not fit int8");
  refused(std::uint8_t(), whole + "-1\n",
          "line 3 has '-1' as value, which is negative and does not fit uint8");
  refused(std::int64_t(), whole + "9223372036854775808\n", "which does not fit int64");
  refused(float(), whole + std::string(39, '9') + "\n", "which is too large for float32");
  refused(int(), real + "1 1 1\n1 1 1.5\n",
          "line 3 has '1.5' as value, which is no whole number that fits int32");
  refused(std::int8_t(), coordinate + "integer skew-symmetric\n2 2 1\n2 1 -128\n",
          "line 3 has a value whose negative");
  refused(std::complex<double>(), coordinate + "complex hermitian\n2 2 1\n2 2 1 1\n",
          "line 3 has an imaginary part on the diagonal");
  refused(std::complex<double>(), coordinate + "complex general\n2 2 1\n2 2 1\n",
          "line 3 has no imaginary part");
  refused(std::complex<double>(), array + "complex hermitian\n2 2\n1 0\n1 1\n1 1\n",
          "line 5 has an imaginary part on the diagonal");

  CHECK(refusal_of<double>(folder.file("missing.mtx")).find("missing.mtx: No such file") !=
        std::string::npos);
  put_file(folder.file("inside"), "");
  CHECK(refusal_of<double>(folder.file("inside/x.mtx")).find("Not a directory") !=
        std::string::npos);
  if (far::rank() == 0) {
    std::filesystem::create_directory(folder.file("folder.mtx"));
    CHECK_EQ(mkfifo(folder.file("fifo.mtx").c_str(), 0600), 0);
  }
  far::barrier();
  for (const char* name : {"folder.mtx", "fifo.mtx"})
    CHECK(refusal_of<double>(folder.file(name)).find("it is no regular file") != std::string::npos);
  {  // A file that shrinks between two looks at it.
    const std::string path =
        folder.file(("shrinks" + std::to_string(far::rank()) + ".mtx").c_str());
    write_bytes(path, ten + "2 2 2\n3 3 3\n");
    far::detail::text_file file(path, {});
    std::filesystem::resize_file(path, 60);
    auto problem = file.visit(0, 10, 0, 1, [](std::uint64_t, std::uint64_t, std::string_view) {
      return far::detail::text_problem();
    });
    CHECK(problem.whole &&
          problem.why.find("became shorter while it was read") != std::string::npos);
  }
  CHECK_THROWS(far::write_matrix<double>(folder.file("folder.mtx"), {}, {}, {}), "is a directory");
  CHECK_THROWS(far::write_matrix<double>(folder.file("none/x.mtx"), {}, {}, {}), "cannot write");
}

namespace {

/// Reads a Matrix Market file in the plainest way: what read_matrix<double> must agree with.
/// Nothing if it is bad.
std::optional<places<double>> plainly_read(const std::string& bytes) {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> words(1);
  auto end_line = [&] {
    if (words.back().empty()) words.pop_back();
    lines.push_back(std::exchange(words, {""}));
  };
  for (char c : bytes) {
    if (c == '\n')
      end_line();
    else if (std::string_view(" \t\r\v\f").find(c) == std::string_view::npos)
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (bytes.empty() || bytes.back() != '\n') end_line();
  std::string head;
  for (const auto& word : lines[0]) head += word + " ";
  for (char& c : head) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  bool symmetric = head == "%%matrixmarket matrix coordinate real symmetric ";
  if (!symmetric && head != "%%matrixmarket matrix coordinate real general ") return std::nullopt;
  auto digits = [](std::string_view s) {
    return !s.empty() && s.size() < 19 && s.find_first_not_of("0123456789") == s.npos;
  };
  auto whole = [&](std::string s, std::uint64_t& to) {
    if (s.starts_with('+')) s.erase(0, 1);
    if (!digits(s)) return false;
    to = std::stoull(s);
    return true;
  };
  auto number = [&](std::string s, double& to) {
    for (char& c : s) c = c == 'D' || c == 'd' ? 'e' : c;
    std::string_view rest = s;
    if (rest.starts_with('+') || rest.starts_with('-')) rest.remove_prefix(1);
    auto split = rest.find_first_of("eE");
    std::string mantissa(rest.substr(0, split));
    if (auto point = mantissa.find('.'); point != mantissa.npos) mantissa.erase(point, 1);
    if (!digits(mantissa)) return false;
    if (split != rest.npos) {
      auto exponent = rest.substr(split + 1);
      if (exponent.starts_with('+') || exponent.starts_with('-')) exponent.remove_prefix(1);
      if (!digits(exponent)) return false;
    }
    to = std::strtod(s.c_str(), nullptr);
    return std::isfinite(to);
  };
  places<double> result;
  std::uint64_t rows = 0, columns = 0, entries = 0, seen = 0;
  bool sized = false;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto& line = lines[i];
    if (line.empty() || line[0][0] == '%') continue;
    if (line.size() != 3) return std::nullopt;
    if (!sized) {
      if (!whole(line[0], rows) || !whole(line[1], columns) || !whole(line[2], entries))
        return std::nullopt;
      if (symmetric && rows != columns) return std::nullopt;
      sized = true;
      continue;
    }
    std::uint64_t row = 0, column = 0;
    double value = 0;
    if (!whole(line[0], row) || !whole(line[1], column) || !number(line[2], value))
      return std::nullopt;
    if (row < 1 || row > rows || column < 1 || column > columns || (symmetric && row < column))
      return std::nullopt;
    ++seen;
    if (!result.emplace(std::pair(row - 1, column - 1), value).second) return std::nullopt;
    if (symmetric && row != column) result.emplace(std::pair(column - 1, row - 1), value);
  }
  if (!sized || seen != entries) return std::nullopt;
  return result;
}

}  // namespace

FAR_TEST(damaged_text) {
  scratch_folder folder("matrix_damaged_text");
  const std::string path = folder.file("damaged.mtx");
  auto random = far_test::common_random_engine();
  auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  int refused = 0, read = 0;
  for (int round = 0; round < 150; ++round) {
    std::string bytes = coordinate + (round % 3 == 0 ? "real symmetric\n" : "real general\n");
    const std::size_t n = 4 + below(5);
    bytes +=
        "% made\n" + std::to_string(n) + " " + std::to_string(n) + " " + std::to_string(n) + "\n";
    for (std::size_t i = 1; i <= n; ++i)
      bytes += std::to_string(i) + " " + std::to_string(1 + below(round % 3 == 0 ? i : n)) + " " +
               std::to_string(static_cast<double>(below(2000)) / 8 - 100) + "\n";
    const std::string usual = "0123456789 +-.eD%\n\r\t\0x";
    for (std::size_t changes = below(3); changes > 0; --changes) {
      const std::size_t at = below(bytes.size()), some = 1 + below(8);
      switch (below(6)) {
        case 0:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
          break;
        case 1:
          bytes[at] = usual[below(usual.size())];
          break;
        case 2:
          bytes.erase(at, some);
          break;
        case 3:
          bytes.insert(at, 1, usual[below(usual.size())]);
          break;
        case 4:
          bytes.insert(at, bytes.substr(below(bytes.size()), some));
          break;
        default:
          bytes.resize(at);
          break;
      }
      if (bytes.empty()) bytes = "\n";
    }
    put_file(path, bytes);
    std::optional<places<double>> got;
    std::string words;
    try {
      got = read_all<double>(path, {.piece_bytes = 1 + below(40)});
    } catch (const far::matrix_file_error& e) {
      words = e.what();
    }
    CHECK_EQ(far::broadcast(words, 0), words);
    const auto expected = plainly_read(bytes);
    const bool good = got == expected && (got || words.find(path + ": line ") != words.npos);
    CHECK(good);
    if (!good && far::rank() == 0) std::fprintf(stderr, "%s\n(%s)\n", bytes.c_str(), words.c_str());
    ++(got ? read : refused);
  }
  CHECK(refused > 20 && read > 20);
}

namespace {

template <class T>
std::vector<far::triplet<T>> some_matrix(const matrix_shape& shape) {
  return far::generate_rows<T>(
      far::random_rows{shape.rows, shape.columns, 4, 5, far::entry_values::whole(-9, 9, 3)},
      far::even_part(shape.rows, far::rank(), far::nprocs()));
}

template <class T>
void round_trip(const scratch_folder& folder) {
  const matrix_shape shape{23, 17};
  const auto rows = far::even_part(shape.rows, far::rank(), far::nprocs());
  auto mine = some_matrix<T>(shape);
  if constexpr (std::is_floating_point_v<T>) {
    for (auto& e : mine) e.value /= 3;
    if (!mine.empty()) mine[0].value = std::numeric_limits<T>::denorm_min();
  }
  const auto all = everywhere(mine);
  for (const char* name : {"a.mtx", "a.fsm", "a.el"}) {
    const std::string path = folder.file(name);
    far::write_matrix<T>(path, shape, rows, mine);
    CHECK_EQ(folder.count(), 1);
    auto got = far::read_matrix<T>(path, scattered, {.vertices = 23});
    CHECK(everywhere(got.entries) == all);
    if (name[2] != 'e') CHECK(got.shape == shape);
    far::barrier();
    // What fails on the one rank that finds an entry fails on all.
    auto nobody = [](const matrix_shape&) {
      return [](std::size_t row, std::size_t) -> far::rank_t {
        if (row == 5) throw std::runtime_error("row 5 is nobody's");
        return static_cast<far::rank_t>(row % far::nprocs());
      };
    };
    CHECK_THROWS(far::read_matrix<T>(path, nobody), "row 5 is nobody's");
    far::barrier();
    auto part = far::read_rows<T>(path, {.vertices = 23});
    CHECK_EQ(part.rows(), rows.size());
    CHECK_EQ(part.nnz(), mine.size());
    std::size_t i = 0;
    for (auto [at, value] : part.view())
      CHECK((far::triplet<T>{at.row + rows.first, at.column, value}) == mine[i++]);
    far::barrier();
    if (far::rank() == 0) std::filesystem::remove(path);
    far::barrier();
  }
}

}  // namespace

FAR_TEST(written_and_read) {
  scratch_folder folder("matrix_written");
  round_trip<double>(folder);
  round_trip<float>(folder);
  round_trip<std::int8_t>(folder);
  round_trip<std::uint64_t>(folder);
  round_trip<bool>(folder);
  {
    scratch_folder complex("matrix_complex");
    const matrix_shape shape{9, 9};
    auto mine = some_matrix<std::complex<float>>(shape);
    const auto all = everywhere(mine);
    far::write_matrix<std::complex<float>>(complex.file("c.mtx"), shape, {}, mine);
    CHECK(read_all<std::complex<float>>(complex.file("c.mtx")) == all);
    far::write_matrix<std::complex<float>>(complex.file("c.fsm"), shape,
                                           far::even_part(9, far::rank(), far::nprocs()), mine);
    CHECK(read_all<std::complex<float>>(complex.file("c.fsm")) == all);
    far::barrier();
  }
  // The same bytes for any number of ranks: here those of one.
  const matrix_shape shape{40, 40};
  const auto rows = far::even_part(40, far::rank(), far::nprocs());
  const auto mine = far::generate_rows<double>(far::laplacian_2d{8, 5}, rows);
  far::write_matrix<double>(folder.file("all.mtx"), shape, rows, mine);
  far::write_matrix<double>(folder.file("half.mtx"), shape, rows, mine,
                            {.symmetry = far::matrix_symmetry::symmetric});
  CHECK_THROWS(far::write_matrix<double>(folder.file("no.mtx"), shape, rows, mine,
                                         {.symmetry = far::matrix_symmetry::skew_symmetric}),
               "as skew-symmetric: the matrix is not so");
  if (far::rank() == 0) {
    std::string expected = coordinate + "real general\n40 40 174\n";
    for (const auto& e : far::generate_rows<double>(far::laplacian_2d{8, 5}, {0, 40}))
      expected += std::to_string(e.row + 1) + " " + std::to_string(e.column + 1) +
                  (e.value == 4 ? " 4\n" : " -1\n");
    CHECK_EQ(bytes_of(folder.file("all.mtx")), expected);
    CHECK(
        bytes_of(folder.file("half.mtx")).starts_with(coordinate + "real symmetric\n40 40 107\n"));
  }
  CHECK(read_all<double>(folder.file("half.mtx")) == everywhere(mine));
  // Binary files of one type as another one, if the values allow it.
  far::write_matrix<double>(folder.file("all.fsm"), shape, rows, mine);
  CHECK_EQ(read_all<std::int8_t>(folder.file("all.fsm")).at({1, 0}), -1);
  CHECK_EQ(read_all<std::complex<float>>(folder.file("all.fsm")).at({1, 0}).real(), -1);
  CHECK(refusal_of<std::uint16_t>(folder.file("all.fsm"))
            .find("of type float64 does not fit uint16") != std::string::npos);
  // A dense one, in rectangles: columns are dealt out.
  std::vector<double> dense;
  const auto columns = far::even_part(6, far::rank(), far::nprocs());
  for (std::size_t r = 0; r < 5; ++r)
    for (std::size_t c = columns.first; c < columns.last; ++c)
      dense.push_back(-1.0 / static_cast<double>(1 + 10 * r + c));
  far::write_matrix_array<double>(
      folder.file("dense.mtx"), {5, 6}, {{0, 5}, columns},
      far::matrix_view<const double>(dense.data(), {5, columns.size()}));
  auto got = read_all<double>(folder.file("dense.mtx"));
  CHECK_EQ(got.size(), 30u);
  for (const auto& [at, value] : got)
    CHECK_EQ(value, -1.0 / static_cast<double>(1 + 10 * at.first + at.second));
}

FAR_TEST(damaged_binary) {
  scratch_folder folder("matrix_damaged_binary");
  const matrix_shape shape{6, 9};
  const auto rows = far::even_part(shape.rows, far::rank(), far::nprocs());
  far::write_matrix<double>(folder.file("good.fsm"), shape, rows, some_matrix<double>(shape));
  const std::string good = bytes_of(folder.file("good.fsm"));
  const far::mapped_rows<double> all(folder.file("good.fsm"), {0, 6});
  CHECK_EQ(all.view().nnz(), 24u);
  const far::mapped_rows<double> part(folder.file("good.fsm"), rows);
  part.view().check();
  std::size_t e = 0;
  for (auto [at, value] : part.view())
    CHECK_EQ(value, all.view().values()[all.view().entries_before(rows.first) + e++]);
  CHECK_THROWS(far::mapped_rows<float>(folder.file("good.fsm"), rows),
               "holds values of type float64");
  CHECK_THROWS(far::mapped_rows<double>(folder.file("good.fsm"), {0, 7}), "has 6 rows");

  // Each byte that is changed, and each length that is less, or more: by one rank or another.
  const std::string path = folder.file(("bad" + std::to_string(far::rank()) + ".fsm").c_str());
  auto random = far_test::random_engine();
  long found = 0, tried = 0;
  write_bytes(path, good);
  const int file =
      open(path.c_str(), O_WRONLY | O_CLOEXEC);  // to truncate it to nothing takes long
  auto try_one = [&](const std::string& bytes) {
    CHECK_EQ(pwrite(file, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    CHECK_EQ(ftruncate(file, static_cast<off_t>(bytes.size())), 0);
    ++tried;
    try {
      far::mapped_rows<double> bad(path, {0, 6});
    } catch (const far::matrix_file_error& error) {
      found += std::string(error.what()).find(path) != std::string::npos;
    }
  };
  for (std::size_t i = far::rank(); i < good.size(); i += far::nprocs()) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(good[i] ^ static_cast<char>(1 + random() % 255));
    try_one(bytes);
    bytes[i] = static_cast<char>(good[i] ^ 1);  // most likely still a column of the matrix
    try_one(bytes);
    try_one(good.substr(0, i));
    if (i % 64 == 0) try_one(good + good.substr(0, i + 1));
  }
  close(file);
  CHECK_EQ(found, tried);
  write_bytes(path, good + std::string(32, 'x'));
  CHECK_THROWS(far::mapped_rows<double>(path, {0, 6}), "it has 32 bytes more than were written");
  // By all ranks together: the same words on all.
  for (std::size_t i = 0; i < good.size(); i += good.size() / 8) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ 4);
    put_file(folder.file("bad.fsm"), bytes);
    CHECK(refusal_of<double>(folder.file("bad.fsm")).find("bad.fsm") != std::string::npos);
  }
  // What a forger has made sums for is not used as an address either.
  auto forged = [&](auto change, const char* expected) {
    std::string bytes = good;
    far::detail::matrix_header header;
    std::memcpy(&header, bytes.data(), sizeof header);
    change(bytes, header);
    std::vector<far::detail::file_block> index(header.blocks);
    std::memcpy(index.data(), bytes.data() + header.index, index.size() * sizeof index[0]);
    for (auto& block : index)
      block.checksum = far::detail::hash_bytes(bytes.data() + block.offset, block.bytes);
    header.index_checksum = far::detail::hash_bytes(index.data(), index.size() * sizeof index[0]);
    header.checksum = header.own_checksum();
    std::memcpy(bytes.data() + header.index, index.data(), index.size() * sizeof index[0]);
    std::memcpy(bytes.data(), &header, sizeof header);
    write_bytes(path, bytes);
    CHECK_THROWS(far::mapped_rows<double>(path, {0, 6}), expected);
  };
  using far::detail::matrix_header;
  auto set = [](std::string& bytes, std::uint64_t at, auto value) {
    std::memcpy(&bytes[at], &value, sizeof value);
  };
  forged([&](std::string& b,
             matrix_header& h) { set(b, h.row_begin_at() + 24, std::int64_t{1} << 40); },
         "does not begin behind the row before");
  forged([&](std::string& b, matrix_header& h) { set(b, h.row_begin_at() + 24, std::int64_t{-1}); },
         "does not begin behind the row before");
  forged([&](std::string& b, matrix_header& h) { set(b, h.row_begin_at(), std::int64_t{1}); },
         "first row does not begin");
  forged([&](std::string& b, matrix_header& h) { set(b, h.columns_at() + 8, std::uint32_t{9}); },
         "has column 9 where it cannot be");
  forged([&](std::string& b, matrix_header& h) { set(b, h.columns_at() + 4, std::uint32_t{0}); },
         "where it cannot be");
  forged([&](std::string&, matrix_header& h) { h.entries = std::uint64_t{1} << 60; },
         "do not lie where its header says");
  forged([&](std::string&, matrix_header& h) { h.rows = ~std::uint64_t{0}; },
         "do not lie where its header says");
  forged([&](std::string&, matrix_header& h) { h.value[0] = 'g'; }, "no type that is known");
}

FAR_TEST(generated_on_all_ranks) {
  auto same = [](const auto& generator) {
    const auto shape = generator.shape();
    const auto mine = far::generate<double>(generator, by_rows(shape));
    const auto rows = far::even_part(shape.rows, far::rank(), far::nprocs());
    CHECK(mine == far::generate_rows<double>(generator, rows));
    CHECK(everywhere(far::generate<double>(generator, scattered(shape))) == everywhere(mine));
  };
  same(far::rmat({.scale = 7, .edge_factor = 6, .values = far::entry_values::uniform()}));
  same(far::random_entries{31, 50, 400, 3, far::entry_values::whole()});
  same(far::laplacian_3d{4, 3, 5});
}

}  // namespace matrix_files_tests
