// A carrier: the shared library that the back end `any` finds at run time, one for each transport.
// FARSIDE_CARRIER is its path; `farside run --backend NAME` sets it.
#pragma once

#include <farside/backend/any/port.hpp>
#include <farside/backend/shared/started_alone.hpp>
#include <farside/base/environment.hpp>
#include <farside/base/function_ref.hpp>
#include <farside/base/job_board.hpp>

#include <dlfcn.h>

#include <cstring>
#include <string>

namespace far::inline FARSIDE_BACKEND::detail::any_backend {

/// Raise it when port.hpp, request.hpp or this file changes in what both sides see.
inline constexpr std::uint32_t carrier_version = 2;

/// What a carrier exports, as `farside_carrier`.
struct carrier {
  std::uint32_t version = carrier_version;
  std::uint32_t checked = FARSIDE_CHECKED;
  std::uint32_t sizes = sizeof(request) * 65536 + sizeof(start_options) + sizeof(port_facts);
  const char* name = nullptr;  ///< of the back end
  bool simulated = false;      ///< all ranks take turns on one thread
  port* (*open)(const start_options&) = nullptr;
  /// Runs all ranks in this process, and returns its exit status. Null: each process is a rank.
  int (*run)(const start_options&, function_ref<int(const start_options&)> one_rank) = nullptr;
  /// A rank that `run` runs has ended by an exception that a planned fault explains.
  void (*excuse)(const start_options&) = nullptr;
};

struct found_carrier {
  const carrier* use = nullptr;  ///< null: there is none, the job is one of smp
  std::string problem;           ///< why the one that was asked for cannot be used
};

inline found_carrier find_carrier() {
  auto path = setting(job::carrier_variable);
  if (!path) return {};
  // Global: MPIs load parts that need them. Never unloaded: threads of theirs may outlive main.
  void* library = dlopen(path->c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  if (library == nullptr)
    return {nullptr,
            text("cannot load the transport ", job::carrier_variable, "='", *path, "': ", dlerror(),
                 ". Start the program with 'farside run --backend NAME', which finds the "
                 "one it came with.")};
  auto* found = static_cast<const carrier*>(dlsym(library, "farside_carrier"));
  if (found == nullptr)
    return {nullptr, text(job::carrier_variable, "='", *path,
                          "' is no transport of farside: it exports no farside_carrier. Name one "
                          "of the farside_*.so that are installed beside the program farside.")};
  const carrier expected;
  if (found->version != expected.version || found->sizes != expected.sizes)
    return {nullptr, text("the transport '", *path,
                          "' belongs to another version of farside than this program was built "
                          "with. Build the program again with the headers of that version.")};
  if (found->checked != expected.checked)
    return {nullptr, text("this program was built ", FARSIDE_CHECKED ? "with" : "without",
                          " FARSIDE_CHECKED, and the transport '", *path, "' ",
                          FARSIDE_CHECKED ? "without" : "with",
                          ". Build both alike, or build the program for its back end alone "
                          "(farside::mpi, farside::shmem, farside::sim), checked or not.")};
  return {found, ""};
}

/// Found once, before main: a process that MPI has spawned to serve never comes to main
/// (mpi/backend.hpp).
inline const found_carrier& the_carrier() {
  static const found_carrier once = find_carrier();
  return once;
}
inline const bool carrier_is_known = (the_carrier(), true);

/// The carrier of this job; null on smp.
inline const carrier* chosen_carrier() {
  const found_carrier& found = the_carrier();
  if (!found.problem.empty()) raise(found.problem);
  if (found.use != nullptr || setting(job::nprocs_variable)) return found.use;
  auto ranks = job::ranks_of_launcher();
  if (ranks > 1 && !setting(job::threads_variable))
    raise("'farside run' has started this process as one of ", ranks,
          ", but nothing tells it which transport carries it: it is built for any back end, and "
          "was not started by its own name. Name the transport's farside_NAME.so: 'farside run -e ",
          job::carrier_variable, "=PATH'.");
  auto start = ranks == 0 ? job::find_foreign_start() : std::nullopt;
  if (start)
    raise(
        "this process is one of ", start->at_least ? "at least " : "", start->processes, " that ",
        start->launcher, " has started (", start->evidence,
        "), but nothing tells it which transport carries it: it is built for any back end. "
        "Start it with ",
        how_to_start(start->processes, " --backend NAME"), ", or set ", job::carrier_variable,
        " to that transport's farside_NAME.so. Where each of them shall be a job of its own, set ",
        job::separate_variable, "=1.");
  return nullptr;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::any_backend
