#include "options.hpp"

#include <cstdlib>

namespace far::app {

const char* const run_usage =
    R"(usage: farside run -n N [options] [--] program [arguments...]

Starts N ranks of a program, built for any back end, and ends them all when one of them dies.

  -n, --ranks N          how many ranks
      --segment SIZE     shared memory per rank: bytes, or with K, M, G, T (sets FARSIDE_SEGMENT)
  -e, --env NAME=VALUE   sets a variable for the ranks; NAME alone passes its present value on
      --bind none|core   core: rank i runs on core i only
      --prefix           puts '[rank] ' before each line that a rank prints
      --timeout SECONDS  says what each rank waits for and ends the job, with status 124
      --threads          smp only: ranks are threads of one process
      --stats[=FILE]     prints where communication went, or writes it (sets FARSIDE_STATS)
      --backend NAME     smp, mpi, openmpi, mpich or shmem, instead of what the program says
      --mpirun-arg ARG   one more argument for mpirun or oshrun; may be repeated
      --verbose          prints the command that is started, and why each setting is there
      --help             prints this

Status: 0; or that of the first rank that failed: its own, 128 + signal, or 1 for an exit with
0 before its runtime ended; 124 after --timeout; 2 for a wrong command line; 126 and 127 for a
program that cannot be run or found. SIGQUIT (Ctrl-\) prints what each rank waits for.
)";

std::uint32_t parse_ranks(const std::string& text) {
  auto n = parse_number(text);
  if (!n)
    throw error(
        usage_error,
        "-n " + text + ": that is not a whole number; say how many ranks to start, such as -n 4");
  if (*n == 0)
    throw error(usage_error,
                "-n 0: a job needs at least one rank; say how many to start, such as -n 4");
  if (*n > most_ranks)
    throw error(usage_error, "-n " + text + ": that is too many, a far pointer can name " +
                                 std::to_string(most_ranks) + " ranks at most; start fewer");
  return static_cast<std::uint32_t>(*n);
}

namespace {

const arguments long_options = {"--ranks",   "--segment",    "--env",     "--bind",
                                "--prefix",  "--timeout",    "--threads", "--stats",
                                "--backend", "--mpirun-arg", "--verbose", "--help"};

/// Walks over the words; an option's value is behind '=', attached (-n4), or the next word.
class reader {
 public:
  explicit reader(const arguments& words) : words_(words) {}

  bool next_option() {
    if (at_ == words_.size()) return false;
    const std::string& word = words_[at_];
    if (word == "--") return ++at_, false;
    if (word.size() < 2 || word[0] != '-') return false;
    ++at_;
    value_.reset();
    std::size_t equals = word.find('=');
    if (word.starts_with("--") && equals != std::string::npos) {
      name_ = word.substr(0, equals);
      value_ = word.substr(equals + 1);
    } else if (!word.starts_with("--") && word.size() > 2) {
      name_ = word.substr(0, 2);
      value_ = word.substr(2);
    } else {
      name_ = word;
    }
    return true;
  }

  bool is(const char* a, const char* b = "") const { return name_ == a || name_ == b; }
  const std::string& name() const { return name_; }
  const std::optional<std::string>& attached() const { return value_; }

  std::string value(const char* what) {
    if (value_) return *value_;
    if (at_ == words_.size()) throw error(usage_error, name_ + " needs " + what + " behind it");
    return words_[at_++];
  }

  void no_value() const {
    if (value_)
      throw error(usage_error,
                  name_ + "=" + *value_ + ": this option takes no value; write " + name_);
  }

  arguments rest() const {
    return {words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end()};
  }

 private:
  const arguments& words_;
  std::size_t at_ = 0;
  std::string name_;
  std::optional<std::string> value_;
};

std::pair<std::string, std::string> parse_variable(const std::string& text) {
  std::size_t equals = text.find('=');
  std::string name = text.substr(0, equals);
  if (name.empty())
    throw error(usage_error,
                "--env " + text + ": there is no name before '='; write --env NAME=VALUE");
  if (equals != std::string::npos) return {name, text.substr(equals + 1)};
  const char* present = getenv(name.c_str());
  if (!present)
    throw error(usage_error, "--env " + name +
                                 ": it is not set, so there is nothing to pass on; write --env " +
                                 name + "=VALUE, or export it first");
  return {name, present};
}

std::string checked_segment(const std::string& text) {
  auto bytes = parse_size(text);
  if (!bytes)
    throw error(usage_error, "--segment " + text +
                                 ": that is not a size; write bytes, or a whole number with K, M, "
                                 "G or T, such as --segment 256M");
  if (*bytes < 4096)
    throw error(usage_error, "--segment " + text + ": a segment of " + human_size(*bytes) +
                                 " holds nothing; give each rank at least 4K");
  return text;
}

double checked_seconds(const std::string& text) {
  char* end = nullptr;
  double seconds = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(seconds > 0) || seconds > 1e9)
    throw error(
        usage_error,
        "--timeout " + text + ": that is not a time; write seconds above 0, such as --timeout 30");
  return seconds;
}

binding checked_binding(const std::string& text) {
  if (text == "none") return binding::none;
  if (text == "core") return binding::core;
  throw error(usage_error, "--bind " + text + ": there is no such binding; it is none or core");
}

[[noreturn]] void refuse(const std::string& name) {
  std::string meant = nearest(name, long_options);
  throw error(
      usage_error,
      "unknown option " + name + (meant.empty() ? "" : "; did you mean " + meant + "?") +
          " Options of the program itself go behind its name; farside run --help lists ours");
}

}  // namespace

run_options parse_run(const arguments& words) {
  run_options result;
  reader word(words);
  while (word.next_option()) {
    if (word.is("-n", "--ranks"))
      result.ranks = parse_ranks(word.value("a number of ranks"));
    else if (word.is("--segment"))
      result.environment.emplace_back("FARSIDE_SEGMENT", checked_segment(word.value("a size")));
    else if (word.is("-e", "--env"))
      result.environment.push_back(parse_variable(word.value("NAME=VALUE")));
    else if (word.is("--bind"))
      result.bind = checked_binding(word.value("none or core"));
    else if (word.is("--timeout"))
      result.timeout = checked_seconds(word.value("a number of seconds"));
    else if (word.is("--stats"))
      result.environment.emplace_back("FARSIDE_STATS", word.attached().value_or("1"));
    else if (word.is("--backend"))
      result.backend = word.value("the name of a back end");
    else if (word.is("--mpirun-arg"))
      result.mpirun.push_back(word.value("an argument for mpirun"));
    else if (word.is("--prefix"))
      word.no_value(), result.prefix = true;
    else if (word.is("--threads"))
      word.no_value(), result.threads = true;
    else if (word.is("--verbose"))
      word.no_value(), result.verbose = true;
    else
      refuse(word.name());
  }
  result.command = word.rest();
  if (result.command.empty())
    throw error(usage_error, "no program is named; write farside run -n 4 ./program");
  if (result.ranks == 0)
    throw error(usage_error,
                "the number of ranks is missing; write farside run -n 4 " + result.command[0]);
  return result;
}

}  // namespace far::app
