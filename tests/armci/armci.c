/* Each call of ARMCI, on the memory of the next process, against what was written there. With an
 * argument it makes a mistake of that name instead (mistakes_test.sh). */
#include "check.h"

#include <armci.h>
#include <armcix.h>
#include <string.h>

static int me, n, next, before;

enum { rows = 40, columns = 30 };

static void contiguous(double **memory) {
  double out[64], in[64], two = 2, one = 1;
  for (int i = 0; i < 64; ++i) out[i] = 100 * me + i;
  ARMCI_Put(out, memory[next], sizeof out, next);
  ARMCI_Get(memory[next], in, sizeof in, next);
  CHECK(memcmp(in, out, sizeof in) == 0);
  ARMCI_Acc(ARMCI_ACC_DBL, &two, out, memory[next], sizeof out, next);
  ARMCI_Acc(ARMCI_ACC_DBL, &one, out, memory[next], sizeof out, next);
  ARMCI_Get(memory[next], in, sizeof in, next);
  for (int i = 0; i < 64; ++i) CHECK(in[i] == 4 * out[i]);
  ARMCI_PutValueDouble(0.5, memory[next] + 3, next);
  ARMCI_PutValueInt(7, memory[next] + 4, next);
  ARMCI_PutValueLong(1L << 40, memory[next] + 5, next);
  ARMCI_PutValueFloat(1.5f, memory[next] + 6, next);
  CHECK(ARMCI_GetValueDouble(memory[next] + 3, next) == 0.5);
  CHECK(ARMCI_GetValueInt(memory[next] + 4, next) == 7);
  CHECK(ARMCI_GetValueLong(memory[next] + 5, next) == 1L << 40);
  CHECK(ARMCI_GetValueFloat(memory[next] + 6, next) == 1.5f);
  ARMCI_Barrier();
}

/* A block of 5 x 6 elements of two planes, from dense memory. */
static void strided(double **memory) {
  double out[2][5][6], in[2][5][6], scale[2] = {2, 0};
  for (int i = 0; i < 60; ++i) (&out[0][0][0])[i] = me + i;
  int here[2] = {6 * 8, 30 * 8}, there[2] = {columns * 8, 20 * columns * 8};
  int count[3] = {6 * 8, 5, 2};
  double *at = memory[next] + 4 * columns + 7;
  ARMCI_PutS(out, here, at, there, count, 2, next);
  ARMCI_AccS(ARMCI_ACC_DBL, scale, out, here, at, there, count, 2, next);
  ARMCI_GetS(at, there, in, here, count, 2, next);
  for (int i = 0; i < 60; ++i) CHECK((&in[0][0][0])[i] == 3 * (me + i));
  /* What lies beside is as it was. */
  CHECK(ARMCI_GetValueDouble(at - 1, next) == -1 && ARMCI_GetValueDouble(at + 6, next) == -1);
  ARMCI_AccS(ARMCI_ACC_DCP, scale, out, here, at, there, count, 2, next);
  ARMCI_GetS(at, there, in, here, count, 2, next);
  for (int i = 0; i < 60; ++i) CHECK((&in[0][0][0])[i] == 5 * (me + i));
  ARMCI_Barrier();

  char packed[sizeof out], again[sizeof out];
  armci_write_strided(memory[me] + 4 * columns + 7, 2, there, count, packed);
  for (int i = 0; i < 60; ++i) {
    double value;
    memcpy(&value, packed + 8 * i, 8);
    CHECK(value == 5 * (before + i));
  }
  ARMCI_Barrier();
  memset(again, 0, sizeof again);
  armci_read_strided(again, 2, here, count, packed);
  CHECK(memcmp(again, packed, sizeof packed) == 0);
}

static void lists(double **memory) {
  enum { pieces = 50 };
  float out[pieces][3], in[pieces][3], half = 0.5f;
  void *from[pieces], *to[pieces], *back[pieces];
  float *at = (float *)memory[next];
  for (int i = 0; i < pieces; ++i) {
    for (int j = 0; j < 3; ++j) out[i][j] = 2 * (i + j + me);
    from[i] = out[i], to[i] = at + 4 * ((7 * i) % pieces), back[i] = in[i];
  }
  armci_giov_t there = {from, to, 12, pieces}, home = {to, back, 12, pieces};
  ARMCI_PutV(&there, 1, next);
  ARMCI_AccV(ARMCI_ACC_FLT, &half, &there, 1, next);
  ARMCI_GetV(&home, 1, next);
  for (int i = 0; i < pieces; ++i)
    for (int j = 0; j < 3; ++j) CHECK(in[i][j] == 1.5f * out[i][j]);
  ARMCI_Barrier();
}

static void handles(double **memory) {
  static double out[2000], in[2000];
  double three = 3;
  for (int i = 0; i < 2000; ++i) out[i] = i - me;
  armci_hdl_t one, many;
  ARMCI_INIT_HANDLE(&one);
  ARMCI_NbPut(out, memory[next], 800 * 8, next, &one);
  ARMCI_Wait(&one);
  CHECK(ARMCI_Test(&one) == 0);
  ARMCI_NbAcc(ARMCI_ACC_DBL, &three, out, memory[next], 800 * 8, next, &one);
  ARMCI_Wait(&one);
  ARMCI_INIT_HANDLE(&many);
  ARMCI_SET_AGGREGATE_HANDLE(&many);
  for (int i = 0; i < 80; ++i) ARMCI_NbGet(memory[next] + 10 * i, in + 10 * i, 80, next, &many);
  ARMCI_UNSET_AGGREGATE_HANDLE(&many);
  while (ARMCI_Test(&many) != 0) {}
  for (int i = 0; i < 800; ++i) CHECK(in[i] == 4 * out[i]);

  int stride[1] = {columns * 8}, count[2] = {80, 20};
  ARMCI_NbPutS(out, stride, memory[next], stride, count, 1, next, NULL);
  ARMCI_WaitProc(next);
  ARMCI_NbAccS(ARMCI_ACC_DBL, &three, out, stride, memory[next], stride, count, 1, next, NULL);
  ARMCI_WaitAll();
  ARMCI_NbGetS(memory[next], stride, in, stride, count, 1, next, NULL);
  ARMCI_WaitAll();
  for (int i = 0; i < 20; ++i)
    for (int j = 0; j < 10; ++j) CHECK(in[columns * i + j] == 4 * out[columns * i + j]);
  ARMCI_Barrier();
}

static void words(double **memory) {
  long *numbers = (long *)memory[0], old;
  int small, zero = 0;
  if (me == 0) memset(memory[0], 0, 64);
  ARMCI_Barrier();
  for (int i = 0; i < 20; ++i) ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, numbers, 3, 0);
  for (int i = 0; i < 20; ++i) ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &small, numbers + 1, 2, 0);
  ARMCI_Barrier();
  CHECK(ARMCI_GetValueLong(numbers, 0) == 60 * n);
  CHECK(ARMCI_GetValueInt(numbers + 1, 0) == 40 * n);
  ARMCI_Barrier();
  old = me + 1;
  ARMCI_Rmw(ARMCI_SWAP_LONG, &old, numbers, 0, 0);
  armci_msg_lgop(&old, 1, "+");
  long left = ARMCI_GetValueLong(numbers, 0);
  CHECK(old + left == 60 * n + (long)n * (n + 1) / 2);

  /* Whoever sees the flag sees the data. */
  int *flag = (int *)(memory[me] + 900);
  double data[4] = {1, 2, 3, 4 + me};
  ARMCI_PutValueInt(0, flag, me);
  ARMCI_Barrier();
  ARMCI_Put_flag(data, memory[next] + 800, sizeof data, (int *)(memory[next] + 900), 17, next);
  while (ARMCI_GetValueInt(flag, me) != 17) {}
  CHECK(ARMCI_GetValueDouble(memory[me] + 803, me) == 4 + before);
  ARMCI_Barrier();

  ARMCI_Create_mutexes(me == 0 ? 2 : 0);
  for (int i = 0; i < 10; ++i) {
    ARMCI_Lock(1, 0);
    long seen = ARMCI_GetValueLong(numbers + 2, 0);
    ARMCI_PutValueLong(seen + 1, numbers + 2, 0);
    ARMCI_Unlock(1, 0);
  }
  ARMCI_Barrier();
  CHECK(ARMCI_GetValueLong(numbers + 2, 0) == 10 * n);
  ARMCI_Destroy_mutexes();
  (void)zero;
}

static void messages(void) {
  double x[3] = {me + 1, -me - 1, 2};
  armci_msg_dgop(x, 2, "absmax");
  CHECK(x[0] == n && x[1] == n);
  int y[2] = {1 << me, me};
  armci_msg_igop(y, 1, "or");
  CHECK(y[0] == (1 << n) - 1);
  long logic[4] = {1, me == 0, 3 << me, 1L << me};
  armci_msg_lgop(logic, 1, "&&");
  armci_msg_lgop(logic + 1, 1, "||");
  armci_msg_lgop(logic + 2, 1, "&");
  armci_msg_lgop(logic + 3, 1, "|");
  CHECK(logic[0] == 1 && logic[1] == 1 && logic[3] == (1L << n) - 1);
  CHECK(logic[2] == (n == 1 ? 3 : n == 2 ? 2 : 0));
  armci_msg_gop_scope(SCOPE_NODE, y + 1, 1, "+", ARMCI_INT);
  CHECK(y[1] == me);
  struct {
    double key;
    int whose;
  } best = {(me * 7) % 5, me};
  armci_msg_sel(&best, sizeof best, "max", ARMCI_DOUBLE, 1);
  for (int i = 0; i < n; ++i) CHECK(best.key >= (i * 7) % 5);
  CHECK((best.whose * 7) % 5 == best.key);
  char text[20] = "", got[20];
  if (me == n - 1) strcpy(text, "from the last");
  armci_msg_brdcst(text, sizeof text, n - 1);
  CHECK(strcmp(text, "from the last") == 0);
  int length = 0, root, up, left, right;
  if (me == 0) armci_msg_snd(5, text, sizeof text, n - 1);
  if (me == n - 1) {
    armci_msg_rcv(5, got, sizeof got, &length, 0);
    CHECK(length == sizeof text && strcmp(got, text) == 0);
  }
  armci_msg_bintree(SCOPE_ALL, &root, &up, &left, &right);
  CHECK(root == 0 && (me == 0 ? up == -1 : up == (me - 1) / 2));
  CHECK(armci_domain_count(ARMCI_DOMAIN_SMP) == n && ARMCI_Same_node(me) && !ARMCI_Uses_shm());
  armci_msg_barrier();
}

static void groups(void) {
  int members[64], count = 0;
  for (int i = 0; i < n; ++i)
    if (i % 2 == me % 2) members[count++] = i;
  ARMCI_Group group, world, pair;
  ARMCI_Group_create(count, members, &group);
  int rank, size;
  ARMCI_Group_rank(&group, &rank);
  ARMCI_Group_size(&group, &size);
  CHECK(rank == me / 2 && size == count && ARMCI_Absolute_id(&group, rank) == me);
  MPI_Comm_size(group.comm, &size);
  CHECK(size == count);
  void *memory[64];
  ARMCI_Malloc_group(memory, 1000, &group);
  long value = 1000 + me, seen = 0;
  ARMCI_Put(&value, memory[(rank + 1) % count], 8, members[(rank + 1) % count]);
  ARMCI_AllFence();
  armci_msg_group_barrier(&group);
  ARMCI_Get(memory[rank], &seen, 8, me);
  CHECK(seen == 1000 + members[(rank + count - 1) % count]);
  int sum = 1;
  armci_msg_group_igop(&sum, 1, "+", &group);
  CHECK(sum == count);
  ARMCI_Free_group(memory[rank], &group);

  /* A group of a group; members are named by their ranks in it. */
  ARMCI_Group_set_default(&group);
  int first[1] = {0};
  ARMCI_Group_create(1, first, &pair);
  CHECK((pair.comm != MPI_COMM_NULL) == (rank == 0));
  ARMCI_Group_get_world(&world);
  ARMCI_Group_set_default(&world);
  ARMCI_Group_free(&pair);
  ARMCIX_Group_split(&world, me % 2, -me, &pair);
  ARMCI_Group_rank(&pair, &rank);
  CHECK(rank == count - 1 - me / 2);
  int root = ARMCI_Absolute_id(&pair, 0), told = me;
  armci_msg_group_bcast_scope(SCOPE_ALL, &told, sizeof told, root, &pair);
  CHECK(told == root);
  armcix_mutex_hdl_t set = ARMCIX_Create_mutexes_hdl(1, &pair);
  ARMCIX_Lock_hdl(set, 0, 0);
  ARMCIX_Unlock_hdl(set, 0, 0);
  ARMCIX_Destroy_mutexes_hdl(set);
  ARMCI_Group_free(&pair);
  ARMCI_Group_free(&group);
  ARMCI_Barrier();
}

static void mistake(const char *name, double **memory) {
  double x = 1;
  armci_hdl_t handle = {12345, 77};
  ARMCI_Group group;
  if (strcmp(name, "process") == 0) ARMCI_Put(&x, memory[me], 8, n);
  if (strcmp(name, "address") == 0) ARMCI_Put(&x, &x, 8, next == me ? 0 : next);
  if (strcmp(name, "beyond") == 0) ARMCI_Get(memory[next], memory, 1 << 30, next);
  if (strcmp(name, "handle") == 0) ARMCI_Wait(&handle);
  if (strcmp(name, "nowhere") == 0) ARMCI_Get(NULL, NULL, 8, me);
  if (strcmp(name, "null") == 0) ARMCI_Wait(NULL);
  if (strcmp(name, "negative") == 0) ARMCI_Put(&x, &x, -8, me);
  if (strcmp(name, "levels") == 0) ARMCI_PutS(&x, NULL, memory[next], NULL, &n, 99, next);
  if (strcmp(name, "free") == 0) ARMCI_Free(memory[me] + 1);
  if (strcmp(name, "operation") == 0) armci_msg_dgop(&x, 1, "%");
  if (strcmp(name, "logic") == 0) armci_msg_dgop(&x, 1, "&&");
  if (strcmp(name, "type") == 0) ARMCI_Acc(9, &x, &x, memory[next], 8, next);
  if (strcmp(name, "mutex") == 0) ARMCI_Lock(0, 0);
  if (strcmp(name, "room") == 0) ARMCI_Malloc((void **)memory, 1L << 43);
  if (strcmp(name, "group") == 0) {
    int other[1] = {next};
    ARMCI_Group_create(1, other, &group);
    ARMCI_Malloc_group((void **)memory, 8, &group);
  }
  if (strcmp(name, "none") == 0) {
    memset(&group, 0, sizeof group);
    group.record = &group;
    armci_msg_group_barrier(&group);
  }
  if (strcmp(name, "early") == 0) ARMCI_Finalize(), ARMCI_Put(&x, memory[next], 8, next);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  CHECK(!ARMCI_Initialized());
  ARMCI_Init();
  CHECK(ARMCI_Initialized());
  me = armci_msg_me(), n = armci_msg_nproc(), next = (me + 1) % n, before = (me + n - 1) % n;
  double *memory[64];
  CHECK(n <= 64);
  ARMCI_Malloc((void **)memory, rows * columns * 8);
  if (argc > 1) mistake(argv[1], memory), exit(9);
  for (int i = 0; i < rows * columns; ++i) memory[me][i] = -1;
  ARMCI_Barrier();
  strided(memory);
  contiguous(memory);
  lists(memory);
  handles(memory);
  words(memory);
  messages();
  groups();
  void *local = ARMCI_Malloc_local(100);
  CHECK(local != NULL);
  ARMCI_Free_local(local);
  for (int i = 0; i < 100; ++i) {
    void *some[64];
    ARMCI_Malloc(some, 100 * me);
    CHECK((some[me] == NULL) == (me == 0));
    ARMCI_Free(some[me]);
  }
  ARMCI_Free(memory[me]);
  if (me == 0) printf("all as it should be, on %d processes\n", n);
  ARMCI_Finalize();
  ARMCI_Finalize();
  CHECK(!ARMCI_Initialized());
  MPI_Finalize();
  return 0;
}
