// Where ranks go when a job runs on several hosts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace far::app {

struct host {
  std::string name;
  std::uint32_t ranks = 0;  ///< 0 until it is decided

  bool operator==(const host&) const = default;
};

/// `node1:4,node2`: names, and how many ranks may go to each where that is said.
std::vector<host> parse_hosts(const std::string& text);

/// Gives each host its number of ranks, in blocks: as many as were said for it, else `per_host`,
/// else equal shares. Hosts that get none are left out. `ranks` 0 means as many as fit, if that is
/// known. Returns the number of ranks; throws an error if they do not fit.
std::uint32_t place_ranks(std::vector<host>& hosts, std::uint32_t ranks, std::uint32_t per_host);

/// `node1:4,node2:4`, as both mpiruns want it.
std::string list_of(const std::vector<host>& hosts);

}  // namespace far::app
