// Messages and collectives of ARMCI, by MPI, on the communicators of groups.
#include "library.hpp"

#include <message.h>

#include <cmath>
#include <cstring>
#include <string_view>

namespace armci {
namespace {

MPI_Datatype type_of(int type) {
  switch (type) {
    case ARMCI_INT:
      return MPI_INT;
    case ARMCI_LONG:
      return MPI_LONG;
    case ARMCI_LONG_LONG:
      return MPI_LONG_LONG;
    case ARMCI_FLOAT:
      return MPI_FLOAT;
    case ARMCI_DOUBLE:
      return MPI_DOUBLE;
    default:
      raise(type,
            " is no type of a collective. Use ARMCI_INT, _LONG, _LONG_LONG, _FLOAT or _DOUBLE.");
  }
}

template <class T>
T magnitude(T x) {
  return x < 0 ? -x : x;
}

/// Of absolute values, which MPI has no operations for.
template <class T, bool Greatest>
void combine(const void* in, void* into, int n) {
  auto* a = static_cast<const T*>(in);
  auto* b = static_cast<T*>(into);
  for (int i = 0; i < n; ++i) {
    T x = magnitude(a[i]), y = magnitude(b[i]);
    b[i] = (Greatest ? x > y : x < y) ? x : y;
  }
}

template <bool Greatest>
void combine_magnitudes(void* in, void* into, int* n, MPI_Datatype* type) {
  if (*type == MPI_INT) return combine<int, Greatest>(in, into, *n);
  if (*type == MPI_LONG) return combine<long, Greatest>(in, into, *n);
  if (*type == MPI_LONG_LONG) return combine<long long, Greatest>(in, into, *n);
  if (*type == MPI_FLOAT) return combine<float, Greatest>(in, into, *n);
  combine<double, Greatest>(in, into, *n);
}

template <bool Greatest>
MPI_Op magnitudes() {
  static const MPI_Op operation = [] {
    MPI_Op made;
    MPI_Op_create(combine_magnitudes<Greatest>, 1, &made);
    return made;
  }();
  return operation;
}

MPI_Op operation_of(std::string_view name, int type) {
  struct operation {
    std::string_view begins;
    MPI_Op mpi;
    bool of_integers;
  };
  // Those of ARMCI, and those that ComEx has besides. A longer name comes before what it begins with.
  const operation all[] = {{"absmax", magnitudes<true>(), false},
                           {"absmin", magnitudes<false>(), false},
                           {"+", MPI_SUM, false},
                           {"*", MPI_PROD, false},
                           {"max", MPI_MAX, false},
                           {"min", MPI_MIN, false},
                           {"or", MPI_BOR, true},
                           {"land", MPI_LAND, true},
                           {"&&", MPI_LAND, true},
                           {"lor", MPI_LOR, true},
                           {"||", MPI_LOR, true},
                           {"band", MPI_BAND, true},
                           {"&", MPI_BAND, true},
                           {"bor", MPI_BOR, true},
                           {"|", MPI_BOR, true}};
  for (const operation& each : all) {
    if (!name.starts_with(each.begins)) continue;
    if (each.of_integers && (type == ARMCI_FLOAT || type == ARMCI_DOUBLE))
      raise("the operation '", each.begins, "' is of integers, not of floating point.");
    return each.mpi;
  }
  raise("'", name,
        "' is no operation of a collective. Use +, *, min, max, absmin, absmax, or, &&, ||, & or "
        "|.");
}

/// A communicator, none if it is this process alone.
struct scope_of {
  MPI_Comm comm;
  explicit scope_of(int scope, group_record& group)
      : comm(scope == SCOPE_NODE ? MPI_COMM_NULL : group.comm) {
    if (scope != SCOPE_ALL && scope != SCOPE_NODE && scope != SCOPE_MASTERS)
      raise(scope, " is no scope. Use SCOPE_ALL, SCOPE_NODE or SCOPE_MASTERS.");
  }
};

constexpr std::ptrdiff_t at_once = std::ptrdiff_t{1} << 30;  ///< bytes; counts of MPI are ints

/// Of one process, MPI's reduction is no operation at all.
template <class T>
void take_magnitudes(void* x, int n) {
  for (T* at = static_cast<T*>(x); n > 0; --n, ++at) *at = magnitude(*at);
}
void take_magnitudes(void* x, int n, int type) {
  switch (type) {
    case ARMCI_INT:
      return take_magnitudes<int>(x, n);
    case ARMCI_FLOAT:
      return take_magnitudes<float>(x, n);
    case ARMCI_DOUBLE:
      return take_magnitudes<double>(x, n);
    default:
      return take_magnitudes<long>(x, n);
  }
}

void reduce(int scope, void* x, int n, const char* name, int type, group_record& group) {
  MPI_Datatype of = type_of(type);
  MPI_Op operation = operation_of(name, type);
  scope_of where(scope, group);
  if (std::string_view(name).starts_with("abs")) take_magnitudes(x, n, type);
  if (where.comm == MPI_COMM_NULL || n <= 0) return;
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, x, n, of, operation, where.comm, &request);
  wait(request);
}

/// `process` is the root's rank among all processes, also in a group.
void broadcast(int scope, void* data, std::ptrdiff_t bytes, int process, group_record& group) {
  scope_of where(scope, group);
  if (where.comm == MPI_COMM_NULL) return;
  auto place = std::ranges::find(group.members, process);
  if (place == group.members.end())
    raise("process ", process, " is to be the root, and is not in the group, which has ",
          group.members.size(), " processes.");
  int root = static_cast<int>(place - group.members.begin());
  for (std::ptrdiff_t begin = 0; begin < bytes; begin += at_once) {
    MPI_Request request;
    MPI_Ibcast(static_cast<char*>(data) + begin, static_cast<int>(std::min(at_once, bytes - begin)),
               MPI_BYTE, root, where.comm, &request);
    wait(request);
  }
}

/// Whether the value at `a` comes before the one at `b`.
template <class T>
bool precedes(const char* a, const char* b, bool least) {
  T x, y;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  return least ? x < y : x > y;
}
bool precedes(int type, const char* a, const char* b, bool least) {
  switch (type) {
    case ARMCI_INT:
      return precedes<int>(a, b, least);
    case ARMCI_FLOAT:
      return precedes<float>(a, b, least);
    case ARMCI_DOUBLE:
      return precedes<double>(a, b, least);
    default:
      return precedes<long>(a, b, least);
  }
}

/// Of equal values, that of the first process is taken.
void select(int scope, void* x, int n, std::string_view name, int type, int contribute) {
  type_of(type);
  if (!name.starts_with("min") && !name.starts_with("max"))
    raise("'", name, "' is no operation of armci_msg_sel. Use min or max.");
  library& lib = here();
  scope_of where(scope, lib.world());
  if (where.comm == MPI_COMM_NULL) return;
  std::size_t each = static_cast<std::size_t>(n) + 1;
  std::vector<char> mine(each), all(each * static_cast<std::size_t>(lib.size()));
  mine[0] = contribute != 0;
  std::memcpy(mine.data() + 1, x, static_cast<std::size_t>(n));
  MPI_Request request;
  MPI_Iallgather(mine.data(), static_cast<int>(each), MPI_BYTE, all.data(), static_cast<int>(each),
                 MPI_BYTE, where.comm, &request);
  wait(request);
  const char* best = nullptr;
  for (std::size_t i = 0; i < all.size(); i += each)
    if (all[i] != 0 &&
        (best == nullptr || precedes(type, &all[i + 1], best, name.starts_with("min"))))
      best = &all[i + 1];
  if (best != nullptr) std::memcpy(x, best, static_cast<std::size_t>(n));
}

void send(int tag, const void* from, int bytes, int process) {
  library& lib = here();
  lib.check_process(process);
  MPI_Request request;
  MPI_Isend(from, bytes, MPI_BYTE, process, tag, lib.comm(), &request);
  wait(request);
}

int receive(int tag, void* to, int room, int* received, int process) {
  library& lib = here();
  if (process != MPI_ANY_SOURCE) lib.check_process(process);
  MPI_Status status;
  for (int come = 0; !come;) {
    MPI_Iprobe(process, tag, lib.comm(), &come, &status);
    if (!come) pause();
  }
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  if (bytes > room)
    raise("a message of ", bytes, " bytes has come from process ", status.MPI_SOURCE,
          ", and there is room for ", room, ".");
  MPI_Recv(to, room, MPI_BYTE, status.MPI_SOURCE, tag, lib.comm(), MPI_STATUS_IGNORE);
  if (received != nullptr) *received = bytes;
  return status.MPI_SOURCE;
}

}  // namespace
}  // namespace armci

using armci::call;

namespace {

void gop(const char* name, int scope, void* x, int n, const char* operation, int type,
         ARMCI_Group* group) {
  call(name, [&] {
    auto& of = group == nullptr ? armci::here().world() : armci::member_of(group);
    armci::reduce(scope, x, n, operation, type, of);
  });
}

}  // namespace

extern "C" {

int armci_msg_me() {
  return call("armci_msg_me", [] { return armci::here().rank(); });
}
int armci_msg_nproc() {
  return call("armci_msg_nproc", [] { return armci::here().size(); });
}
double armci_timer() { return MPI_Wtime(); }
void armci_msg_abort(int code) {
  armci::end_job("armci_msg_abort", "the program ends the job", code);
}

void armci_msg_snd(int tag, void* from, int bytes, int process) {
  call("armci_msg_snd", [&] { armci::send(tag, from, bytes, process); });
}
void armci_msg_rcv(int tag, void* to, int room, int* received, int process) {
  call("armci_msg_rcv", [&] { armci::receive(tag, to, room, received, process); });
}
int armci_msg_rcvany(int tag, void* to, int room, int* received) {
  return call("armci_msg_rcvany",
              [&] { return armci::receive(tag, to, room, received, MPI_ANY_SOURCE); });
}

void parmci_msg_barrier() {
  call("armci_msg_barrier", [] { far::barrier(armci::here().world().team); });
}
void parmci_msg_group_barrier(ARMCI_Group* group) {
  call("armci_msg_group_barrier", [&] { far::barrier(armci::member_of(group).team); });
}

void armci_msg_bintree(int scope, int* root, int* up, int* left, int* right) {
  call("armci_msg_bintree", [&] {
    int me = armci::here().rank(), n = armci::here().size();
    bool alone = armci::scope_of(scope, armci::here().world()).comm == MPI_COMM_NULL;
    auto within = [&](int process) { return !alone && process < n ? process : -1; };
    *root = alone ? me : 0;
    *up = alone || me == 0 ? -1 : (me - 1) / 2;
    *left = within(2 * me + 1);
    *right = within(2 * me + 2);
  });
}

void armci_msg_bcast_scope(int scope, void* data, int bytes, int root) {
  call("armci_msg_bcast",
       [&] { armci::broadcast(scope, data, bytes, root, armci::here().world()); });
}
void armci_msg_bcast(void* data, int bytes, int root) {
  armci_msg_bcast_scope(SCOPE_ALL, data, bytes, root);
}
void armci_msg_brdcst(void* data, int bytes, int root) {
  armci_msg_bcast_scope(SCOPE_ALL, data, bytes, root);
}
void armci_msg_group_bcast_scope(int scope, void* data, int bytes, int root, ARMCI_Group* group) {
  call("armci_msg_group_bcast_scope",
       [&] { armci::broadcast(scope, data, bytes, root, armci::member_of(group)); });
}
void armci_msg_clus_brdcst(void*, int) {}
void armci_grp_clus_brdcst(void*, int, int, int, ARMCI_Group*) {}

void armci_msg_gop_scope(int scope, void* x, int n, char* operation, int type) {
  gop("armci_msg_gop_scope", scope, x, n, operation, type, nullptr);
}
void armci_msg_igop(int* x, int n, char* operation) {
  gop("armci_msg_igop", SCOPE_ALL, x, n, operation, ARMCI_INT, nullptr);
}
void armci_msg_lgop(long* x, int n, char* operation) {
  gop("armci_msg_lgop", SCOPE_ALL, x, n, operation, ARMCI_LONG, nullptr);
}
void armci_msg_llgop(long long* x, int n, char* operation) {
  gop("armci_msg_llgop", SCOPE_ALL, x, n, operation, ARMCI_LONG_LONG, nullptr);
}
void armci_msg_fgop(float* x, int n, char* operation) {
  gop("armci_msg_fgop", SCOPE_ALL, x, n, operation, ARMCI_FLOAT, nullptr);
}
void armci_msg_dgop(double* x, int n, char* operation) {
  gop("armci_msg_dgop", SCOPE_ALL, x, n, operation, ARMCI_DOUBLE, nullptr);
}
void armci_msg_reduce_scope(int scope, void* x, int n, char* operation, int type) {
  gop("armci_msg_reduce_scope", scope, x, n, operation, type, nullptr);
}
void armci_msg_reduce(void* x, int n, char* operation, int type) {
  gop("armci_msg_reduce", SCOPE_ALL, x, n, operation, type, nullptr);
}
void armci_msg_group_gop_scope(int scope, void* x, int n, char* operation, int type,
                               ARMCI_Group* group) {
  gop("armci_msg_group_gop_scope", scope, x, n, operation, type, group);
}
void armci_msg_group_igop(int* x, int n, char* operation, ARMCI_Group* group) {
  gop("armci_msg_group_igop", SCOPE_ALL, x, n, operation, ARMCI_INT, group);
}
void armci_msg_group_lgop(long* x, int n, char* operation, ARMCI_Group* group) {
  gop("armci_msg_group_lgop", SCOPE_ALL, x, n, operation, ARMCI_LONG, group);
}
void armci_msg_group_llgop(long long* x, int n, char* operation, ARMCI_Group* group) {
  gop("armci_msg_group_llgop", SCOPE_ALL, x, n, operation, ARMCI_LONG_LONG, group);
}
void armci_msg_group_fgop(float* x, int n, char* operation, ARMCI_Group* group) {
  gop("armci_msg_group_fgop", SCOPE_ALL, x, n, operation, ARMCI_FLOAT, group);
}
void armci_msg_group_dgop(double* x, int n, char* operation, ARMCI_Group* group) {
  gop("armci_msg_group_dgop", SCOPE_ALL, x, n, operation, ARMCI_DOUBLE, group);
}
// Of the processes of a node, which are one.
void armci_msg_clus_igop(int*, int, char*) {}
void armci_msg_clus_lgop(long*, int, char*) {}
void armci_msg_clus_llgop(long long*, int, char*) {}
void armci_msg_clus_fgop(float*, int, char*) {}
void armci_msg_clus_dgop(double*, int, char*) {}

void armci_msg_sel_scope(int scope, void* x, int n, char* operation, int type, int contribute) {
  call("armci_msg_sel_scope", [&] { armci::select(scope, x, n, operation, type, contribute); });
}
void armci_msg_sel(void* x, int n, char* operation, int type, int contribute) {
  armci_msg_sel_scope(SCOPE_ALL, x, n, operation, type, contribute);
}

void armci_exchange_address(void* addresses[], int n) {
  armci_msg_lgop(reinterpret_cast<long*>(addresses), n, const_cast<char*>("+"));
}
void armci_exchange_address_grp(void* addresses[], int n, ARMCI_Group* group) {
  armci_msg_group_lgop(reinterpret_cast<long*>(addresses), n, const_cast<char*>("+"), group);
}

decltype(parmci_msg_barrier) armci_msg_barrier __attribute__((weak, alias("parmci_msg_barrier")));
decltype(parmci_msg_group_barrier) armci_msg_group_barrier
    __attribute__((weak, alias("parmci_msg_group_barrier")));

}  // extern "C"
