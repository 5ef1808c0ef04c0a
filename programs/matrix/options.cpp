#include "options.hpp"

#include <toolkit/option_reader.hpp>
#include <toolkit/words.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <utility>

namespace matrix_program {

namespace {

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw toolkit::wrong_option(far::text(parts...));
}

std::uint64_t whole(toolkit::option_reader& in, std::uint64_t least = 0,
                    std::uint64_t most = std::uint64_t{1} << 62) {
  std::string text = in.value("a number");
  auto value = far::parse_number(text);
  if (!value || *value < least || *value > most)
    refuse(in.name(), " ", text, ": that is no whole number from ", least, " to ", most);
  return *value;
}

double real(toolkit::option_reader& in, double least, double most) {
  std::string text = in.value("a number");
  double value = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || !(value >= least) ||
      !(value <= most))
    refuse(in.name(), " ", text, ": that is no number from ", least, " to ", most);
  return value;
}

template <class T>
T one_of(toolkit::option_reader& in, const std::vector<std::pair<std::string, T>>& known) {
  std::string text = in.value("a word"), names;
  for (const auto& [name, value] : known) {
    if (name == text) return value;
    names += (names.empty() ? "" : ", ") + name;
  }
  refuse(in.name(), " ", text, ": it is one of ", names);
}

std::optional<far::matrix_format> format(toolkit::option_reader& in) {
  using f = far::matrix_format;
  return one_of<f>(in, {{"mtx", f::market}, {"el", f::edge_list}, {"fsm", f::binary}});
}

void grid(toolkit::option_reader& in, request& result) {
  std::string text = in.value("a grid");
  const char *at = text.data(), *end = at + text.size();
  auto rows = std::from_chars(at, end, result.grid_rows);
  if (rows.ec == std::errc{} && rows.ptr != end && *rows.ptr == 'x') {
    auto columns = std::from_chars(rows.ptr + 1, end, result.grid_columns);
    if (columns.ec == std::errc{} && columns.ptr == end && result.grid_rows - 1 < 1024 &&
        result.grid_columns - 1 < 1024)
      return;
  }
  refuse("--grid ", text, ": that is no grid of at most 1024 x 1024 ranks, such as 2x3");
}

/// Options of generators: what each takes its value for.
bool generator_option(toolkit::option_reader& in, request& to) {
  const std::string& name = in.name();
  constexpr std::size_t most = std::size_t{1} << 48;
  if (name == "--scale")
    to.scale = static_cast<unsigned>(whole(in, 0, 48));
  else if (name == "--edge-factor")
    to.edge_factor = real(in, 0, 1e9);
  else if (name == "--a")
    to.a = real(in, 0, 1);
  else if (name == "--b")
    to.b = real(in, 0, 1);
  else if (name == "--c")
    to.c = real(in, 0, 1);
  else if (name == "--no-permute")
    in.no_value(), to.permuted = false;
  else if (name == "--n")
    to.n = whole(in, 0, most);
  else if (name == "--rows")
    to.rows = whole(in, 0, most);
  else if (name == "--columns")
    to.columns = whole(in, 0, most);
  else if (name == "--degree")
    to.degree = real(in, 0, 1e15);
  else if (name == "--entries")
    to.entries = whole(in);
  else if (name == "--per-row")
    to.per_row = whole(in, 0, most);
  else if (name == "--lower")
    to.lower = whole(in, 0, most);
  else if (name == "--upper")
    to.upper = whole(in, 0, most);
  else if (name == "--nx")
    to.nx = whole(in, 0, 1 << 20);
  else if (name == "--ny")
    to.ny = whole(in, 0, 1 << 20);
  else if (name == "--nz")
    to.nz = whole(in, 0, 1 << 20);
  else if (name == "--value")
    to.value = real(in, -9e15, 9e15);
  else if (name == "--low")
    to.low = real(in, -9e15, 9e15);
  else if (name == "--high")
    to.high = real(in, -9e15, 9e15);
  else if (name == "--values")
    to.values =
        one_of<std::string>(in, {{"ones", "ones"}, {"uniform", "uniform"}, {"whole", "whole"}});
  else if (name == "--seed")
    to.seed = whole(in, 0, ~std::uint64_t{0});
  else
    return false;
  to.given.push_back(name);
  return true;
}

const std::vector<std::string> names = {
    "--scale",    "--edge-factor", "--a",          "--b",          "--c",         "--no-permute",
    "--n",        "--rows",        "--columns",    "--degree",     "--entries",   "--per-row",
    "--lower",    "--upper",       "--nx",         "--ny",         "--nz",        "--value",
    "--low",      "--high",        "--values",     "--seed",       "--output",    "--format",
    "--to",       "--type",        "--symmetry",   "--duplicates", "--one-based", "--undirected",
    "--vertices", "--plot",        "--no-picture", "--grid"};

void option(toolkit::option_reader& in, request& to) {
  using v = far::matrix_values;
  using s = far::matrix_symmetry;
  using d = far::duplicate_entries;
  if (generator_option(in, to)) return;
  const std::string& name = in.name();
  if (in.is("-h", "--help"))
    to.help = true;
  else if (in.is("-o", "--output"))
    to.output = in.value("a file");
  else if (name == "--format")
    to.format = format(in);
  else if (name == "--to")
    to.to = format(in);
  else if (name == "--type")
    to.type = one_of<v>(in, {{"pattern", v::pattern},
                             {"integer", v::integer},
                             {"real", v::real},
                             {"complex", v::complex}});
  else if (name == "--symmetry")
    to.symmetry = one_of<s>(in, {{"general", s::general},
                                 {"symmetric", s::symmetric},
                                 {"skew-symmetric", s::skew_symmetric},
                                 {"hermitian", s::hermitian}});
  else if (name == "--duplicates")
    to.duplicates = one_of<d>(in, {{"refuse", d::refuse}, {"sum", d::sum}, {"first", d::first}});
  else if (name == "--one-based")
    in.no_value(), to.one_based = true;
  else if (name == "--undirected")
    in.no_value(), to.undirected = true;
  else if (name == "--vertices")
    to.vertices = whole(in, 1);
  else if (name == "--plot")
    to.plot = in.value("a file");
  else if (name == "--no-picture")
    in.no_value(), to.picture = false;
  else if (name == "--grid")
    grid(in, to);
  else {
    std::string meant = toolkit::nearest(name, names);
    refuse("there is no option ", name, meant.empty() ? "" : "; did you mean " + meant + "?",
           "; --help lists them");
  }
}

/// Which generator takes which options, besides those of values.
const std::map<std::string, std::vector<std::string>> kinds = {
    {"rmat", {"--scale", "--edge-factor", "--a", "--b", "--c", "--no-permute"}},
    {"er", {"--n", "--degree"}},
    {"random", {"--n", "--rows", "--columns", "--entries"}},
    {"rows", {"--n", "--rows", "--columns", "--per-row"}},
    {"banded", {"--n", "--rows", "--columns", "--lower", "--upper"}},
    {"dense", {"--n", "--rows", "--columns"}},
    {"diagonal", {"--n", "--value"}},
    {"laplacian2d", {"--n", "--nx", "--ny"}},
    {"laplacian3d", {"--n", "--nx", "--ny", "--nz"}}};

void check_make(request& r) {
  if (r.words.size() != 1) {
    if (r.words.empty()) refuse("make: no kind of matrix is given; --help lists them");
    refuse("make ", r.words[0], " ", r.words[1], ": one kind of matrix is made at a time");
  }
  auto kind = kinds.find(r.words[0]);
  if (kind == kinds.end()) {
    std::vector<std::string> known;
    for (const auto& one : kinds) known.push_back(one.first);
    std::string meant = toolkit::nearest(r.words[0], known);
    refuse("make ", r.words[0], ": there is no such kind of matrix",
           meant.empty() ? "" : "; did you mean " + meant + "?", "; --help lists them");
  }
  for (const std::string& name : r.given) {
    const auto& own = kind->second;
    bool of_values = name == "--seed" || name == "--values" || name == "--low" || name == "--high";
    if (std::find(own.begin(), own.end(), name) == own.end() && !of_values)
      refuse("make ", kind->first, ": ", name,
             " says nothing about such a matrix; --help lists what does");
  }
  if (r.output.empty()) refuse("make: no file is given to write to; -o FILE names it");
  if (r.low > r.high) refuse("--low ", r.low, " is above --high ", r.high);
  if (r.rows == 0) r.rows = r.n;
  if (r.columns == 0) r.columns = r.n;
  for (std::size_t* side : {&r.nx, &r.ny, &r.nz})
    if (*side == 0) *side = r.n;
  if (kind->first == "rmat") {
    if (r.a + r.b + r.c > 1 + 1e-9)
      refuse("--a ", r.a, " --b ", r.b, " --c ", r.c,
             ": these are no probabilities whose sum is at most 1");
    return;
  }
  const bool grid = kind->first.starts_with("laplacian");
  const bool flat = kind->first == "laplacian2d";
  if (grid ? r.nx == 0 || r.ny == 0 || (!flat && r.nz == 0) : r.rows == 0 || r.columns == 0)
    refuse("make ", kind->first, ": it has no size; give ",
           grid ? (flat ? "--nx and --ny, or --n" : "--nx, --ny and --nz, or --n")
           : std::find(kind->second.begin(), kind->second.end(), "--rows") != kind->second.end()
               ? "--rows and --columns, or --n"
               : "--n");
}

}  // namespace

request parse_request(const std::vector<std::string>& words) {
  request result;
  toolkit::option_reader in(words);
  while (in.next()) {
    if (!in.is_operand())
      option(in, result);
    else if (result.command.empty())
      result.command = in.text();
    else
      result.words.push_back(in.text());
  }
  if (result.help) return result;
  const std::string& command = result.command;
  if (command.empty())
    refuse("no command is given: make, convert, show or check; --help says more");
  if (command != "make" && command != "convert" && command != "show" && command != "check")
    refuse("there is no command ", command, ": it is make, convert, show or check");
  if (command == "make") {
    check_make(result);
    return result;
  }
  if (!result.given.empty())
    refuse(command, ": ", result.given[0], " is for make; --help lists what goes with what");
  const std::size_t files = command == "convert" ? 2 : 1;
  if (result.words.size() != files)
    refuse(command, ": ", result.words.size(), " files are given, and it takes ", files,
           command == "convert" ? ": one to read and one to write" : "");
  return result;
}

}  // namespace matrix_program
