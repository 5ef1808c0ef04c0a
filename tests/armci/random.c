/* Random calls of ARMCI on a part of each process's memory that is this process's own to change, against a model of it.
 * Nothing is fenced: what one process does to one place takes effect in the order of its calls. */
#include "check.h"

#include <armci.h>
#include <stdlib.h>
#include <string.h>

enum { types = 6, section = 128 << 10, slab = types * section, deepest = 5, longest_list = 40 };

static const int type_of[types] = {ARMCI_ACC_INT, ARMCI_ACC_LNG, ARMCI_ACC_FLT,
                                   ARMCI_ACC_DBL, ARMCI_ACC_CPL, ARMCI_ACC_DCP};
static const int size_of[types] = {4, 8, 4, 8, 8, 16};

static unsigned long state;
static int me, n;
static void **memory;
static char *model; /* what this process has made of its slab at each process */
static char *buffer, *expected;

static int below(int limit) {
  state = state * 6364136223846793005ul + 1442695040888963407ul;
  return (int)((state >> 33) % (unsigned long)limit);
}

/* Small whole numbers, so that no sum is rounded. */
static void fill(char *at, int type, int bytes) {
  for (int i = 0; i < bytes; i += (type == 0 || type == 2 || type == 4) ? 4 : 8) {
    if (type == 0) *(int*)(at + i) = below(8);
    if (type == 1) *(long*)(at + i) = below(8);
    if (type == 2 || type == 4) *(float*)(at + i) = (float)below(8);
    if (type == 3 || type == 5) *(double*)(at + i) = below(8);
  }
}
static void add(char *to, const char *from, int type, const void *scale, int bytes) {
  for (int i = 0; i < bytes; i += size_of[type]) {
    if (type == 0) *(int*)(to + i) += *(const int*)scale * *(const int*)(from + i);
    if (type == 1) *(long*)(to + i) += *(const long*)scale * *(const long*)(from + i);
    if (type == 2) *(float*)(to + i) += *(const float*)scale * *(const float*)(from + i);
    if (type == 3) *(double*)(to + i) += *(const double*)scale * *(const double*)(from + i);
    if (type == 4) {
      const float *s = scale, *f = (const float*)(from + i);
      float *t = (float*)(to + i);
      t[0] += s[0] * f[0] - s[1] * f[1], t[1] += s[0] * f[1] + s[1] * f[0];
    }
    if (type == 5) {
      const double *s = scale, *f = (const double*)(from + i);
      double *t = (double*)(to + i);
      t[0] += s[0] * f[0] - s[1] * f[1], t[1] += s[0] * f[1] + s[1] * f[0];
    }
  }
}
static const void *scale_of(int type, double *room) {
  int a = below(3), b = below(2);
  if (type == 0) *(int*)room = a;
  if (type == 1) *(long*)room = a;
  if (type == 2) *(float*)room = (float)a;
  if (type == 3) *room = a;
  if (type == 4) ((float*)room)[0] = (float)a, ((float*)room)[1] = (float)b;
  if (type == 5) room[0] = a, room[1] = b;
  return room;
}

/* A block of up to `deepest` levels of rows; `strides` leave gaps, and the whole takes `span` bytes. */
struct shape {
  int levels, count[deepest + 1], there[deepest], here[deepest], there_span, here_span;
};
static int spread(const int *count, int levels, int *strides, int size) {
  int span = count[0];
  for (int i = 0; i < levels; ++i) {
    strides[i] = span + (below(2) ? 0 : size * below(5));
    span = strides[i] * (count[i + 1] - 1) + span;
  }
  return span;
}
static struct shape any_shape(int size) {
  struct shape s;
  do {
    s.levels = below(deepest + 1);
    int most = s.levels != 0 ? 6 : below(4) != 0 ? 200 : section / size;
    s.count[0] = size * (1 + below(most));
    for (int i = 1; i <= s.levels; ++i) s.count[i] = 1 + below(below(4) ? 4 : 40);
    s.there_span = spread(s.count, s.levels, s.there, size);
    s.here_span = spread(s.count, s.levels, s.here, size);
  } while (s.there_span > section || s.here_span > section);
  return s;
}

enum { is_put, is_add, is_get };
/* What the call does, on the model or, for a get, on `expected`. */
static void imitate(const struct shape *s, int level, char *there, char *here, int what, int type,
                    const void *scale) {
  if (level == 0) {
    if (what == is_put) memcpy(there, here, (size_t)s->count[0]);
    if (what == is_add) add(there, here, type, scale, s->count[0]);
    if (what == is_get) memcpy(here, there, (size_t)s->count[0]);
    return;
  }
  for (int i = 0; i < s->count[level]; ++i)
    imitate(s, level - 1, there + (long)i * s->there[level - 1],
            here + (long)i * s->here[level - 1], what, type, scale);
}

static void strided_call(void) {
  int type = below(types), size = size_of[type], target = below(n), what = below(3),
      later = below(3);
  struct shape s = any_shape(size);
  int offset = type * section + size * below((section - s.there_span) / size + 1);
  char *at = (char*)memory[target] + (long)me * slab + offset;
  char *copy = model + (long)target * slab + offset;
  double room[2];
  const void *scale = scale_of(type, room);
  armci_hdl_t handle, *h = later == 1 ? &handle : NULL;
  ARMCI_INIT_HANDLE(&handle);
  if (what == is_get) memset(buffer, 7, section), memset(expected, 7, section);
  if (what != is_get) fill(buffer, type, s.here_span);
  imitate(&s, s.levels, copy, what == is_get ? expected : buffer, what, type, scale);
  if (what == is_put && s.levels == 0 && later == 0) {
    ARMCI_Put(buffer, at, s.count[0], target);
  } else if (what == is_put && later == 0) {
    ARMCI_PutS(buffer, s.here, at, s.there, s.count, s.levels, target);
  } else if (what == is_put) {
    ARMCI_NbPutS(buffer, s.here, at, s.there, s.count, s.levels, target, h);
  } else if (what == is_add && s.levels == 0 && later == 0) {
    ARMCI_Acc(type_of[type], (void*)scale, buffer, at, s.count[0], target);
  } else if (what == is_add && later == 0) {
    ARMCI_AccS(type_of[type], (void*)scale, buffer, s.here, at, s.there, s.count, s.levels, target);
  } else if (what == is_add) {
    ARMCI_NbAccS(type_of[type], (void*)scale, buffer, s.here, at, s.there, s.count, s.levels,
                 target, h);
  } else if (s.levels == 0 && later == 0) {
    ARMCI_Get(at, buffer, s.count[0], target);
  } else if (later == 0) {
    ARMCI_GetS(at, s.there, buffer, s.here, s.count, s.levels, target);
  } else {
    ARMCI_NbGetS(at, s.there, buffer, s.here, s.count, s.levels, target, h);
  }
  if (later == 1) ARMCI_Wait(&handle);
  if (later == 2 && below(2))
    ARMCI_WaitProc(target);
  else if (later == 2)
    ARMCI_WaitAll();
  if (what == is_get) CHECK(memcmp(buffer, expected, section) == 0);
}

static void list_call(void) {
  int type = below(types), size = size_of[type], target = below(n), what = below(3),
      lists = 1 + below(3);
  double room[2];
  const void *scale = scale_of(type, room);
  void *from[3][longest_list], *to[3][longest_list];
  armci_giov_t all[3];
  if (what == is_get) memset(buffer, 7, section), memset(expected, 7, section);
  if (what != is_get) fill(buffer, type, section);
  int begin = 0; /* pieces do not overlap: each has the space of its list's place in the section */
  for (int k = 0; k < lists; ++k) {
    int pieces = below(longest_list + 1), bytes = size * (1 + below(20)),
        turn = below(longest_list);
    for (int i = 0; i < pieces; ++i) {
      int place = begin + ((i * 7 + turn) % pieces) * bytes, mine = begin + i * bytes;
      char *at = (char*)memory[target] + (long)me * slab + type * section + place;
      char *copy = model + (long)target * slab + type * section + place;
      if (what == is_put) memcpy(copy, buffer + mine, (size_t)bytes);
      if (what == is_add) add(copy, buffer + mine, type, scale, bytes);
      if (what == is_get) memcpy(expected + mine, copy, (size_t)bytes);
      from[k][i] = what == is_get ? at : buffer + mine,
      to[k][i] = what == is_get ? buffer + mine : at;
      if (pieces % 7 == 0) break; /* 7 and the number have a common factor: one piece */
    }
    all[k].src_ptr_array = from[k], all[k].dst_ptr_array = to[k], all[k].bytes = bytes;
    all[k].ptr_array_len = pieces != 0 && pieces % 7 == 0 ? 1 : pieces;
    begin += longest_list * bytes;
  }
  if (what == is_put) ARMCI_PutV(all, lists, target);
  if (what == is_add) ARMCI_AccV(type_of[type], (void*)scale, all, lists, target);
  if (what == is_get) ARMCI_GetV(all, lists, target);
  if (what == is_get) CHECK(memcmp(buffer, expected, section) == 0);
}

static void word_call(void) {
  int target = below(n), offset = section + 8 * below(section / 8), value = below(8);
  long *at = (long*)((char*)memory[target] + (long)me * slab + offset), old = value;
  long *copy = (long*)(model + (long)target * slab + offset), before = *copy;
  if (below(2)) {
    ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, at, value, target), *copy += value;
  } else {
    ARMCI_Rmw(ARMCI_SWAP_LONG, &old, at, 0, target), *copy = value;
  }
  CHECK(old == before);
}

static long sum(const char *bytes) {
  long total = 0;
  for (int i = 0; i < slab; ++i) total = total * 31 + bytes[i];
  return total;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  ARMCI_Init();
  me = armci_msg_me(), n = armci_msg_nproc();
  int rounds = argc > 1 ? atoi(argv[1]) : 3, calls = argc > 2 ? atoi(argv[2]) : 400;
  state = (unsigned long)(argc > 3 ? atoi(argv[3]) : 1) * 1000 + (unsigned long)me;
  memory = malloc((size_t)n * sizeof *memory);
  ARMCI_Malloc(memory, (armci_size_t)n * (slab + 8));
  memset(memory[me], 0, (size_t)n * (slab + 8));
  model = calloc((size_t)n, slab);
  buffer = malloc(section + 16), expected = malloc(section + 16);
  ARMCI_Barrier();
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < calls; ++i) {
      int what = below(10);
      if (what < 7) strided_call();
      if (what == 7 || what == 8) list_call();
      if (what == 9) word_call();
      if (below(50) == 0) ARMCI_Fence(below(n));
      if (below(100) == 0) ARMCI_AllFence();
    }
    /* Each owner finds in its memory what the others have in their models. */
    for (int target = 0; target < n; ++target) {
      long total = sum(model + (long)target * slab);
      ARMCI_Put(&total, (char*)memory[target] + (long)n * slab + 8 * me, 8, target);
    }
    ARMCI_Barrier();
    ARMCI_Access_begin(memory[me]);
    for (int writer = 0; writer < n; ++writer)
      CHECK(sum((char*)memory[me] + (long)writer * slab) ==
            ((long*)((char*)memory[me] + (long)n * slab))[writer]);
    ARMCI_Access_end(memory[me]);
    ARMCI_Barrier();
  }
  ARMCI_Free(memory[me]);
  if (me == 0) printf("all as it should be\n");
  ARMCI_Finalize();
  MPI_Finalize();
  return 0;
}
