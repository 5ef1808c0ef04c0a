// How far memory is reached in an MPI job: FARSIDE_MPI, one binary for all of them.
//
//   rma              MPI-3 one-sided calls (window.hpp); the default
//   two_sided        messages; the owner serves them in its own library calls
//   progress_thread  messages; a thread of each process serves them
//   progress_rank    messages; some ranks of each node serve, and never return to the user's main
//   spawned          messages; processes made by MPI_Comm_spawn serve
//
// docs/mpi_progress.md has the costs of each. Where all ranks are on one node and may share memory,
// none of this is used: loads and stores do everything.
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/base/environment.hpp>
#include <farside/base/error.hpp>

#include <mpi.h>

#include <string>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

enum class strategy { rma, two_sided, progress_thread, progress_rank, spawned };

inline const char* name_of(strategy how) {
  constexpr const char* names[] = {"rma", "two_sided", "progress_thread", "progress_rank",
                                   "spawned"};
  return names[static_cast<int>(how)];
}

/// Which processes of a node serve, and which ranks they serve.
enum class placement {
  packed,  ///< the ranks of a node are cut into k groups; the last of each serves its group
  last,    ///< the last k serve; the others are cut into k groups
  cyclic   ///< the last k serve; the others take turns
};

/// What the environment asks for. Read by every rank, and compared (session::agree()).
struct strategy_settings {
  strategy how = strategy::rma;
  placement place = placement::last;
  rank_t servers = 1;     ///< of a node
  rank_t node_ranks = 0;  ///< processes that are taken for a node, for tests; 0: MPI says
  std::size_t inline_put = std::size_t{16} << 10;  ///< longer puts go straight into the segment

  static strategy_settings read();

  bool served() const { return how != strategy::rma; }
  /// Somebody else than the owner serves.
  bool has_servers() const { return how == strategy::progress_rank || how == strategy::spawned; }
  std::uint64_t packed() const {
    return static_cast<std::uint64_t>(how) | static_cast<std::uint64_t>(place) << 4 |
           std::uint64_t{servers} << 8 | std::uint64_t{node_ranks} << 20 |
           std::uint64_t{inline_put} << 42;
  }
};

inline strategy chosen_strategy() {
  auto value = setting("FARSIDE_MPI");
  if (!value) return strategy::rma;
  for (strategy how : {strategy::rma, strategy::two_sided, strategy::progress_thread,
                       strategy::progress_rank, strategy::spawned})
    if (*value == name_of(how)) return how;
  raise("environment variable FARSIDE_MPI='", *value,
        "' names no way to reach far memory. Use rma (MPI's one-sided calls), two_sided (the owner "
        "serves in its library calls), progress_thread (a thread of each process serves), "
        "progress_rank (some ranks of each node serve) or spawned (processes of "
        "MPI_Comm_spawn serve), or unset it.");
}

inline placement chosen_placement() {
  auto value = setting("FARSIDE_MPI_PROGRESS_PLACE");
  if (!value || *value == "last") return placement::last;
  if (*value == "packed") return placement::packed;
  if (*value == "cyclic") return placement::cyclic;
  raise("environment variable FARSIDE_MPI_PROGRESS_PLACE='", *value,
        "' is no placement of progress ranks. Use last, packed or cyclic, or unset it.");
}

inline std::size_t chosen_inline_put(std::size_t otherwise) {
  std::size_t result = size_setting("FARSIDE_MPI_INLINE").value_or(otherwise);
  constexpr std::size_t most = std::size_t{1} << 20;
  if (result > most)
    raise("FARSIDE_MPI_INLINE=", result, " is more than a message buffer holds. Give at most ",
          most, " bytes, as in 16K.");
  return result;
}

inline strategy_settings strategy_settings::read() {
  strategy_settings result;
  result.how = chosen_strategy();
  result.place = chosen_placement();
  result.servers =
      static_cast<rank_t>(integer_setting("FARSIDE_MPI_PROGRESS_RANKS", 1, 1024).value_or(1));
  result.node_ranks =
      static_cast<rank_t>(integer_setting("FARSIDE_MPI_NODE_RANKS", 1, 1 << 20).value_or(0));
  result.inline_put = chosen_inline_put(result.inline_put);
  return result;
}

/// Where a process of a node with `size` processes is: whether it serves, and which group of the
/// node's processes it is in.
struct place_in_node {
  bool serves;
  rank_t group;
};

/// `index` counts the processes of the node, servers among them.
inline place_in_node place_of(rank_t index, rank_t size, rank_t servers, placement how) {
  rank_t others = size - servers;
  switch (how) {
    case placement::packed: {
      auto group = static_cast<rank_t>(std::uint64_t{index} * servers / size);
      rank_t next = group + 1;  // the group ends where the next one begins
      auto end = static_cast<rank_t>((std::uint64_t{next} * size + servers - 1) / servers);
      return {index + 1 == end, group};
    }
    case placement::cyclic:
      return index >= others ? place_in_node{true, index - others}
                             : place_in_node{false, index % servers};
    default:
      return index >= others
                 ? place_in_node{true, index - others}
                 : place_in_node{false,
                                 static_cast<rank_t>(std::uint64_t{index} * servers / others)};
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend
