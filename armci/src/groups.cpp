// Groups: a team of the library and a communicator each, made by the members alone.
#include "library.hpp"

#include <armcix.h>

#include <algorithm>
#include <cstring>

namespace armci {
namespace {

void fill(ARMCI_Group* group, group_record* record) {
  std::memset(group, 0, sizeof *group);
  group->comm = record == nullptr ? MPI_COMM_NULL : record->comm;
  group->unused_comm = MPI_COMM_NULL;
  group->record = record;
  group->rank = record == nullptr ? -1 : record->rank;
  group->size = record == nullptr ? 0 : static_cast<int>(record->members.size());
}

/// Of world ranks, in that order. This process is one of them.
group_record* make_group(const std::vector<int>& members) {
  library& lib = here();
  auto record = std::make_unique<group_record>();
  record->members = members;
  record->rank = static_cast<int>(std::ranges::find(members, lib.rank()) - members.begin());
  record->team = far::make_team(std::vector<far::rank_t>(members.begin(), members.end()));
  MPI_Group all, some;
  MPI_Comm_group(lib.comm(), &all);
  MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some);
  constexpr int tag = 1;
  MPI_Comm_create_group(lib.comm(), some, tag, &record->comm);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
  lib.groups.insert(record.get());
  return record.release();
}

int create(int size, const int* members, ARMCI_Group* group, group_record& parent) {
  library& lib = here();
  std::vector<int> ranks;
  for (int i = 0; i < size; ++i) {
    if (members[i] < 0 || members[i] >= static_cast<int>(parent.members.size()))
      raise("member ", i, " of the new group is ", members[i], ", and the parent has ",
            parent.members.size(), " processes.");
    int rank = parent.members[static_cast<std::size_t>(members[i])];
    if (std::ranges::count(ranks, rank) != 0) raise("member ", members[i], " is named twice.");
    ranks.push_back(rank);
  }
  fill(group, std::ranges::count(ranks, lib.rank()) == 0 ? nullptr : make_group(ranks));
  return 0;
}

void free_group(ARMCI_Group* group) {
  if (group->record == nullptr && group->rank == -1) return;  // without this process
  group_record& record = member_of(group);
  library& lib = here();
  if (&record == &lib.world()) raise("the group of all processes cannot be freed.");
  if (lib.default_group == &record) lib.default_group = &lib.world();
  lib.groups.erase(&record);
  MPI_Comm_free(&record.comm);
  delete &record;
  fill(group, nullptr);
}

int split(ARMCI_Group* parent, int colour, int key, ARMCI_Group* group) {
  group_record& from = member_of(parent);
  struct wish {
    int colour, key, rank, place;
  };
  auto wishes = far::all_gather(wish{colour, key, here().rank(), from.rank}, from.team);
  std::erase_if(wishes, [&](const wish& w) { return w.colour != colour; });
  std::ranges::sort(wishes, {}, [](const wish& w) { return std::pair(w.key, w.place); });
  std::vector<int> members;
  for (const wish& w : wishes) members.push_back(w.rank);
  fill(group, colour < 0 ? nullptr : make_group(members));
  return 0;
}

}  // namespace

group_record& member_of(ARMCI_Group* group) {
  library& lib = here();
  if (group == nullptr) raise("the group is a null pointer.");
  if (group->record == nullptr && group->rank == -1)
    raise("process ", lib.rank(), " is no member of this group. Only its members make this call.");
  auto* record = static_cast<group_record*>(group->record);
  if (!lib.groups.contains(record))
    raise("this is no group: it was never made by ARMCI_Group_create, or it has been freed.");
  return *record;
}

}  // namespace armci

using armci::call;

extern "C" {

void ARMCI_Group_create(int size, int* members, ARMCI_Group* group) {
  call("ARMCI_Group_create",
       [&] { armci::create(size, members, group, *armci::here().default_group); });
}
void ARMCI_Group_create_child(int size, int* members, ARMCI_Group* group, ARMCI_Group* parent) {
  call("ARMCI_Group_create_child",
       [&] { armci::create(size, members, group, armci::member_of(parent)); });
}
void ARMCI_Group_free(ARMCI_Group* group) {
  call("ARMCI_Group_free", [&] { armci::free_group(group); });
}
int ARMCI_Group_rank(ARMCI_Group* group, int* rank) {
  *rank = group->rank;
  return group->rank < 0 ? 1 : 0;
}
void ARMCI_Group_size(ARMCI_Group* group, int* size) { *size = group->size; }

void ARMCI_Group_set_default(ARMCI_Group* group) {
  call("ARMCI_Group_set_default", [&] { armci::here().default_group = &armci::member_of(group); });
}
void ARMCI_Group_get_default(ARMCI_Group* group) {
  call("ARMCI_Group_get_default", [&] { armci::fill(group, armci::here().default_group); });
}
void ARMCI_Group_get_world(ARMCI_Group* group) {
  call("ARMCI_Group_get_world", [&] { armci::fill(group, &armci::here().world()); });
}
int ARMCI_Absolute_id(ARMCI_Group* group, int rank) {
  return call("ARMCI_Absolute_id", [&] {
    auto& members = armci::member_of(group).members;
    if (rank < 0 || rank >= static_cast<int>(members.size()))
      armci::raise("rank ", rank, " is not in a group of ", members.size(), ".");
    return members[static_cast<std::size_t>(rank)];
  });
}

int ARMCIX_Group_split(ARMCI_Group* parent, int colour, int key, ARMCI_Group* group) {
  return call("ARMCIX_Group_split", [&] { return armci::split(parent, colour, key, group); });
}
int ARMCIX_Group_dup(ARMCI_Group* parent, ARMCI_Group* group) {
  return call("ARMCIX_Group_dup", [&] {
    armci::fill(group, armci::make_group(armci::member_of(parent).members));
    return 0;
  });
}
void ARMCIX_Progress() {
  call("ARMCIX_Progress", [] { armci::here(), far::progress(); });
}

// Each process is a node of its own.
int armci_domain_nprocs(armci_domain_t, int) { return 1; }
int armci_domain_id(armci_domain_t, int process) { return process; }
int armci_domain_glob_proc_id(armci_domain_t domain, int id, int) {
  return id < 0 ? armci_domain_my_id(domain) : id;
}
int armci_domain_my_id(armci_domain_t) {
  return call("armci_domain_my_id", [] { return armci::here().rank(); });
}
int armci_domain_count(armci_domain_t) {
  return call("armci_domain_count", [] { return armci::here().size(); });
}
int armci_domain_same_id(armci_domain_t domain, int process) {
  return process == armci_domain_my_id(domain) ? 1 : 0;
}
int ARMCI_Same_node(int process) { return armci_domain_same_id(ARMCI_DOMAIN_SMP, process); }
int ARMCI_Uses_shm() { return 0; }
int ARMCI_Uses_shm_grp(ARMCI_Group*) { return 0; }
void ARMCI_Set_shm_limit(unsigned long) {}

}  // extern "C"
