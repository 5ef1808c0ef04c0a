// `farside bench core|containers|messages|store|arrays`: the same measurement on each back end that
// was built, and, for messages, store and arrays, with each way of serving them.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "option_values.hpp"
#include "plot.hpp"
#include "run.hpp"
#include "support.hpp"

namespace far::app {

namespace {

constexpr const char* usage =
    R"(usage: farside bench core|containers|messages|store|arrays [--backend smp|mpi|shmem|all] [-n N]
                     [--json FILE] [--svg FOLDER] [options...]

Runs the benchmark programs bench_core_smp, bench_core_openmpi, bench_core_mpich and
bench_core_shmem (or bench_containers_smp and so on), those that were built, and prints what each
measures, beside its floor. `messages` and `store` run each several times: with messages served by
polling and by a thread (FARSIDE_ATTENTION), and, for mpi, with each strategy (FARSIDE_MPI). `store`
also reads from neighbours on 1 and 4 ranks. `arrays` runs once, and, for mpi, with each strategy.

      --backend NAME   only these; all by default
  -n, --ranks N        how many ranks; 2 by default
      --json FILE      writes the measurements of all of them as one JSON list
      --svg FOLDER     draws the figures of these three, and makes the folder if there is none
  Everything else goes to the benchmark programs.
)";

struct bench_options {
  std::string backend = "all", json, svg;
  std::uint32_t ranks = 2;
  arguments rest;
};

/// `words` begins behind the name of the benchmark.
bench_options parse(const arguments& words) {
  bench_options result;
  option_reader word(words);
  while (word.next()) {
    if (word.is("--backend"))
      result.backend = word.value("the name of a back end");
    else if (word.is("-n", "--ranks"))
      result.ranks = parse_ranks(word.value("a number of ranks"));
    else if (word.is("--json"))
      result.json = word.value("a file");
    else if (word.is("--svg"))
      result.svg = word.value("a folder");
    else
      result.rest.push_back(word.text());
  }
  return result;
}

/// Names of the programs that `--backend` stands for.
arguments programs_of(const std::string& benchmark, const std::string& backend) {
  arguments names;
  auto add = [&](const char* name) { names.push_back("bench_" + benchmark + "_" + name); };
  bool all = backend == "all";
  if (all || backend == "smp") add("smp");
  if (all || backend == "mpi" || backend == "openmpi") add("openmpi");
  if (all || backend == "mpi" || backend == "mpich") add("mpich");
  if (all || backend == "shmem") add("shmem");
  if (names.empty())
    throw error(usage_error, "--backend " + backend +
                                 ": there is no such back end; it is one of smp, mpi, shmem, all");
  return names;
}

/// How a benchmark's program runs: its environment, and how many ranks, if not as many as asked for.
struct way {
  variables environment{};
  std::uint32_t ranks = 0;
  arguments more{};
};

std::vector<way> ways_of(const std::string& benchmark, const std::string& program) {
  std::vector<way> ways(1);
  if (benchmark != "messages" && benchmark != "store" && benchmark != "arrays") return ways;
  if (benchmark == "store")
    for (const std::uint32_t ranks : {1, 4})
      ways.push_back({{}, ranks, {"--filter", "from the neighbour"}});
  if (benchmark != "arrays") ways.push_back({{{"FARSIDE_ATTENTION", "thread"}}});
  const bool openmpi = program.ends_with("_openmpi");
  if (!openmpi && !program.ends_with("_mpich")) return ways;
  for (const char* strategy : {"rma", "two_sided", "progress_thread", "progress_rank", "spawned"})
    if (openmpi || strategy != std::string("spawned"))
      ways.push_back({{{"FARSIDE_MPI_SHARED", "0"}, {"FARSIDE_MPI", strategy}}});
  if (!openmpi) std::printf("MPICH's MPI_Comm_spawn does not work: without FARSIDE_MPI=spawned\n");
  return ways;
}

/// Puts the environment of this process back to what it was: a job's settings stay in it.
class kept_environment {
 public:
  explicit kept_environment(const variables& changed) {
    for (const auto& [name, value] : changed) {
      const char* before = std::getenv(name.c_str());
      before_.push_back(
          {name, before != nullptr ? std::optional<std::string>(before) : std::nullopt});
    }
  }
  ~kept_environment() {
    for (const auto& [name, value] : before_)
      value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
  }

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void draw(const std::vector<figure>& figures, const std::string& folder) {
  for (const figure& one : figures) {
    std::string path = folder + "/" + one.file_name();
    std::ofstream file(path);
    if (!(file << one.svg() << std::flush))
      throw error(failure, "--svg " + folder + ": " + path + " could not be written");
    std::printf("%s\n", path.c_str());
  }
}

/// The inside of a JSON list, to be joined with others; nothing if the file holds no list.
std::string elements_of(const std::string& path) {
  std::string text = trimmed(contents_of(path));
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return "";
  return trimmed(text.substr(1, text.size() - 2));
}

}  // namespace

int bench_command(const arguments& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" ||
      std::find(words.begin(), words.end(), "--help") != words.end()) {
    std::fputs(usage, words.empty() ? stderr : stdout);
    return words.empty() ? usage_error : success;
  }
  const arguments known = {"core", "containers", "messages", "store", "arrays"};
  if (std::find(known.begin(), known.end(), words[0]) == known.end())
    throw error(usage_error, "there is no benchmark '" + words[0] +
                                 "'; there are: core, containers, messages, store, arrays");
  arguments behind_name(words.begin() + 1, words.end());
  bench_options options = parse(behind_name);

  arguments names = programs_of(words[0], options.backend), found;
  for (const std::string& name : names)
    if (std::string path = find_companion(name); !path.empty()) found.push_back(path);
  if (found.empty())
    throw error(not_found, "none of " + quoted(names) + " is in " + self_directory() + " or " +
                               self_directory() +
                               "/../libexec/farside; build or install farside with its benchmarks");
  std::ofstream json;
  if (!options.json.empty()) {
    json.open(options.json);  // now, not after minutes of measuring
    if (!json)
      throw error(failure, "--json " + options.json +
                               ": cannot write that file; check the folder and its rights");
  }

  if (!options.svg.empty()) {
    std::error_code problem;
    std::filesystem::create_directories(options.svg, problem);
    if (problem) throw error(failure, "--svg " + options.svg + ": " + problem.message());
  }

  int worst = success;
  std::string joined;
  std::vector<figure> figures;
  for (const std::string& program : found)
    for (const way& one : ways_of(words[0], program)) {
      kept_environment until_next(one.environment);
      temporary_file measured("farside-bench"), points("farside-bench");
      run_options run;
      run.ranks = one.ranks != 0 ? one.ranks : options.ranks;
      run.environment = one.environment;
      run.command = {program};
      run.command.insert(run.command.end(), one.more.begin(), one.more.end());
      run.command.insert(run.command.end(), options.rest.begin(), options.rest.end());
      if (json.is_open()) run.command.insert(run.command.end(), {"--json", measured.path});
      if (!options.svg.empty()) run.command.insert(run.command.end(), {"--points", points.path});
      std::fflush(stdout);
      int status = run_job(std::move(run));
      if (status != success) worst = status;
      if (status == signal_base + 2 || status == signal_base + 15)
        return status;  // the user has had enough
      std::string part = json.is_open() ? elements_of(measured.path) : "";
      if (!part.empty()) joined += (joined.empty() ? "" : ",\n") + part;
      add_points(figures, contents_of(points.path));
    }
  if (!options.svg.empty()) draw(figures, options.svg);
  if (json.is_open() && !(json << "[\n" << joined << "\n]\n" << std::flush))
    throw error(failure,
                "--json " + options.json + ": could not be written to the end; is the disk full?");
  return worst;
}

}  // namespace far::app
