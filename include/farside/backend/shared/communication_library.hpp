// What every communication library wants before it starts and before it ends.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

namespace far::job_board {

/// Before it starts. hwloc, which tells MPIs about cores, also looks for ten X displays of this
/// host, by TCP: where the name localhost is in no table, each is a look-up that may take seconds.
inline void look_for_no_displays() { setenv("HWLOC_COMPONENTS", "-gl", 0); }

/// While Open MPI starts. In a step of srun it expects to be told of the others by PMIx, and ends
/// the program where it is not, also if there are no others: `srun -n 1 ./program` where Slurm's
/// default is another PMI. Without the step's number it starts a job of one rank.
class step_without_pmix {
 public:
  step_without_pmix() {
    const char* step = std::getenv(variable);
    if (step == nullptr || std::getenv("PMIX_NAMESPACE") != nullptr ||
        std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr)
      return;
    number_ = step;
    unsetenv(variable);
  }
  ~step_without_pmix() {
    if (!number_.empty()) setenv(variable, number_.c_str(), 1);
  }
  step_without_pmix(const step_without_pmix&) = delete;
  step_without_pmix& operator=(const step_without_pmix&) = delete;

  explicit operator bool() const { return !number_.empty(); }

 private:
  static constexpr const char* variable = "SLURM_STEP_ID";
  std::string number_;
};

/// While it lives, looks of ours for messages do not yield. Open MPI yields in each look that finds none,
/// where there are more ranks than cores. Our waits give way between their looks, and with more care
/// (base/give_way.hpp); waits inside of Open MPI still yield. Of other libraries it changes nothing.
class looks_without_yields {
 public:
  looks_without_yields() { set(false); }
  ~looks_without_yields() { set(true); }
  looks_without_yields(const looks_without_yields&) = delete;
  looks_without_yields& operator=(const looks_without_yields&) = delete;

 private:
  static void set(bool yields) {
    // There since the library has started; null if it never yields. Several threads may look.
    static bool* const word = [] {
      auto* found = static_cast<bool*>(dlsym(RTLD_DEFAULT, "opal_progress_yield_when_idle"));
      return found != nullptr && *found ? found : nullptr;
    }();
    if (word != nullptr) std::atomic_ref<bool>(*word).store(yields, std::memory_order_relaxed);
  }
};

/// Before it ends. Open MPI unloads its components then, and the libraries these have brought
/// along (PMIx, UCX, libfabric, hwloc's plugins), some of which have threads of their own: a thread
/// that is not quite done, say in a slow look-up, would find its code gone, and the job would end
/// with SIGSEGV after all work was done. So whatever is loaded now stays until the process ends.
inline void keep_libraries_loaded() {
  std::vector<std::string> paths;
  dl_iterate_phdr(  // it holds the loader's lock: nothing may be opened inside
      [](dl_phdr_info* library, std::size_t, void* list) {
        if (library->dlpi_name != nullptr && library->dlpi_name[0] == '/')
          static_cast<std::vector<std::string>*>(list)->emplace_back(library->dlpi_name);
        return 0;
      },
      &paths);
  for (const std::string& path : paths)
    dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace far::job_board
