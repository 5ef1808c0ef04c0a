// What `farside wavelets` is asked to do.
#pragma once

#include <farside/algorithms/wavelets/tree_node.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wavelets_program {

/// One word of the command line, with its argument.
struct stage {
  std::string name, argument;
};

struct request {
  bool help = false, times = false, json = false, by_hash = false;
  std::string function = "gauss", load;
  std::size_t dimensions = 2, k = 9;
  double threshold = 1e-6;
  far::wavelets::refinement mode = far::wavelets::refinement::absolute;
  std::uint32_t initial_level = 2, max_level = far::wavelets::deepest_level;
  std::size_t slice_axis = 2;
  double slice_at = 0.5;  ///< where a plot cuts three dimensions
  std::vector<stage> stages;
};

/// Throws toolkit::wrong_option if they make no sense.
request parse_request(const std::vector<std::string>& words);
/// Whether a stage of that name is there, and what its argument is called; nothing if it has none.
std::optional<std::string> argument_of_stage(const std::string& name);

template <std::size_t D>
void run(const request& asked);

extern template void run<1>(const request&);
extern template void run<2>(const request&);
extern template void run<3>(const request&);

}  // namespace wavelets_program
