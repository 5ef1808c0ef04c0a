#include <common/matrices/generator_options.hpp>
#include <common/matrices/option_values.hpp>
#include <toolkit/words.hpp>

#include <algorithm>
#include <map>

namespace matrices {

namespace {

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

}  // namespace

const std::vector<std::string>& generator_option_names() {
  static const std::vector<std::string> names = {
      "--scale", "--edge-factor", "--a",       "--b",      "--c",       "--no-permute",
      "--n",     "--rows",        "--columns", "--degree", "--entries", "--per-row",
      "--lower", "--upper",       "--nx",      "--ny",     "--nz",      "--value",
      "--low",   "--high",        "--values",  "--seed"};
  return names;
}

bool read_generator_option(toolkit::option_reader& in, generator_request& to) {
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

void check_generator(generator_request& r, const std::string& what) {
  auto kind = kinds.find(r.kind);
  if (kind == kinds.end()) {
    std::vector<std::string> known;
    for (const auto& one : kinds) known.push_back(one.first);
    std::string meant = toolkit::nearest(r.kind, known);
    refuse(what, ": there is no such kind of matrix",
           meant.empty() ? "" : "; did you mean " + meant + "?", "; --help lists them");
  }
  for (const std::string& name : r.given) {
    const auto& own = kind->second;
    bool of_values = name == "--seed" || name == "--values" || name == "--low" || name == "--high";
    if (std::find(own.begin(), own.end(), name) == own.end() && !of_values)
      refuse(what, ": ", name, " says nothing about such a matrix; --help lists what does");
  }
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
    refuse(what, ": it has no size; give ",
           grid ? (flat ? "--nx and --ny, or --n" : "--nx, --ny and --nz, or --n")
           : std::find(kind->second.begin(), kind->second.end(), "--rows") != kind->second.end()
               ? "--rows and --columns, or --n"
               : "--n");
}

bool is_generator(const std::string& word) {
  const std::string kind = word.substr(0, word.find(':'));
  return kinds.contains(kind) ||
         (word.find(':') != std::string::npos && word.find_first_of("./") > word.find(':'));
}

generator_request parse_generator(const std::string& word) {
  generator_request result;
  const std::size_t colon = std::min(word.find(':'), word.size());
  result.kind = word.substr(0, colon);
  std::vector<std::string> options;
  for (std::size_t at = colon; at < word.size();) {
    const std::size_t end = std::min(word.find(',', at + 1), word.size());
    if (end > at + 1) options.push_back("--" + word.substr(at + 1, end - at - 1));
    at = end;
  }
  toolkit::option_reader in(options);
  while (in.next()) {
    if (in.is("--undirected"))
      in.no_value(), result.undirected = true;
    else if (in.is_operand() || !read_generator_option(in, result)) {
      std::string meant = toolkit::nearest(in.name(), generator_option_names());
      if (!meant.empty()) meant.erase(0, 2);
      refuse(word, ": there is no option ", in.is_operand() ? in.text() : in.name().substr(2),
             meant.empty() ? "" : "; did you mean " + meant + "?",
             "; a generator is written as rmat:scale=10,seed=7");
    }
  }
  check_generator(result, word);
  return result;
}

}  // namespace matrices
