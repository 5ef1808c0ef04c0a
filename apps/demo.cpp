// `farside demo`: the shortest way from installed to seen.

#include <cstdio>

#include "run.hpp"
#include "support.hpp"

namespace far::app {

int demo_command(const arguments& words) {
  run_options options;
  options.ranks = 4;
  arguments rest;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--help" || words[i] == "-h") {
      std::fputs(
          "usage: farside demo [-n N] [arguments of demo_smp...]\n\nRuns demo_smp on 4 ranks, or "
          "N.\n",
          stdout);
      return success;
    }
    if (words[i] != "-n") {
      rest.push_back(words[i]);
      continue;
    }
    if (i + 1 == words.size()) throw error(usage_error, "-n needs a number of ranks behind it");
    options.ranks = parse_ranks(words[++i]);
  }
  std::string program = find_companion("demo_smp");
  if (program.empty())
    throw error(not_found, "the program demo_smp is neither in " + self_directory() + " nor in " +
                               self_directory() +
                               "/../libexec/farside; build or install it with farside's examples");
  options.command = {program};
  options.command.insert(options.command.end(), rest.begin(), rest.end());
  return run_job(std::move(options));
}

}  // namespace far::app
