// strategy::spawned: the servers are processes that MPI_Comm_spawn makes, as many on each node as
// FARSIDE_MPI_PROGRESS_RANKS says. They run the same program, with one more argument, and serve
// before they come to main (backend.hpp). What is set for the ranks they are told: the environment
// may not reach them.
#pragma once

#include <farside/backend/mpi/session.hpp>

#include <algorithm>
#include <climits>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

/// What the ranks tell the servers they have made.
struct spawn_terms {
  std::uint64_t servers, strict, node_processes, node, inline_put;
};

inline std::vector<std::string> own_arguments() {
  std::ifstream in("/proc/self/cmdline");
  std::vector<std::string> result;
  for (std::string word; std::getline(in, word, '\0');) result.push_back(word);
  return result;
}

inline std::string own_program() {
  char path[PATH_MAX] = "";
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

/// Collective over the ranks of the program.
inline void session::spawn() {
  struct home {
    std::uint64_t node, processes, group;
    char host[256];
  } mine{node_, node_processes_, 0, ""};
  gethostname(mine.host, sizeof mine.host - 1);
  std::vector<home> homes(nprocs_);
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, homes.data(), sizeof mine, MPI_BYTE, comm_);
  std::vector<home> nodes;
  rank_t before = 0;  // ranks of this node with a lower number
  for (rank_t r = 0; r < nprocs_; ++r) {
    if (homes[r].node == r) nodes.push_back(homes[r]);
    before += homes[r].node == node_ && r < rank_ ? 1 : 0;
  }
  group_ = before % settings_.servers;

  std::string program = own_program();
  std::vector<std::string> words = own_arguments();
  words.push_back(server_mark);
  std::vector<char*> arguments;
  for (std::size_t i = 1; i < words.size(); ++i) arguments.push_back(words[i].data());
  arguments.push_back(nullptr);
  auto count = nodes.size();
  std::vector<char*> programs(count, program.data());
  std::vector<char**> argument_lists(count, arguments.data());
  std::vector<int> processes(count, static_cast<int>(settings_.servers));
  std::vector<MPI_Info> infos(count, MPI_INFO_NULL);
  for (std::size_t i = 0; i < count; ++i) {
    MPI_Info_create(&infos[i]);
    if (std::any_of(nodes.begin(), nodes.end(),
                    [&](const home& h) { return std::strcmp(h.host, mine.host) != 0; }))
      MPI_Info_set(infos[i], "host", nodes[i].host);
  }
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  int code = MPI_Comm_spawn_multiple(static_cast<int>(count), programs.data(),
                                     argument_lists.data(), processes.data(), infos.data(), 0,
                                     comm_, &spawners_, MPI_ERRCODES_IGNORE);
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_ARE_FATAL);
  for (MPI_Info& info : infos) MPI_Info_free(&info);
  if (code != MPI_SUCCESS)
    raise("FARSIDE_MPI=spawned: MPI_Comm_spawn could not start ", count * settings_.servers,
          " servers of '", program, "': ", mpi_error_text(code),
#ifdef MPICH_VERSION
          ". Debian's MPICH 4.0 cannot spawn."
#else
          "."
#endif
          " Use FARSIDE_MPI=progress_rank, which takes its servers from the ranks that were "
          "started, or progress_thread.");
  MPI_Intercomm_merge(spawners_, 0, &whole_);
  for (std::uint64_t i = 0; i < count * settings_.servers; ++i) {
    if (rank_ != 0) break;
    const home& h = nodes[i / settings_.servers];
    spawn_terms terms{settings_.servers, strict_ ? 1u : 0u, h.processes + settings_.servers, h.node,
                      settings_.inline_put};
    MPI_Send(&terms, sizeof terms, MPI_BYTE, static_cast<int>(nprocs_ + i), 0, whole_);
  }
  node_processes_ += settings_.servers;
}

/// The other side of spawn().
inline void session::join_spawned() {
  serves_ = true;
  MPI_Comm_get_parent(&spawners_);
  if (spawners_ == MPI_COMM_NULL)
    raise("this process was started with the argument '", server_mark,
          "', which MPI_Comm_spawn gives to the servers of FARSIDE_MPI=spawned, but MPI has not "
          "spawned it. Leave the argument out.");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
  MPI_Intercomm_merge(spawners_, 1, &whole_);
  int value = 0;
  MPI_Comm_rank(comm_, &value);
  rank_ = static_cast<rank_t>(value);
  MPI_Comm_size(comm_, &value);
  nprocs_ = static_cast<rank_t>(value);
  spawn_terms terms;
  MPI_Recv(&terms, sizeof terms, MPI_BYTE, 0, 0, whole_, MPI_STATUS_IGNORE);
  node_ = terms.node;
  settings_.servers = static_cast<rank_t>(terms.servers);
  settings_.inline_put = terms.inline_put;
  group_ = rank_ % terms.servers;
  strict_ = terms.strict != 0;
  node_processes_ = static_cast<rank_t>(terms.node_processes);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend
