#pragma once

// Entries of a Matrix Market file as the drivers of this folder read them: coordinate, general, real
// or pattern. Plain on purpose: reading is not what is measured.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace peers {

struct triplet {
  long row;
  long column;
  double value;
};

struct matrix {
  long rows = 0;
  long columns = 0;
  std::vector<triplet> entries;
};

inline void die(const char* what, const char* which) {
  std::fprintf(stderr, "%s: %s\n", which, what);
  std::exit(1);
}

/// The entries of rows [from, to), which are chosen when the number of rows is known.
template <class Range>
matrix read(const char* path, Range range) {
  std::FILE* file = std::fopen(path, "r");
  if (!file) die("cannot be opened", path);
  char line[256];
  if (!std::fgets(line, sizeof line, file)) die("is empty", path);
  if (!std::strstr(line, "coordinate") || !std::strstr(line, "general"))
    die("is not a general matrix of coordinates", path);
  const bool pattern = std::strstr(line, "pattern") != nullptr;
  do {
    if (!std::fgets(line, sizeof line, file)) die("has no line of sizes", path);
  } while (line[0] == '%');
  matrix result;
  long count = 0;
  if (std::sscanf(line, "%ld %ld %ld", &result.rows, &result.columns, &count) != 3)
    die("has a bad line of sizes", path);
  const auto [from, to] = range(result.rows);
  for (long i = 0; i < count; ++i) {
    if (!std::fgets(line, sizeof line, file)) die("ends too early", path);
    char* at = line;
    const long row = std::strtol(at, &at, 10) - 1;
    const long column = std::strtol(at, &at, 10) - 1;
    const double value = pattern ? 1.0 : std::strtod(at, &at);
    if (row >= from && row < to) result.entries.push_back({row, column, value});
  }
  std::fclose(file);
  return result;
}

}  // namespace peers
