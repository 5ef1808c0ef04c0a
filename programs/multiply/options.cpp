#include "options.hpp"

#include <common/matrices/generator_options.hpp>
#include <common/matrices/option_values.hpp>
#include <toolkit/words.hpp>

#include <algorithm>

namespace multiply_program {

namespace {

using matrices::refuse;

const std::vector<std::string> names = {
    "--gemm",  "--spmm",    "--spgemm",     "--algorithm", "--stealing", "--grid",
    "--tiles", "--columns", "--semiring",   "--repeats",   "--verify",   "--output",
    "--slow",  "--json",    "--heat-map",   "--roofline",  "--ordered",  "--update-memory",
    "--study", "--seed",    "--duplicates", "--device",    "--help"};

const std::vector<std::pair<std::string, far::stationary>> algorithms = {
    {"automatic", far::stationary::automatic},
    {"c", far::stationary::c},
    {"a", far::stationary::a},
    {"b", far::stationary::b},
    {"layers", far::stationary::layers},
    {"summa", far::stationary::summa},
    {"slices", far::stationary::slices}};

/// Words between commas.
std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> result;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    result.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

bool runs_on_devices(far::stationary algorithm) {
  return algorithm != far::stationary::summa && algorithm != far::stationary::slices;
}

void choose_algorithms(toolkit::option_reader& in, request& to) {
  to.algorithms.clear();
  to.all_algorithms = false;
  for (const std::string& one : listed(in.value("an algorithm"))) {
    if (one == "all") {
      to.all_algorithms = true;
      for (const auto& known : algorithms)
        if (known.second != far::stationary::automatic) to.algorithms.push_back(known.second);
      continue;
    }
    auto found = std::find_if(algorithms.begin(), algorithms.end(),
                              [&](const auto& known) { return known.first == one; });
    if (found == algorithms.end())
      refuse(in.name(), " ", one,
             ": it is one of automatic, c, a, b, layers, summa, slices, or all, or some of them "
             "with commas between them");
    to.algorithms.push_back(found->second);
  }
}

void choose_stealing(toolkit::option_reader& in, request& to) {
  to.stealing.clear();
  for (const std::string& one : listed(in.value("none, random or near")))
    if (one == "none")
      to.stealing.push_back(far::stealing::none);
    else if (one == "random")
      to.stealing.push_back(far::stealing::random);
    else if (one == "near")
      to.stealing.push_back(far::stealing::near);
    else
      refuse(in.name(), " ", one,
             ": it is one of none, random, near, or some of them with commas between them");
}

void slow(toolkit::option_reader& in, request& to) {
  const std::string text = in.value("a rank and a factor, such as 1:4");
  const std::size_t colon = text.find(':');
  const auto rank = far::parse_number(text.substr(0, colon));
  if (colon == std::string::npos || !rank || *rank >= 1u << 20)
    refuse(in.name(), " ", text, ": that is no rank and factor, such as 1:4");
  to.slow_rank = static_cast<far::rank_t>(*rank);
  to.slow_factor = toolkit::real_number(in.name(), text.substr(colon + 1), 1, 1000);
}

void set_kind(toolkit::option_reader& in, request& to, product_kind kind) {
  in.no_value();
  if (to.kind != product_kind::none && to.kind != kind)
    refuse(in.name(), ": one kind of product is made at a time; --", name_of(to.kind),
           " is given, too");
  to.kind = kind;
}

void option(toolkit::option_reader& in, request& to) {
  const std::string& name = in.name();
  using d = far::duplicate_entries;
  auto flag = [&](bool& of) { in.no_value(), of = true; };
  if (in.is("-h", "--help"))
    flag(to.help);
  else if (name == "--gemm")
    set_kind(in, to, product_kind::gemm);
  else if (name == "--spmm")
    set_kind(in, to, product_kind::spmm);
  else if (name == "--spgemm")
    set_kind(in, to, product_kind::spgemm);
  else if (in.is("-a", "--algorithm"))
    choose_algorithms(in, to);
  else if (name == "--stealing")
    choose_stealing(in, to);
  else if (name == "--ordered")
    flag(to.ordered);
  else if (name == "--grid")
    to.grid = matrices::extents(in, 2, 2, 1 << 16, "grid of ranks, such as 2x3");
  else if (name == "--tiles")
    to.tiles = matrices::extents(in, 2, 3, 1 << 12,
                                 "numbers of tiles from 1 to 4096, such as 4x4 or 4x4x8");
  else if (name == "--columns") {
    to.columns.clear();
    for (const std::string& one : listed(in.value("a number")))
      to.columns.push_back(toolkit::whole_number(name, one, 1, std::uint64_t{1} << 40));
  } else if (name == "--semiring")
    to.semiring = matrices::one_of<std::string>(in, {{"plus_times", "plus_times"},
                                                     {"min_plus", "min_plus"},
                                                     {"max_times", "max_times"},
                                                     {"or_and", "or_and"},
                                                     {"plus_first", "plus_first"}});
  else if (name == "--repeats")
    to.repeats = matrices::whole(in, 1, 1000000);
  else if (name == "--seed")
    to.seed = matrices::whole(in, 0, ~std::uint64_t{0});
  else if (name == "--duplicates")
    to.duplicates =
        matrices::one_of<d>(in, {{"refuse", d::refuse}, {"sum", d::sum}, {"first", d::first}});
  else if (name == "--verify")
    flag(to.verify);
  else if (in.is("-o", "--output"))
    to.output = in.value("a file");
  else if (name == "--slow")
    slow(in, to);
  else if (name == "--update-memory")
    to.update_memory = toolkit::byte_count(name, in.value("a size"));
  else if (name == "--device")
    flag(to.device);
  else if (name == "--json")
    flag(to.json);
  else if (name == "--heat-map")
    to.heat_map = in.value("a file");
  else if (name == "--roofline")
    to.roofline = in.value("a file");
  else if (name == "--study")
    flag(to.study);
  else if (name == "--cpu-time")
    flag(to.by_cpu_time);
  else {
    const std::string meant = toolkit::nearest(name, names);
    refuse("there is no option ", name, meant.empty() ? "" : "; did you mean " + meant + "?",
           "; --help lists them");
  }
}

/// What there is in device memory.
void check_device(request& r) {
  if (r.study) refuse("--study compares algorithms on CPUs; leave out --device");
  if (r.semiring != "plus_times")
    refuse("--semiring ", r.semiring,
           ": --device knows sums of products alone, plus_times; multiply without it");
  if (r.slow_rank) refuse("--slow goes by the time that CPUs take; leave out --device");
  if (!r.roofline.empty())
    refuse("--roofline draws the roofs of this machine's CPUs; leave out --device");
  if (r.all_algorithms)
    std::erase_if(r.algorithms, [](far::stationary one) { return !runs_on_devices(one); });
  for (far::stationary one : r.algorithms)
    if (!runs_on_devices(one))
      refuse("--device knows the algorithms c, a, b and layers, and not ",
             one == far::stationary::summa ? "summa" : "slices", "; multiply without it");
}

void check(request& r) {
  if (r.device) check_device(r);
  if (r.by_cpu_time && !r.study) refuse("--cpu-time is for --study; products show both times");
  if (r.study) {
    if (!r.factors.empty() || r.kind != product_kind::none)
      refuse("--study makes its own matrices; leave out ",
             r.factors.empty() ? "--" + std::string(name_of(r.kind)) : r.factors[0]);
    return;
  }
  if (r.kind == product_kind::none)
    refuse("no kind of product is given: --gemm, --spmm or --spgemm; --help says more");
  if (r.factors.empty() || r.factors.size() > 2)
    refuse(r.factors.size(),
           " factors are given; it takes one or two, files or generators such as ",
           "rmat:scale=10");
  for (const std::string& word : r.factors)
    if (matrices::is_generator(word)) matrices::parse_generator(word);
  const bool one = r.factors.size() == 1;
  if (r.columns != std::vector<std::size_t>{128} && (r.kind != product_kind::spmm || !one))
    refuse("--columns is for --spmm with one factor: how many columns a dense B has that is made");
  for (far::stationary algorithm : r.algorithms)
    if (r.steals() && algorithm != far::stationary::automatic && algorithm != far::stationary::c &&
        algorithm != far::stationary::a)
      refuse("--stealing goes with the algorithms c and a, which have something to steal");
  if (!r.output.empty() && (r.columns.size() > 1 || r.algorithms.size() > 1))
    refuse("--output is for one product; several --columns or algorithms are given");
  if (!r.heat_map.empty() && r.columns.size() > 1)
    refuse("--heat-map is for one product; several --columns are given");
  if (!r.heat_map.empty() && r.tiles.size() > 1 && std::max(r.tiles[0], r.tiles[1]) > 128)
    refuse("--heat-map draws at most 128 x 128 tiles of C");
}

}  // namespace

const char* words_of(product_kind kind) {
  constexpr const char* words[] = {"", "dense by dense", "sparse by dense", "sparse by sparse"};
  return words[static_cast<int>(kind)];
}
const char* name_of(product_kind kind) {
  constexpr const char* words[] = {"", "gemm", "spmm", "spgemm"};
  return words[static_cast<int>(kind)];
}

request parse_request(const std::vector<std::string>& words) {
  request result;
  toolkit::option_reader in(words);
  while (in.next()) {
    if (in.is_operand())
      result.factors.push_back(in.text());
    else
      option(in, result);
  }
  if (!result.help) check(result);
  return result;
}

}  // namespace multiply_program
