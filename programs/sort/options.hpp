// The command line of `farside sort`.
#pragma once

#include <sort/keys.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace programs {

enum class scaling { weak, strong, isobucket };

struct sort_options {
  bool help = false;

  bool isx = false;
  scaling grows = scaling::weak;
  std::uint64_t keys = std::uint64_t{1} << 24;  ///< of a rank; of all with strong scaling
  std::uint64_t range = 0;                      ///< keys are below it; 0: as ISx has it
  unsigned runs = 3;
  bool beside_std_sort = false;
  std::uint64_t seed = 1;

  record_form form;
  std::string input, output;
  std::string check;  ///< is this file sorted?
  bool times = false;
};

extern const char* const sort_usage;

/// Refuses what makes no sense.
sort_options parse_sort(int argc, char** argv);

/// Each of the three is collective.
void run_isx(const sort_options& options);
void sort_file(const sort_options& options);
void check_file(const sort_options& options);

}  // namespace programs
