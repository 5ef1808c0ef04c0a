// `farside sort` and the like: programs that come with farside, for any back end, or one for each.

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "machine.hpp"
#include "option_values.hpp"
#include "program.hpp"
#include "run.hpp"
#include "support.hpp"

namespace far::app {

namespace {

/// The words that are ours, as `farside run` understands them, and those of the program.
struct divided {
  arguments ours, theirs;
  std::string backend = "smp";
  bool ranks_given = false, help = false, dashes = false;
};

/// Ours may stand anywhere before `--`.
divided divide(const arguments& words) {
  divided result;
  option_reader word(words);
  while (word.next()) {
    if (word.is("-h", "--help")) {
      result.help = true;
    } else if (word.is("--backend")) {
      result.backend = word.value("the name of a back end");
    } else if (word.is("-n", "--ranks") || word.is("--hosts")) {
      result.ranks_given = true;
      result.ours.insert(result.ours.end(), {word.name(), word.value()});
    } else if (word.is("--timeout") || word.is("--segment")) {
      result.ours.insert(result.ours.end(), {word.name(), word.value()});
    } else if (word.is("--threads")) {
      word.no_value(), result.ours.push_back(word.name());
    } else {
      if (word.behind_dashes() && !result.dashes)
        result.theirs.push_back("--"), result.dashes = true;
      result.theirs.push_back(word.text());
    }
  }
  return result;
}

arguments flavours_of(const std::string& backend) {
  if (backend == "mpi") return {"openmpi", "mpich"};
  if (backend == "smp" || backend == "openmpi" || backend == "mpich" || backend == "shmem")
    return {backend};
  throw error(usage_error,
              "--backend " + backend +
                  ": there is no such back end; it is one of smp, mpi, openmpi, mpich, shmem");
}

std::string find_program(const std::string& name, const std::string& backend) {
  arguments names;
  for (const std::string& flavour : flavours_of(backend)) {
    names.push_back(name + "_" + flavour);
    if (std::string path = find_companion(names.back()); !path.empty()) return path;
  }
  if (std::string path = find_companion(name + "_any"); !path.empty()) return path;
  throw error(not_found, "the program " + names[0] + " is neither in " + self_directory() +
                             " nor in " + self_directory() +
                             "/../libexec/farside; choose another --backend, or install a Farside "
                             "that was built with this one (cmake -DFARSIDE_BACKENDS=...)");
}

/// As many as this process may use at once.
std::uint32_t usable_cores() {
  cores found = count_cores();
  double quota = std::ceil(found.quota.value_or(found.allowed));
  return static_cast<std::uint32_t>(std::clamp<double>(quota, 1, found.allowed));
}

}  // namespace

int program_command(const std::string& name, const arguments& words, std::uint32_t ranks) {
  divided all = divide(words);
  std::string program = find_program(name, all.backend);
  if (all.help) {
    run_options once;
    once.ranks = 1;
    once.command = {program, "--help"};
    return run_job(std::move(once));
  }
  if (takes_any(program)) all.ours.insert(all.ours.end(), {"--backend", all.backend});
  if (!all.ranks_given)
    all.ours.insert(all.ours.end(), {"-n", std::to_string(ranks != 0 ? ranks : usable_cores())});
  all.ours.insert(all.ours.end(), {"--", program});
  all.ours.insert(all.ours.end(), all.theirs.begin(), all.theirs.end());
  return run_job(parse_run(all.ours));
}

}  // namespace far::app
