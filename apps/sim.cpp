#include "sim.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "job.hpp"
#include "option_values.hpp"
#include "report.hpp"
#include "run.hpp"
#include "sim_campaign.hpp"
#include "wrong_start.hpp"

namespace far::app {

namespace {

void require_sim(const std::string& path) {
  transport how = transport_of(path);
  if (how == transport::sim || how == transport::any) return;
  throw error(usage_error,
              "'" + path + "' is built for " + name_of(how) +
                  ", and only the back end sim can be simulated; link farside::sim "
                  "or farside::any instead (without CMake: compile with -DFARSIDE_USE_SIM=1, or "
                  "-DFARSIDE_USE_ANY=1)");
}

/// Nothing of the caller's environment may decide a run: it would not be in the line that repeats
/// it.
void set_up(const sim_options& options) {
  arguments inherited;
  for (char** variable = environ; *variable; ++variable) {
    std::string text = *variable;
    if (text.starts_with("FARSIDE_SIM_")) inherited.push_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : inherited) unsetenv(name.c_str());
  variables environment = options.environment;
  if (!options.segment.empty()) environment.emplace_back("FARSIDE_SEGMENT", options.segment);
  set_up_environment(environment);
  open_standard_streams();
}

/// The file of --trace: '-' is one that is printed in the end.
struct trace_file {
  explicit trace_file(const std::string& given) {
    if (given == "-") {
      printed = std::make_unique<temporary_file>("farside-sim");
      path = printed->path;
    } else if (!given.empty()) {
      path = std::filesystem::absolute(given).string();
      if (!std::ofstream(path))  // now, not after minutes of running
        throw error(failure, "--trace " + given +
                                 ": cannot write that file; check the folder and its rights");
    }
  }
  void print() {
    if (!printed) return;
    std::ifstream file(path);
    printed.reset();  // its name goes now: nobody may want to read to the end (SIGPIPE)
    std::string block(1 << 16, '\0');
    while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0)
      std::fwrite(block.data(), 1, static_cast<std::size_t>(file.gcount()), stdout);
  }

  std::unique_ptr<temporary_file> printed;
  std::string path;
};

}  // namespace

int sim_command(const arguments& words) {
  if (asks_for_help(words)) {
    std::fputs(sim_usage, stdout);
    return success;
  }
  sim_options options = parse_sim(words);
  refuse_several_launchers("sim", options.ranks);
  sim_program program{locate_program(options.command[0]),
                      options.command,
                      options.ranks,
                      options.steps,
                      options.time_limit,
                      options.jobs};
  require_sim(program.path);
  trace_file trace(options.trace);
  set_up(options);
  if (takes_any(program.path)) set_carrier(transport::sim);
  sim_pool pool(std::move(program));
  campaign runs(options, pool, options.trace == "-" ? stderr : stdout, trace.path);
  int status = success;
  try {
    status = runs.run();
  } catch (const interruption& stopped) {
    std::fprintf(stderr, "farside sim: received signal %s; all runs were ended\n",
                 signal_name(stopped.signal).c_str());
    status = signal_base + stopped.signal;
  }
  trace.print();
  runs.print_summary();
  return status;
}

}  // namespace far::app
