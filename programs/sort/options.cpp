#include <common/refuse.hpp>
#include <sort/options.hpp>
#include <toolkit/option_reader.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace programs {

const char* const sort_usage =
    R"(usage: farside sort [-n RANKS] [--backend NAME] --type TYPE INPUT -o OUTPUT
       farside sort [-n RANKS] [--backend NAME] --type TYPE --check FILE [--against INPUT]
       farside sort [-n RANKS] [--backend NAME] --isx [options]

Sorts a file of numbers, or of records by a number in each, on all ranks together. Records with
equal keys keep their order. The bytes of the output do not depend on the number of ranks.

  -t, --type TYPE       u32 i32 u64 i64 f32 f64: the file is an array of these, little-endian;
                        record: of records, see below. Of floating-point numbers the order is
                        -inf ... -0 +0 ... +inf NaN
      --record-size N   bytes of a record
      --key TYPE        u32 i32 u64 i64 f32 f64: what a record is sorted by
      --key-offset N    where it lies in the record; 0 by default
  -o, --output FILE     replaced at once when all of it is written; may be INPUT itself, or -,
                        standard output
      --times           prints how long each step took
      --check FILE      sorts nothing: is FILE sorted? Prints a sum over its records that does not
                        depend on their order
      --against INPUT   and is it, byte for byte, INPUT in a stable order?

The ISx benchmark: 32-bit keys, uniform below 2^28, sorted in memory and verified.

      --isx             runs it
      --keys N          of each rank, or of all with strong scaling; 2^24 by default. N may be
                        written as 2^24
      --scaling HOW     weak (default), strong, or isobucket: weak, 8192 different keys a rank
      --range N         keys are below N
      --runs N          how often; 3 by default, and once before to warm up
      --seed N          of the keys
      --beside-std-sort times std::sort of as many keys a rank, too

  -n, --backend, --timeout, --threads, --segment, --hosts: as of farside run; the default is smp
  with a rank for each core.
)";

namespace {

[[noreturn]] void refuse_option(const std::string& text) {
  refuse("sort", text, "; farside sort --help says more");
}

/// The value of an option that is a whole number, which may be written as 2^24.
std::uint64_t number_of(toolkit::option_reader& word) {
  std::string name = word.name(), text = word.value();
  std::size_t hat = text.find('^');
  auto base = far::parse_number(text.substr(0, hat));
  auto exponent = hat == std::string::npos ? 1 : far::parse_number(text.substr(hat + 1));
  if (!base || !exponent || *exponent > 63)
    refuse_option(name + " " + text + ": that is not a whole number");
  std::uint64_t result = 1;
  for (std::uint64_t i = 0; i < *exponent; ++i)
    if (__builtin_mul_overflow(result, *base, &result))
      refuse_option(name + " " + text + ": that is more than 64 bits hold");
  return result;
}

key_type parse_type(const std::string& option, const std::string& name) {
  constexpr std::pair<const char*, key_type> types[] = {
      {"u32", key_type::u32}, {"i32", key_type::i32}, {"u64", key_type::u64},
      {"i64", key_type::i64}, {"f32", key_type::f32}, {"f64", key_type::f64}};
  for (auto [known, type] : types)
    if (name == known) return type;
  refuse_option(option + " " + name +
                ": there is no such type; it is one of u32 i32 u64 i64 f32 f64" +
                (option == "--type" ? " record" : ""));
}

scaling parse_scaling(const std::string& name) {
  if (name == "weak") return scaling::weak;
  if (name == "strong") return scaling::strong;
  if (name == "isobucket") return scaling::isobucket;
  refuse_option("--scaling " + name +
                ": there is no such scaling; it is weak, strong or isobucket");
}

/// What was said of the form of the file.
struct said {
  std::string type, key;
  std::optional<std::uint64_t> size, offset;
};

record_form form_of(const said& of) {
  record_form form;
  if (of.type.empty())
    refuse_option("--type is missing: what does the file hold? --type u32, say, or --type record");
  if (of.type != "record") {
    if (of.size || of.offset || !of.key.empty())
      refuse_option("--record-size, --key and --key-offset are for --type record");
    form.type = parse_type("--type", of.type);
    form.size = bytes_of(form.type);
    return form;
  }
  if (!of.size || of.key.empty())
    refuse_option(
        std::string("--type record needs ") +
        (of.size ? "--key, the type of the number to sort by" : "--record-size, in bytes"));
  form.bare = false;
  form.type = parse_type("--key", of.key);
  form.size = *of.size;
  form.offset = of.offset.value_or(0);
  if (form.size > (std::uint64_t{1} << 30))
    refuse_option("--record-size " + std::to_string(form.size) +
                  ": records have 2^30 bytes at most");
  if (form.offset > form.size || form.size - form.offset < bytes_of(form.type))
    refuse_option("--key-offset " + std::to_string(form.offset) + ": a key of " +
                  std::to_string(bytes_of(form.type)) + " bytes there ends behind its record of " +
                  std::to_string(form.size));
  return form;
}

void check_isx(const sort_options& options) {
  std::uint64_t most = std::uint64_t{1} << 32;
  if (options.range > most) refuse_option("--range: keys have 32 bits; it is 2^32 at most");
  if (options.runs == 0) refuse_option("--runs 0: there would be nothing to show");
  if (options.keys > (std::uint64_t{1} << 40))
    refuse_option("--keys: that is more than memory holds");
}

}  // namespace

namespace {

/// What the command line says, before it is known whether that makes sense together.
struct command_line {
  sort_options options;
  said form;
  std::string input, against;
};

command_line read(toolkit::option_reader word) {
  command_line given;
  sort_options& result = given.options;
  while (word.next()) {
    if (word.is_operand()) {
      if (!given.input.empty())
        refuse_option("'" + word.text() + "': one file is sorted at a time, and that is '" +
                      given.input + "'");
      given.input = word.text();
    } else if (word.is("-h", "--help")) {
      word.no_value(), result.help = true;
    } else if (word.is("--isx")) {
      word.no_value(), result.isx = true;
    } else if (word.is("--keys")) {
      result.keys = number_of(word);
    } else if (word.is("--scaling")) {
      result.grows = parse_scaling(word.value());
    } else if (word.is("--range")) {
      result.range = number_of(word);
    } else if (word.is("--runs")) {
      result.runs = static_cast<unsigned>(std::min<std::uint64_t>(number_of(word), 1000));
    } else if (word.is("--seed")) {
      result.seed = number_of(word);
    } else if (word.is("--beside-std-sort")) {
      word.no_value(), result.beside_std_sort = true;
    } else if (word.is("-t", "--type")) {
      given.form.type = word.value();
    } else if (word.is("--record-size")) {
      given.form.size = number_of(word);
    } else if (word.is("--key")) {
      given.form.key = word.value();
    } else if (word.is("--key-offset")) {
      given.form.offset = number_of(word);
    } else if (word.is("-o", "--output")) {
      result.output = word.value();
    } else if (word.is("--check")) {
      result.check = word.value();
    } else if (word.is("--against")) {
      given.against = word.value();
    } else if (word.is("--times")) {
      word.no_value(), result.times = true;
    } else {
      refuse_option("unknown option " + word.text());
    }
  }
  return given;
}

command_line read_or_refuse(int argc, char** argv) {
  std::vector<std::string> words = toolkit::words_of(argc, argv);
  try {
    return read(toolkit::option_reader(words));
  } catch (const toolkit::wrong_option& problem) {
    refuse_option(problem.what());
  }
}

}  // namespace

sort_options parse_sort(int argc, char** argv) {
  auto [result, form, input, against] = read_or_refuse(argc, argv);
  if (result.help) return result;
  if (result.isx) {
    check_isx(result);
    return result;
  }
  if (input.empty() && result.check.empty())
    refuse_option("nothing to sort: name a file, or run the benchmark by --isx");
  result.form = form_of(form);
  result.input = result.check.empty() ? input : against;
  if (result.check.empty() && result.output.empty())
    refuse_option("-o is missing: where shall the sorted file go?");
  if (result.output == "-" && result.times)
    refuse_option("--times prints on standard output, which -o - takes; name a file");
  if (!result.check.empty() && (!input.empty() || !result.output.empty()))
    refuse_option("--check sorts nothing; name the file it came from by --against, and no output");
  if (result.check.empty() && !against.empty()) refuse_option("--against goes with --check");
  return result;
}

}  // namespace programs
