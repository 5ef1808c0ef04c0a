// put, get and accumulate of contiguous memory, flags, single values, read-modify-write, fences.
#include "transfers.hpp"

namespace armci {
namespace {

/// Within this process, where one side is memory that others do not reach.
[[gnu::cold]] int copy(const void* from, void* to, int bytes) {
  if (bytes < 0) raise(bytes, " bytes are to be copied.");
  std::memmove(to, from, static_cast<std::size_t>(bytes));
  return 0;
}

int put(const void* from, void* to, int bytes, int process) {
  library& lib = here();
  if (lib.is_private(to, process)) [[unlikely]]
    return copy(from, to, bytes);
  lib.order().put(lib.place(to, process, bytes), static_cast<const std::byte*>(from),
                  static_cast<std::size_t>(bytes));
  return 0;
}

int get(const void* from, void* to, int bytes, int process) {
  library& lib = here();
  if (lib.is_private(from, process)) [[unlikely]]
    return copy(from, to, bytes);
  lib.order().get(lib.place(from, process, bytes), static_cast<std::byte*>(to),
                  static_cast<std::size_t>(bytes));
  return 0;
}

template <class T>
std::size_t elements(int bytes) {
  if (bytes % static_cast<int>(sizeof(T)) != 0)
    raise(bytes, " bytes hold no whole elements, which have ", sizeof(T), ".");
  return static_cast<std::size_t>(bytes) / sizeof(T);
}

int accumulate(int type, const void* scale, const void* from, void* to, int bytes, int process) {
  return with_type(type, [&]<class T> {
    library& lib = here();
    lib.order().accumulate(lib.place<T>(to, process, bytes), static_cast<const T*>(from),
                           elements<T>(bytes), scale_of<T>(scale));
    return 0;
  });
}

int nb_put(const void* from, void* to, int bytes, int process, armci_hdl_t* handle) {
  library& lib = here();
  begin_with(handle);
  if (lib.coherent() || lib.is_private(to, process)) return put(from, to, bytes, process);
  auto at = lib.place(to, process, bytes);
  auto n = static_cast<std::size_t>(bytes);
  lib.order().settle(at, n);
  keep(far::async_put(at, static_cast<const std::byte*>(from), n), process, handle);
  lib.order().note_put(at, n);
  return 0;
}

int nb_get(const void* from, void* to, int bytes, int process, armci_hdl_t* handle) {
  library& lib = here();
  begin_with(handle);
  if (lib.coherent() || lib.is_private(from, process)) return get(from, to, bytes, process);
  keep(far::async_get(lib.place(from, process, bytes), static_cast<std::byte*>(to),
                      static_cast<std::size_t>(bytes)),
       process, handle);
  return 0;
}

int nb_accumulate(int type, const void* scale, const void* from, void* to, int bytes, int process,
                  armci_hdl_t* handle) {
  library& lib = here();
  begin_with(handle);
  if (lib.coherent()) return accumulate(type, scale, from, to, bytes, process);
  return with_type(type, [&]<class T> {
    auto at = lib.place<T>(to, process, bytes);
    std::size_t n = elements<T>(bytes);
    lib.order().settle(at, n);
    keep(far::async_accumulate(at, static_cast<const T*>(from), n, scale_of<T>(scale)), process,
         handle);
    lib.order().note_put(at, n);
    return 0;
  });
}

void raise_flag(int* flag, int value, int process) {
  library& lib = here();
  lib.order().flush(static_cast<far::rank_t>(process));
  lib.order().swap(lib.place<std::int32_t>(flag, process, sizeof *flag), value);
}

template <class T>
T value_of(const void* from, int process) {
  T result;
  get(from, &result, sizeof result, process);
  return result;
}

template <class T>
void change(void* old, void* at, int process, bool adds, T value) {
  library& lib = here();
  auto place = lib.place<T>(at, process, sizeof(T));
  T before;
  if (adds) {
    before = lib.order().fetch_add(place, value);
  } else {
    std::memcpy(&value, old, sizeof value);
    before = lib.order().swap(place, value);
  }
  std::memcpy(old, &before, sizeof before);
}

int read_modify_write(int operation, void* old, void* at, int value, int process) {
  switch (operation) {
    case ARMCI_FETCH_AND_ADD:
    case ARMCI_SWAP:
      change<std::int32_t>(old, at, process, operation == ARMCI_FETCH_AND_ADD, value);
      return 0;
    case ARMCI_FETCH_AND_ADD_LONG:
    case ARMCI_SWAP_LONG:
      change<std::int64_t>(old, at, process, operation == ARMCI_FETCH_AND_ADD_LONG, value);
      return 0;
    default:
      raise(operation,
            " is no operation of ARMCI_Rmw. Use ARMCI_FETCH_AND_ADD, ARMCI_SWAP, or "
            "either with _LONG.");
  }
}

}  // namespace
}  // namespace armci

using armci::call;

extern "C" {

int PARMCI_Put(void* from, void* to, int bytes, int process) {
  return call("ARMCI_Put", [&] { return armci::put(from, to, bytes, process); });
}
int PARMCI_Get(void* from, void* to, int bytes, int process) {
  return call("ARMCI_Get", [&] { return armci::get(from, to, bytes, process); });
}
int PARMCI_Acc(int type, void* scale, void* from, void* to, int bytes, int process) {
  return call("ARMCI_Acc",
              [&] { return armci::accumulate(type, scale, from, to, bytes, process); });
}
int PARMCI_NbPut(void* from, void* to, int bytes, int process, armci_hdl_t* handle) {
  return call("ARMCI_NbPut", [&] { return armci::nb_put(from, to, bytes, process, handle); });
}
int PARMCI_NbGet(void* from, void* to, int bytes, int process, armci_hdl_t* handle) {
  return call("ARMCI_NbGet", [&] { return armci::nb_get(from, to, bytes, process, handle); });
}
int PARMCI_NbAcc(int type, void* scale, void* from, void* to, int bytes, int process,
                 armci_hdl_t* handle) {
  return call("ARMCI_NbAcc",
              [&] { return armci::nb_accumulate(type, scale, from, to, bytes, process, handle); });
}

int PARMCI_Put_flag(void* from, void* to, int bytes, int* flag, int value, int process) {
  return call("ARMCI_Put_flag", [&] {
    armci::put(from, to, bytes, process);
    armci::raise_flag(flag, value, process);
    return 0;
  });
}
int PARMCI_PutS_flag(void* from, int from_strides[], void* to, int to_strides[], int count[],
                     int levels, int* flag, int value, int process) {
  PARMCI_PutS(from, from_strides, to, to_strides, count, levels, process);
  return call("ARMCI_PutS_flag", [&] { return armci::raise_flag(flag, value, process), 0; });
}

int PARMCI_PutValueInt(int value, void* to, int process) {
  return PARMCI_Put(&value, to, sizeof value, process);
}
int PARMCI_PutValueLong(long value, void* to, int process) {
  return PARMCI_Put(&value, to, sizeof value, process);
}
int PARMCI_PutValueFloat(float value, void* to, int process) {
  return PARMCI_Put(&value, to, sizeof value, process);
}
int PARMCI_PutValueDouble(double value, void* to, int process) {
  return PARMCI_Put(&value, to, sizeof value, process);
}
// The value is on the stack of this call, so they are complete here on return.
int PARMCI_NbPutValueInt(int value, void* to, int process, armci_hdl_t* handle) {
  call("ARMCI_NbPutValueInt", [&] { armci::begin_with(handle); });
  return PARMCI_Put(&value, to, sizeof value, process);
}
int PARMCI_NbPutValueLong(long value, void* to, int process, armci_hdl_t* handle) {
  call("ARMCI_NbPutValueLong", [&] { armci::begin_with(handle); });
  return PARMCI_Put(&value, to, sizeof value, process);
}
int PARMCI_NbPutValueFloat(float value, void* to, int process, armci_hdl_t* handle) {
  call("ARMCI_NbPutValueFloat", [&] { armci::begin_with(handle); });
  return PARMCI_Put(&value, to, sizeof value, process);
}
int PARMCI_NbPutValueDouble(double value, void* to, int process, armci_hdl_t* handle) {
  call("ARMCI_NbPutValueDouble", [&] { armci::begin_with(handle); });
  return PARMCI_Put(&value, to, sizeof value, process);
}
int PARMCI_GetValueInt(void* from, int process) {
  return call("ARMCI_GetValueInt", [&] { return armci::value_of<int>(from, process); });
}
long PARMCI_GetValueLong(void* from, int process) {
  return call("ARMCI_GetValueLong", [&] { return armci::value_of<long>(from, process); });
}
float PARMCI_GetValueFloat(void* from, int process) {
  return call("ARMCI_GetValueFloat", [&] { return armci::value_of<float>(from, process); });
}
double PARMCI_GetValueDouble(void* from, int process) {
  return call("ARMCI_GetValueDouble", [&] { return armci::value_of<double>(from, process); });
}

int PARMCI_Rmw(int operation, void* old, void* at, int value, int process) {
  return call("ARMCI_Rmw",
              [&] { return armci::read_modify_write(operation, old, at, value, process); });
}

void ARMCI_Copy(void* from, void* to, int bytes) {
  std::memmove(to, from, static_cast<std::size_t>(bytes));
}

void PARMCI_Fence(int process) {
  call("ARMCI_Fence", [&] {
    armci::library& lib = armci::here();
    lib.check_process(process);
    lib.order().flush(static_cast<far::rank_t>(process));
  });
}
void PARMCI_AllFence() {
  call("ARMCI_AllFence", [] { armci::here().order().flush(); });
}
void PARMCI_Barrier() {
  call("ARMCI_Barrier", [] {
    armci::here().order().flush();
    far::barrier();
  });
}

}  // extern "C"

FARSIDE_ARMCI_NAME(Put)
FARSIDE_ARMCI_NAME(Get)
FARSIDE_ARMCI_NAME(Acc)
FARSIDE_ARMCI_NAME(NbPut)
FARSIDE_ARMCI_NAME(NbGet)
FARSIDE_ARMCI_NAME(NbAcc)
FARSIDE_ARMCI_NAME(Put_flag)
FARSIDE_ARMCI_NAME(PutS_flag)
FARSIDE_ARMCI_NAME(PutValueInt)
FARSIDE_ARMCI_NAME(PutValueLong)
FARSIDE_ARMCI_NAME(PutValueFloat)
FARSIDE_ARMCI_NAME(PutValueDouble)
FARSIDE_ARMCI_NAME(NbPutValueInt)
FARSIDE_ARMCI_NAME(NbPutValueLong)
FARSIDE_ARMCI_NAME(NbPutValueFloat)
FARSIDE_ARMCI_NAME(NbPutValueDouble)
FARSIDE_ARMCI_NAME(GetValueInt)
FARSIDE_ARMCI_NAME(GetValueLong)
FARSIDE_ARMCI_NAME(GetValueFloat)
FARSIDE_ARMCI_NAME(GetValueDouble)
FARSIDE_ARMCI_NAME(Rmw)
FARSIDE_ARMCI_NAME(Fence)
FARSIDE_ARMCI_NAME(AllFence)
FARSIDE_ARMCI_NAME(Barrier)
