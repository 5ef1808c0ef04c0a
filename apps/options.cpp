#include "options.hpp"

#include "option_values.hpp"

namespace far::app {

const char* const run_usage =
    R"(usage: farside run -n N [options] [--] program [arguments...]

Starts N ranks of a program, built for any back end, and ends them all when one of them dies.

  -n, --ranks N          how many ranks; -np N means the same
      --segment SIZE     shared memory per rank: bytes, or with K, M, G, T (sets FARSIDE_SEGMENT)
  -e, --env NAME=VALUE   sets a variable for the ranks; NAME alone passes its present value on
      --bind none|core   core: rank i runs on core i only
      --prefix           puts '[rank] ' before each line that a rank prints
      --timeout SECONDS  says what each rank waits for and ends the job, with status 124
      --threads          smp only: ranks are threads of one process
      --stats[=FILE]     prints where communication went, or writes it (sets FARSIDE_STATS)
      --backend NAME     smp, mpi, openmpi, mpich, shmem or sim, instead of what the program says
      --hosts LIST       mpi and shmem: on these hosts, node1,node2 or node1:4,node2:2 (ranks)
  -N, --per-host N       so many ranks on each of them; equal shares of -n otherwise
      --agent PROGRAM    how to run a command on a host, instead of ssh: PROGRAM HOST COMMAND
      --mpirun-arg ARG   one more argument for mpirun or oshrun; may be repeated
      --verbose          prints the command that is started, and why each setting is there
      --help             prints this

Status: 0; or that of the first rank that failed: its own, 128 + signal, or 1 for an exit with
0 before its runtime ended; 124 after --timeout; 2 for a wrong command line; 126 and 127 for a
program that cannot be run or found. SIGQUIT (Ctrl-\) prints what each rank waits for.
)";

std::uint32_t parse_ranks(const std::string& text, const std::string& option) {
  auto n = parse_number(text);
  if (!n)
    throw error(usage_error, option + " " + text +
                                 ": that is not a whole number; say how many ranks to start, such "
                                 "as " +
                                 option + " 4");
  if (*n == 0)
    throw error(usage_error, option +
                                 " 0: a job needs at least one rank; say how many to start, such "
                                 "as " +
                                 option + " 4");
  if (*n > most_ranks)
    throw error(usage_error, option + " " + text + ": that is too many, a far pointer can name " +
                                 std::to_string(most_ranks) + " ranks at most; start fewer");
  return static_cast<std::uint32_t>(*n);
}

namespace {

const arguments long_options = {"--ranks",   "--segment", "--env",   "--bind",     "--prefix",
                                "--timeout", "--threads", "--stats", "--backend",  "--mpirun-arg",
                                "--verbose", "--help",    "--hosts", "--per-host", "--agent"};

binding checked_binding(const std::string& text) {
  if (text == "none") return binding::none;
  if (text == "core") return binding::core;
  throw error(usage_error, "--bind " + text + ": there is no such binding; it is none or core");
}

std::string checked_agent(const std::string& name) {
  std::string path = find_in_path(name);
  if (path.empty())
    throw error(not_found, "--agent " + name +
                               ": there is no such program; it is called with a host and a "
                               "command, as ssh is");
  return path;
}

/// Places the ranks on the hosts, which also says how many ranks there are.
void settle_hosts(run_options& result, std::uint32_t per_host) {
  if (result.hosts.empty()) {
    const char* needless = per_host ? "-N" : !result.agent.empty() ? "--agent" : nullptr;
    if (needless)
      throw error(usage_error, std::string(needless) +
                                   ": that is for jobs on several hosts; name them by --hosts");
    return;
  }
  result.ranks = place_ranks(result.hosts, result.ranks, per_host);
  if (result.ranks > most_ranks) parse_ranks(std::to_string(result.ranks));
}

}  // namespace

run_options parse_run(const arguments& words) {
  run_options result;
  std::uint32_t per_host = 0;
  option_reader word(words);
  while (word.next_option()) {
    if (word.is("-n", "--ranks"))
      result.ranks = parse_ranks(word.value("a number of ranks"));
    else if (word.is("-N", "--per-host"))
      per_host = parse_ranks(word.value("a number of ranks"), "-N");
    else if (word.is("--hosts"))
      result.hosts = parse_hosts(word.value("a list of hosts"));
    else if (word.is("--agent"))
      result.agent = checked_agent(word.value("a program"));
    else if (word.is("--segment"))
      result.environment.emplace_back("FARSIDE_SEGMENT", checked_segment(word.value("a size")));
    else if (word.is("-e", "--env"))
      result.environment.push_back(parse_variable(word.value("NAME=VALUE")));
    else if (word.is("--bind"))
      result.bind = checked_binding(word.value("none or core"));
    else if (word.is("--timeout"))
      result.timeout = checked_time("--timeout", word.value("a number of seconds"));
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
      refuse_option("run", word.name(), long_options);
  }
  result.command = word.rest();
  if (result.command.empty())
    throw error(usage_error, "no program is named; write farside run -n 4 ./program");
  settle_hosts(result, per_host);
  if (result.ranks == 0)
    throw error(usage_error,
                "the number of ranks is missing; write farside run -n 4 " + result.command[0]);
  return result;
}

}  // namespace far::app
