/* Messages and collectives of ARMCI, over the processes that it has (armci.h). */
#ifndef FARSIDE_ARMCI_MESSAGE_H
#define FARSIDE_ARMCI_MESSAGE_H

#include <armci.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each process is a node of its own: SCOPE_NODE is this process, SCOPE_MASTERS are all. */
enum armci_scope_e { SCOPE_ALL = 0, SCOPE_NODE = 1, SCOPE_MASTERS = 2 };

enum armci_type_e {
  ARMCI_INT = 0,
  ARMCI_LONG = 1,
  ARMCI_LONG_LONG = 2,
  ARMCI_FLOAT = 3,
  ARMCI_DOUBLE = 4
};

int armci_msg_me(void);
int armci_msg_nproc(void);
void armci_msg_abort(int code);
double armci_timer(void);

/* Blocking. `received` may be null. */
void armci_msg_snd(int tag, void *from, int bytes, int process);
void armci_msg_rcv(int tag, void *to, int room, int *received, int process);
/* Who has sent it. */
int armci_msg_rcvany(int tag, void *to, int room, int *received);

void armci_msg_barrier(void);
void armci_msg_group_barrier(ARMCI_Group *group);
/* A binary tree over the processes of the scope; -1 where there is nobody. */
void armci_msg_bintree(int scope, int *root, int *up, int *left, int *right);

void armci_msg_bcast(void *data, int bytes, int root);
void armci_msg_brdcst(void *data, int bytes, int root);
void armci_msg_bcast_scope(int scope, void *data, int bytes, int root);
/* `root` is one of the group, by its rank among all processes. */
void armci_msg_group_bcast_scope(int scope, void *data, int bytes, int root, ARMCI_Group *group);
void armci_msg_clus_brdcst(void *data, int bytes);

/* Operations: + * min max absmax absmin, and of integers or && || & |. The result is on all processes; of reduce, on process 0
 * of the scope. */
void armci_msg_gop_scope(int scope, void *x, int n, char *operation, int type);
void armci_msg_igop(int *x, int n, char *operation);
void armci_msg_lgop(long *x, int n, char *operation);
void armci_msg_llgop(long long *x, int n, char *operation);
void armci_msg_fgop(float *x, int n, char *operation);
void armci_msg_dgop(double *x, int n, char *operation);
void armci_msg_reduce(void *x, int n, char *operation, int type);
void armci_msg_reduce_scope(int scope, void *x, int n, char *operation, int type);
void armci_msg_group_gop_scope(int scope, void *x, int n, char *operation, int type,
                               ARMCI_Group *group);
void armci_msg_group_igop(int *x, int n, char *operation, ARMCI_Group *group);
void armci_msg_group_lgop(long *x, int n, char *operation, ARMCI_Group *group);
void armci_msg_group_llgop(long long *x, int n, char *operation, ARMCI_Group *group);
void armci_msg_group_fgop(float *x, int n, char *operation, ARMCI_Group *group);
void armci_msg_group_dgop(double *x, int n, char *operation, ARMCI_Group *group);
void armci_msg_clus_igop(int *x, int n, char *operation);
void armci_msg_clus_lgop(long *x, int n, char *operation);
void armci_msg_clus_llgop(long long *x, int n, char *operation);
void armci_msg_clus_fgop(float *x, int n, char *operation);
void armci_msg_clus_dgop(double *x, int n, char *operation);

/* All get the n bytes of the process whose first value is the least or greatest ("min", "max") of
 * those that contribute. */
void armci_msg_sel(void *x, int n, char *operation, int type, int contribute);
void armci_msg_sel_scope(int scope, void *x, int n, char *operation, int type, int contribute);

/* Fills the array from n addresses of which each process gives its own, and null for the others. */
void armci_exchange_address(void *addresses[], int n);
void armci_exchange_address_grp(void *addresses[], int n, ARMCI_Group *group);
/* From a node's first process to the others of it: each process is a node. */
void armci_grp_clus_brdcst(void *data, int bytes, int master, int processes, ARMCI_Group *masters);

#ifdef __cplusplus
}
#endif

#endif
