// Mutexes. far::mutex_set has mutex i on member i % size, so mutex m of process p is m * size + p.
#include "mutexes.hpp"

#include "library.hpp"

#include <armcix.h>

#include <algorithm>
#include <optional>

/// A set of mutexes over a group; armcix.h names it.
struct armcix_mutex_hdl_s {
  std::vector<int> counts;  ///< of each member
  far::mutex_set all;

  armcix_mutex_hdl_s(int count, const far::team& over)
      : counts(far::all_gather(count, over)), all(mutexes(), {}, {.over = over}) {}
  std::size_t mutexes() const {
    for (int n : counts)
      if (n < 0) armci::raise(n, " mutexes were asked for.");
    auto most = static_cast<std::size_t>(std::ranges::max(counts));
    return std::max<std::size_t>(1, most) * counts.size();
  }
  far::mutex_ref at(int mutex, int process) {
    if (process < 0 || process >= static_cast<int>(counts.size()))
      armci::raise("there is no process ", process, " among ", counts.size(), ".");
    int count = counts[static_cast<std::size_t>(process)];
    if (mutex < 0 || mutex >= count)
      armci::raise("process ", process, " has no mutex ", mutex, ": it has ", count, ".");
    return all[static_cast<std::size_t>(mutex) * counts.size() + static_cast<std::size_t>(process)];
  }
};

namespace armci {
namespace {

std::unique_ptr<armcix_mutex_hdl_s> of_the_world;

armcix_mutex_hdl_s& the_mutexes() {
  here();
  if (!of_the_world)
    raise("there are no mutexes. Call ARMCI_Create_mutexes, on all processes, before.");
  return *of_the_world;
}

armcix_mutex_hdl_s& set_of(armcix_mutex_hdl_t set) {
  here();
  if (set == nullptr) raise("the set of mutexes is a null pointer.");
  return *set;
}

}  // namespace

void forget_mutexes() { of_the_world.reset(); }

}  // namespace armci

using armci::call;

extern "C" {

int PARMCI_Create_mutexes(int count) {
  return call("ARMCI_Create_mutexes", [&] {
    armci::here();
    if (armci::of_the_world)
      armci::raise("there are mutexes already. Call ARMCI_Destroy_mutexes before.");
    armci::of_the_world = std::make_unique<armcix_mutex_hdl_s>(count, far::world());
    return 0;
  });
}
int PARMCI_Destroy_mutexes() {
  return call("ARMCI_Destroy_mutexes", [] {
    armci::the_mutexes();
    armci::forget_mutexes();
    return 0;
  });
}
void PARMCI_Lock(int mutex, int process) {
  call("ARMCI_Lock", [&] { armci::the_mutexes().at(mutex, process).lock(); });
}
void PARMCI_Unlock(int mutex, int process) {
  call("ARMCI_Unlock", [&] {
    armci::here().order().flush();  // what was done inside is there, also what has only begun
    armci::the_mutexes().at(mutex, process).unlock();
  });
}

armcix_mutex_hdl_t ARMCIX_Create_mutexes_hdl(int count, ARMCI_Group* group) {
  return call("ARMCIX_Create_mutexes_hdl",
              [&] { return new armcix_mutex_hdl_s(count, armci::member_of(group).team); });
}
int ARMCIX_Destroy_mutexes_hdl(armcix_mutex_hdl_t set) {
  return call("ARMCIX_Destroy_mutexes_hdl", [&] {
    delete &armci::set_of(set);
    return 0;
  });
}
void ARMCIX_Lock_hdl(armcix_mutex_hdl_t set, int mutex, int process) {
  call("ARMCIX_Lock_hdl", [&] { armci::set_of(set).at(mutex, process).lock(); });
}
int ARMCIX_Trylock_hdl(armcix_mutex_hdl_t set, int mutex, int process) {
  return call("ARMCIX_Trylock_hdl",
              [&] { return armci::set_of(set).at(mutex, process).try_lock() ? 0 : 1; });
}
void ARMCIX_Unlock_hdl(armcix_mutex_hdl_t set, int mutex, int process) {
  call("ARMCIX_Unlock_hdl", [&] {
    armci::here().order().flush();
    armci::set_of(set).at(mutex, process).unlock();
  });
}

}  // extern "C"

FARSIDE_ARMCI_NAME(Create_mutexes)
FARSIDE_ARMCI_NAME(Destroy_mutexes)
FARSIDE_ARMCI_NAME(Lock)
FARSIDE_ARMCI_NAME(Unlock)
