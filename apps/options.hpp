// The command line of `farside run`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hosts.hpp"
#include "support.hpp"

namespace far::app {

/// A far pointer has 19 bits for the rank.
inline constexpr std::uint64_t most_ranks = std::uint64_t{1} << 19;

/// Of the environment: names and values.
using variables = std::vector<std::pair<std::string, std::string>>;

enum class binding { unsaid, none, core };

struct run_options {
  std::uint32_t ranks = 0;
  variables environment;  ///< also --segment and --stats
  binding bind = binding::unsaid;
  bool prefix = false;
  bool threads = false;
  bool verbose = false;
  double timeout = 0;       ///< seconds; 0 is none
  std::string backend;      ///< empty: as the program's note says
  std::vector<host> hosts;  ///< with the ranks of each; empty: as mpirun decides, mostly this one
  std::string agent;        ///< instead of ssh
  arguments mpirun;         ///< handed to mpirun as they are
  arguments command;        ///< program and its arguments
};

extern const char* const run_usage;

/// Throws `error` for anything it does not understand. `words` begins behind `run`.
run_options parse_run(const arguments& words);

/// Turns the text of `-n` into a number of ranks, with reasons for what is refused.
std::uint32_t parse_ranks(const std::string& text, const std::string& option = "-n");

}  // namespace far::app
