#include "handles.hpp"

#include <mutex>

namespace armci {
namespace {

struct implicit_operation {
  int process;
  far::future<void> done;
};

std::mutex guard;  // threads may have handles of their own
std::unordered_map<int, std::vector<far::future<void>>> named;
std::vector<implicit_operation> unnamed;
int last_number = 0;

armci_hdl_t& checked(armci_hdl_t* pointer) {
  if (pointer == nullptr) raise("the handle is a null pointer.");
  armci_hdl_t& handle = *pointer;
  bool known = handle.target >= 0 && handle.target <= last_number &&
               (handle.aggregate == 0 || handle.aggregate == 1);
  if (!known)
    raise("the handle holds ", handle.target, ", ", handle.aggregate,
          ", which this library has not put there. Call ARMCI_INIT_HANDLE before its first use.");
  return handle;
}

std::vector<far::future<void>> take(int number) {
  std::lock_guard lock(guard);
  auto found = named.find(number);
  if (found == named.end()) return {};
  auto result = std::move(found->second);
  named.erase(found);
  return result;
}

void finish(armci_hdl_t& handle) {
  for (auto& operation : take(std::exchange(handle.target, 0))) operation.get();
}

template <class Chosen>
void finish_unnamed(Chosen chosen) {
  std::vector<far::future<void>> all;
  {
    std::lock_guard lock(guard);
    std::erase_if(unnamed, [&](implicit_operation& operation) {
      if (!chosen(operation.process)) return false;
      all.push_back(std::move(operation.done));
      return true;
    });
  }
  for (auto& operation : all) operation.get();
}

}  // namespace

void begin_with(armci_hdl_t* handle) {
  if (handle == nullptr) return;
  checked(handle);
  if (handle->aggregate == 0 && handle->target != 0) finish(*handle);
}

void keep(far::future<void> operation, int process, armci_hdl_t* handle) {
  if (operation.is_ready()) return;
  std::lock_guard lock(guard);
  if (handle == nullptr) {
    unnamed.push_back({process, std::move(operation)});
    return;
  }
  if (handle->target == 0 || !named.contains(handle->target)) {
    do last_number = last_number == std::numeric_limits<int>::max() ? 1 : last_number + 1;
    while (named.contains(last_number));
    handle->target = last_number;
  }
  named[handle->target].push_back(std::move(operation));
}

void finish_handles() {
  finish_unnamed([](int) { return true; });
  while (!named.empty()) {
    armci_hdl_t any{named.begin()->first, 0};
    finish(any);
  }
}

}  // namespace armci

extern "C" {

void ARMCI_INIT_HANDLE(armci_hdl_t* handle) { *handle = {0, 0}; }
void ARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t* handle) { *handle = {0, 1}; }
void ARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t* handle) { handle->aggregate = 0; }

int PARMCI_Wait(armci_hdl_t* handle) {
  return armci::call("ARMCI_Wait", [&] {
    armci::here();
    armci::finish(armci::checked(handle));
    return 0;
  });
}

int PARMCI_Test(armci_hdl_t* handle) {
  return armci::call("ARMCI_Test", [&] {
    armci::here();
    if (armci::checked(handle).target == 0) return 0;
    far::progress();
    bool complete = true;
    {
      std::lock_guard lock(armci::guard);
      auto found = armci::named.find(handle->target);
      if (found != armci::named.end())
        for (auto& operation : found->second) complete = complete && operation.is_ready();
    }
    if (complete) armci::finish(*handle);
    return complete ? 0 : 1;
  });
}

int PARMCI_WaitProc(int process) {
  return armci::call("ARMCI_WaitProc", [&] {
    armci::here().check_process(process);
    armci::finish_unnamed([&](int of) { return of == process; });
    return 0;
  });
}

int PARMCI_WaitAll() {
  return armci::call("ARMCI_WaitAll", [] {
    armci::here();
    armci::finish_unnamed([](int) { return true; });
    return 0;
  });
}

}  // extern "C"

FARSIDE_ARMCI_NAME(Wait)
FARSIDE_ARMCI_NAME(Test)
FARSIDE_ARMCI_NAME(WaitProc)
FARSIDE_ARMCI_NAME(WaitAll)
