#include "options.hpp"

#include <common/matrices/option_values.hpp>

#include <toolkit/words.hpp>

#include <utility>

namespace matrix_program {

namespace {

using matrices::one_of;
using matrices::refuse;
using matrices::whole;

std::optional<far::matrix_format> format(toolkit::option_reader& in) {
  using f = far::matrix_format;
  return one_of<f>(in, {{"mtx", f::market}, {"el", f::edge_list}, {"fsm", f::binary}});
}

void grid(toolkit::option_reader& in, request& to) {
  const auto sides =
      matrices::extents(in, 2, 2, 1024, "grid of at most 1024 x 1024 ranks, such as 2x3");
  to.grid_rows = sides[0], to.grid_columns = sides[1];
}

std::vector<std::string> all_names() {
  std::vector<std::string> names = {"--output",   "--format",     "--to",         "--type",
                                    "--symmetry", "--duplicates", "--one-based",  "--undirected",
                                    "--vertices", "--plot",       "--no-picture", "--grid"};
  for (const std::string& name : matrices::generator_option_names()) names.push_back(name);
  return names;
}

void option(toolkit::option_reader& in, request& to) {
  using v = far::matrix_values;
  using s = far::matrix_symmetry;
  using d = far::duplicate_entries;
  if (read_generator_option(in, to.generator)) return;
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
    std::string meant = toolkit::nearest(name, all_names());
    refuse("there is no option ", name, meant.empty() ? "" : "; did you mean " + meant + "?",
           "; --help lists them");
  }
}

void check_make(request& r) {
  if (r.words.size() != 1) {
    if (r.words.empty()) refuse("make: no kind of matrix is given; --help lists them");
    refuse("make ", r.words[0], " ", r.words[1], ": one kind of matrix is made at a time");
  }
  r.generator.kind = r.words[0];
  r.generator.undirected = r.undirected;
  check_generator(r.generator, "make " + r.words[0]);
  if (r.output.empty()) refuse("make: no file is given to write to; -o FILE names it");
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
  if (!result.generator.given.empty())
    refuse(command, ": ", result.generator.given[0],
           " is for make; --help lists what goes with what");
  const std::size_t files = command == "convert" ? 2 : 1;
  if (result.words.size() != files)
    refuse(command, ": ", result.words.size(), " files are given, and it takes ", files,
           command == "convert" ? ": one to read and one to write" : "");
  return result;
}

}  // namespace matrix_program
