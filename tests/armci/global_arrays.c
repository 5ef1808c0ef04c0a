/* A program of Global Arrays: arrays of two dimensions, by everything that moves them, and algebra
 * on them, against what is computed here. It runs on any ARMCI. */
#include "check.h"

#include <ga.h>
#include <ga-mpi.h>
#include <macdecls.h>
#include <math.h>
#include <string.h>

enum { n = 24 };

static double value(int i, int j) { return 3 * i - 2 * j + 0.25; }

/* Each process writes a block of rows; all read all of it. */
static int make_filled(const char *name, double (*of)(int, int)) {
  int dims[2] = {n, n}, chunk[2] = {-1, -1};
  int g = NGA_Create(C_DBL, 2, dims, (char *)name, chunk);
  CHECK(g != 0);
  for (int i = GA_Nodeid(); i < n; i += GA_Nnodes()) {
    double row[n];
    for (int j = 0; j < n; ++j) row[j] = of(i, j);
    int lo[2] = {i, 0}, hi[2] = {i, n - 1}, ld[1] = {n};
    NGA_Put(g, lo, hi, row, ld);
  }
  GA_Sync();
  return g;
}

static void get_all(int g, double *to) {
  int lo[2] = {0, 0}, hi[2] = {n - 1, n - 1}, ld[1] = {n};
  NGA_Get(g, lo, hi, to, ld);
}

static void moves(void) {
  static double all[n * n];
  int g = make_filled("moves", value);
  get_all(g, all);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) CHECK(all[i * n + j] == value(i, j));
  GA_Sync();

  /* A patch that crosses all processes, from a buffer with longer rows. */
  double patch[10][17];
  for (int i = 0; i < 10; ++i)
    for (int j = 0; j < 17; ++j) patch[i][j] = 1.0;
  int lo[2] = {7, 5}, hi[2] = {16, 18}, ld[1] = {17};
  double half = 0.5;
  for (int k = 0; k < 3; ++k) NGA_Acc(g, lo, hi, patch, ld, &half);
  GA_Sync();
  get_all(g, all);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      int in = i >= 7 && i <= 16 && j >= 5 && j <= 18;
      CHECK(fabs(all[i * n + j] - value(i, j) - (in ? 1.5 * GA_Nnodes() : 0)) < 1e-12);
    }
  GA_Sync();

  /* What one process does to one place takes effect in order. */
  int at[2] = {GA_Nodeid() % n, 3};
  for (int k = 0; k < 20; ++k) {
    double mine = k, seen = -1;
    int one[1] = {1};
    NGA_Put(g, at, at, &mine, one);
    NGA_Acc(g, at, at, &mine, one, &half);
    NGA_Get(g, at, at, &seen, one);
    CHECK(seen == 1.5 * k);
  }
  GA_Sync();

  /* Handles. */
  ga_nbhdl_t handle;
  double back[10][17];
  for (int i = 0; i < 10; ++i)
    for (int j = 0; j < 17; ++j) patch[i][j] = i + j;
  if (GA_Nodeid() == 0) {
    NGA_NbPut(g, lo, hi, patch, ld, &handle);
    NGA_NbWait(&handle);
    NGA_NbGet(g, lo, hi, back, ld, &handle);
    NGA_NbWait(&handle);
    for (int i = 0; i < 10; ++i)
      for (int j = 0; j < 14; ++j) CHECK(back[i][j] == i + j);
  }
  GA_Sync();
  GA_Destroy(g);
}

static void scattered(void) {
  int dims[2] = {n, n}, chunk[2] = {-1, -1};
  int g = NGA_Create(C_DBL, 2, dims, "scattered", chunk);
  GA_Zero(g);
  double values[n], back[n], one = 1.0;
  int places[n][2];
  int *list[n];
  for (int k = 0; k < n; ++k) {
    places[k][0] = k, places[k][1] = (5 * k + GA_Nodeid()) % n;
    values[k] = 100 * GA_Nodeid() + k;
    list[k] = places[k];
  }
  NGA_Scatter(g, values, list, n);
  GA_Sync();
  NGA_Gather(g, back, list, n);
  for (int k = 0; k < n; ++k) CHECK(back[k] == values[k]);
  GA_Sync();
  for (int k = 0; k < n; ++k) places[k][0] = k, places[k][1] = 2, values[k] = 1;
  NGA_Gather(g, back, list, n);
  GA_Sync();
  NGA_Scatter_acc(g, values, list, n, &one);
  GA_Sync();
  double sums[n];
  NGA_Gather(g, sums, list, n);
  for (int k = 0; k < n; ++k) CHECK(sums[k] == back[k] + GA_Nnodes());
  GA_Sync();
  GA_Destroy(g);
}

static void counters(void) {
  int dims[1] = {2}, zero[1] = {0}, chunk[1] = {-1};
  int g = NGA_Create(C_LONG, 1, dims, "counter", chunk);
  GA_Zero(g);
  long sum = 0, last = -1;
  for (int k = 0; k < 50; ++k) {
    long old = NGA_Read_inc(g, zero, 1);
    CHECK(old > last);
    last = old;
    sum += old;
  }
  GA_Lgop(&sum, 1, "+");
  long all = 50L * GA_Nnodes();
  CHECK(sum == all * (all - 1) / 2);
  GA_Destroy(g);

  CHECK(GA_Create_mutexes(2));
  double shared[2];
  g = make_filled("guarded", value);
  int lo[2] = {4, 4}, hi[2] = {4, 5}, ld[1] = {2};
  for (int k = 0; k < 10; ++k) {
    GA_Lock(1);
    NGA_Get(g, lo, hi, shared, ld);
    CHECK(shared[1] - shared[0] == value(4, 5) - value(4, 4));
    shared[0] += 1, shared[1] += 1;
    NGA_Put(g, lo, hi, shared, ld);
    GA_Init_fence();
    GA_Fence();
    GA_Unlock(1);
  }
  GA_Sync();
  NGA_Get(g, lo, hi, shared, ld);
  CHECK(shared[0] == value(4, 4) + 10 * GA_Nnodes());
  GA_Sync();
  CHECK(GA_Destroy_mutexes());
  GA_Destroy(g);
}

static void ghosts(void) {
  int dims[2] = {n, n}, width[2] = {2, 1}, chunk[2] = {-1, -1};
  int g = NGA_Create_ghosts(C_DBL, 2, dims, width, "ghosts", chunk);
  CHECK(g != 0);
  int lo[2], hi[2], sizes[2], ld[1];
  NGA_Distribution(g, GA_Nodeid(), lo, hi);
  if (lo[0] >= 0 && hi[0] >= lo[0]) {
    double *mine;
    NGA_Access(g, lo, hi, &mine, ld);
    for (int i = lo[0]; i <= hi[0]; ++i)
      for (int j = lo[1]; j <= hi[1]; ++j) mine[(i - lo[0]) * ld[0] + j - lo[1]] = value(i, j);
    NGA_Release_update(g, lo, hi);
  }
  GA_Sync();
  GA_Update_ghosts(g);
  if (lo[0] >= 0 && hi[0] >= lo[0]) {
    double *with;
    NGA_Access_ghosts(g, sizes, &with, ld);
    for (int i = lo[0] - 2; i <= hi[0] + 2; ++i)
      for (int j = lo[1] - 1; j <= hi[1] + 1; ++j) {
        double expected = value((i + n) % n, (j + n) % n);
        CHECK(with[(i - lo[0] + 2) * ld[0] + j - lo[1] + 1] == expected);
      }
    NGA_Release_ghosts(g);
  }
  GA_Sync();
  GA_Destroy(g);
}

/* The even processes make a group, and an array in it; the odd ones know nothing of it. */
static void groups(void) {
  int members[512], count = 0;
  for (int i = 0; i < GA_Nnodes(); i += 2) members[count++] = i;
  if (GA_Nodeid() % 2 == 0) {
    int group = GA_Pgroup_create(members, count);
    CHECK(GA_Pgroup_nnodes(group) == count);
    CHECK(GA_Pgroup_nodeid(group) == GA_Nodeid() / 2);
    int dims[1] = {40 * count}, chunk[1] = {-1};
    int g = NGA_Create_config(C_DBL, 1, dims, "of a group", chunk, group);
    CHECK(g != 0);
    double ones[400], one = 1;
    for (int i = 0; i < 400; ++i) ones[i] = 1;
    int lo[1] = {0}, hi[1] = {39}, ld[1] = {40};
    NGA_Acc(g, lo, hi, ones, ld, &one);
    GA_Pgroup_sync(group);
    NGA_Get(g, lo, hi, ones, ld);
    for (int i = 0; i < 40; ++i) CHECK(ones[i] == count);
    double sum = GA_Nodeid();
    GA_Pgroup_dgop(group, &sum, 1, "+");
    CHECK(sum == count * (count - 1));
    GA_Pgroup_sync(group);
    GA_Destroy(g);
    CHECK(GA_Pgroup_destroy(group));
  }
  GA_Sync();
}

/* ScaLAPACK, which is under the last two, knows MPI_COMM_WORLD alone. */
static void algebra(int all_processes_are_here) {
  static double a[n * n], b[n * n], c[n * n];
  int ga = make_filled("a", value), gb = GA_Duplicate(ga, "b"), gc = GA_Duplicate(ga, "c");
  GA_Transpose(ga, gb);
  get_all(ga, a);
  get_all(gb, b);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) CHECK(b[j * n + i] == a[i * n + j]);
  GA_Dgemm('n', 'n', n, n, n, 2.0, ga, gb, 0.0, gc);
  get_all(gc, c);
  double dot = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int k = 0; k < n; ++k) sum += 2 * a[i * n + k] * b[k * n + j];
      CHECK(fabs(c[i * n + j] - sum) < 1e-9 * (1 + fabs(sum)));
      dot += a[i * n + j] * b[i * n + j];
    }
  CHECK(fabs(GA_Ddot(ga, gb) - dot) < 1e-9 * (1 + fabs(dot)));
  double greatest = -1e9, seen;
  int place[2];
  for (int i = 0; i < n * n; ++i) greatest = a[i] > greatest ? a[i] : greatest;
  NGA_Select_elem(ga, "max", &seen, place);
  CHECK(seen == greatest && value(place[0], place[1]) == greatest);
  GA_Sync();

  /* A symmetric matrix with a strong diagonal: eigenvalues, then a system of equations. */
  for (int i = GA_Nodeid(); i < n; i += GA_Nnodes()) {
    double row[n];
    for (int j = 0; j < n; ++j) row[j] = i == j ? 40.0 + i : 1.0 / (1 + i + j);
    int lo[2] = {i, 0}, hi[2] = {i, n - 1}, ld[1] = {n};
    NGA_Put(ga, lo, hi, row, ld);
  }
  GA_Sync();
  get_all(ga, a);
  if (all_processes_are_here) {
    double eigenvalues[n];
    GA_Diag_std_seq(ga, gc, eigenvalues);
    get_all(gc, c);
    for (int k = 0; k < n; ++k)
      for (int i = 0; i < n; ++i) { /* GA keeps vectors as columns of Fortran's order */
        double ax = 0;
        for (int j = 0; j < n; ++j) ax += a[i * n + j] * c[k * n + j];
        CHECK(fabs(ax - eigenvalues[k] * c[k * n + i]) < 1e-9);
      }
    GA_Sync();
    int gx;
    int dims[2] = {1, n}, chunk[2] = {-1, -1};
    gx = NGA_Create(C_DBL, 2, dims, "right side", chunk);
    if (GA_Nodeid() == 0) {
      double side[n];
      for (int i = 0; i < n; ++i) side[i] = i - 3;
      int lo[2] = {0, 0}, hi[2] = {0, n - 1}, ld[1] = {n};
      NGA_Put(gx, lo, hi, side, ld);
    }
    GA_Sync();
    GA_Lu_solve('n', ga, gx);
    double x[n];
    int lo[2] = {0, 0}, hi[2] = {0, n - 1}, ld[1] = {n};
    NGA_Get(gx, lo, hi, x, ld);
    for (int i = 0; i < n; ++i) {
      double ax = 0;
      for (int j = 0; j < n; ++j) ax += a[i * n + j] * x[j];
      CHECK(fabs(ax - (i - 3)) < 1e-9);
    }
    GA_Sync();
    GA_Destroy(gx);
  }
  GA_Destroy(ga), GA_Destroy(gb), GA_Destroy(gc);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  GA_Initialize();
  CHECK(MA_init(C_DBL, 100000, 100000));
  int all = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  moves();
  scattered();
  counters();
  ghosts();
  groups();
  algebra(all == GA_Nnodes());
  if (GA_Nodeid() == 0) printf("all as it should be, on %d processes\n", GA_Nnodes());
  GA_Terminate();
  MPI_Finalize();
  return 0;
}
