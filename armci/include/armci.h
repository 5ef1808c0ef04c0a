/* ARMCI on Farside: one-sided communication as Global Arrays and NWChem use it. docs/armci.md tells
 * how to link a program with it.
 *
 * Names, arguments, constants and sizes are those of ARMCI-MPI, so that what was compiled for that
 * library (Debian's libglobalarrays-dev, for instance) links with this one. Each ARMCI_ name of a
 * function that also has a PARMCI_ name is weak, for profilers.
 *
 * Processes are named by their rank in the world, also in groups' memory, unless it says otherwise.
 * A mistake ends the job with one line that says which call was wrong, and why. Functions that
 * return int return 0.
 */
#ifndef FARSIDE_ARMCI_H
#define FARSIDE_ARMCI_H

#include <mpi.h>

#define ARMCI_MPI 3
#define ARMCI_FARSIDE 1
#define ARMCII_MPI_SIZE_T MPI_LONG

#ifdef __cplusplus
extern "C" {
#endif

typedef long armci_size_t;

/* What ARMCI_Acc adds. */
enum ARMCI_Acc_e {
  ARMCI_ACC_INT = 0,
  ARMCI_ACC_LNG = 1,
  ARMCI_ACC_FLT = 2,
  ARMCI_ACC_DBL = 3,
  ARMCI_ACC_CPL = 4, /* two floats */
  ARMCI_ACC_DCP = 5  /* two doubles */
};

enum ARMCI_Rmw_e {
  ARMCI_FETCH_AND_ADD = 0, /* of int */
  ARMCI_FETCH_AND_ADD_LONG = 1,
  ARMCI_SWAP = 2,
  ARMCI_SWAP_LONG = 3
};

/* An operation that has begun. Its members are the library's. */
typedef struct armci_hdl_s {
  int target;
  int aggregate;
} armci_hdl_t;

/* A list of pieces of one length. */
typedef struct {
  void **src_ptr_array;
  void **dst_ptr_array;
  int bytes; /* of each piece */
  int ptr_array_len;
} armci_giov_t;

/* Some of the processes. `comm` has its members, in their order; the rest is the library's. */
typedef struct {
  MPI_Comm comm;
  MPI_Comm unused_comm;
  void *record;
  void *unused;
  int rank;
  int size;
} ARMCI_Group;

/* --- beginning and end ----------------------------------------------------------------------- */

/* Collective. MPI must have been started. */
int ARMCI_Init(void);
int ARMCI_Init_args(int *argc, char ***argv);
int ARMCI_Init_thread(int level);
int ARMCI_Init_thread_comm(int level, MPI_Comm comm);
int ARMCI_Initialized(void);
/* Collective. Ends what the last ARMCI_Init began; nothing, if there is nothing. */
int ARMCI_Finalize(void);
void ARMCI_Cleanup(void);
/* Prints the message and ends the job. */
void ARMCI_Error(const char *message, int code);

/* --- memory ---------------------------------------------------------------------------------- */

/* Collective: `bytes` of this process's memory that others reach, and the addresses of all, by
 * process. The address of another process's memory is for ARMCI's calls alone. Zero bytes: a null
 * address. */
int ARMCI_Malloc(void **addresses, armci_size_t bytes);
int ARMCI_Malloc_group(void **addresses, armci_size_t bytes, ARMCI_Group *group);
/* Collective: each process gives its own address. */
int ARMCI_Free(void *address);
int ARMCI_Free_group(void *address, ARMCI_Group *group);
/* Memory that only this process uses. */
void *ARMCI_Malloc_local(armci_size_t bytes);
int ARMCI_Free_local(void *address);
/* As without _memdev: `device` is not looked at. */
int ARMCI_Malloc_memdev(void **addresses, armci_size_t bytes, const char *device);
int ARMCI_Malloc_group_memdev(void **addresses, armci_size_t bytes, ARMCI_Group *group,
                              const char *device);
int ARMCI_Free_memdev(void *address);
/* Around a process's loads and stores of its own memory that others reach. */
void ARMCI_Access_begin(void *address);
void ARMCI_Access_end(void *address);

/* --- blocking operations ------------------------------------------------------------------------
 *
 * The buffer here may be reused on return. What was written is complete at its target after a
 * fence. What one process does to one place takes effect in the order of its calls. Strides and
 * count[0] are in bytes; count[i] of higher levels are repetitions.
 */
int ARMCI_Get(void *from, void *to, int bytes, int process);
int ARMCI_Put(void *from, void *to, int bytes, int process);
int ARMCI_Acc(int type, void *scale, void *from, void *to, int bytes, int process);

int ARMCI_PutS(void *from, int from_strides[], void *to, int to_strides[], int count[], int levels,
               int process);
int ARMCI_GetS(void *from, int from_strides[], void *to, int to_strides[], int count[], int levels,
               int process);
int ARMCI_AccS(int type, void *scale, void *from, int from_strides[], void *to, int to_strides[],
               int count[], int levels, int process);

int ARMCI_PutV(armci_giov_t *pieces, int length, int process);
int ARMCI_GetV(armci_giov_t *pieces, int length, int process);
int ARMCI_AccV(int type, void *scale, armci_giov_t *pieces, int length, int process);

/* The flag becomes `value` after the data is there. */
int ARMCI_Put_flag(void *from, void *to, int bytes, int *flag, int value, int process);
int ARMCI_PutS_flag(void *from, int from_strides[], void *to, int to_strides[], int count[],
                    int levels, int *flag, int value, int process);

int ARMCI_PutValueInt(int value, void *to, int process);
int ARMCI_PutValueLong(long value, void *to, int process);
int ARMCI_PutValueFloat(float value, void *to, int process);
int ARMCI_PutValueDouble(double value, void *to, int process);
int ARMCI_GetValueInt(void *from, int process);
long ARMCI_GetValueLong(void *from, int process);
float ARMCI_GetValueFloat(void *from, int process);
double ARMCI_GetValueDouble(void *from, int process);

/* `old` receives what was there; a swap gives what it holds before. */
int ARMCI_Rmw(int operation, void *old, void *at, int value, int process);

/* Within this process. write_strided writes the buffer, from a block; read_strided reads it. */
void ARMCI_Copy(void *from, void *to, int bytes);
void armci_write_strided(void *block, int levels, int strides[], int count[], char *buffer);
void armci_read_strided(void *block, int levels, int strides[], int count[], char *buffer);

/* --- completion ------------------------------------------------------------------------------ */

/* What this process has written to another one is complete there, for all to see. */
void ARMCI_Fence(int process);
void ARMCI_AllFence(void);
/* Collective: a fence to all, and a barrier. */
void ARMCI_Barrier(void);

/* --- operations that are waited for later -------------------------------------------------------
 *
 * A null handle: ARMCI_WaitProc and ARMCI_WaitAll complete the operation. An aggregate handle
 * stands for several operations. Test gives 0 if they are complete. A handle that is complete may
 * be waited for again, and used again.
 */
void ARMCI_INIT_HANDLE(armci_hdl_t *handle);
void ARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t *handle);
void ARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t *handle);

int ARMCI_NbPut(void *from, void *to, int bytes, int process, armci_hdl_t *handle);
int ARMCI_NbGet(void *from, void *to, int bytes, int process, armci_hdl_t *handle);
int ARMCI_NbAcc(int type, void *scale, void *from, void *to, int bytes, int process,
                armci_hdl_t *handle);
int ARMCI_NbPutS(void *from, int from_strides[], void *to, int to_strides[], int count[],
                 int levels, int process, armci_hdl_t *handle);
int ARMCI_NbGetS(void *from, int from_strides[], void *to, int to_strides[], int count[],
                 int levels, int process, armci_hdl_t *handle);
int ARMCI_NbAccS(int type, void *scale, void *from, int from_strides[], void *to, int to_strides[],
                 int count[], int levels, int process, armci_hdl_t *handle);
int ARMCI_NbPutV(armci_giov_t *pieces, int length, int process, armci_hdl_t *handle);
int ARMCI_NbGetV(armci_giov_t *pieces, int length, int process, armci_hdl_t *handle);
int ARMCI_NbAccV(int type, void *scale, armci_giov_t *pieces, int length, int process,
                 armci_hdl_t *handle);
int ARMCI_NbPutValueInt(int value, void *to, int process, armci_hdl_t *handle);
int ARMCI_NbPutValueLong(long value, void *to, int process, armci_hdl_t *handle);
int ARMCI_NbPutValueFloat(float value, void *to, int process, armci_hdl_t *handle);
int ARMCI_NbPutValueDouble(double value, void *to, int process, armci_hdl_t *handle);

int ARMCI_Wait(armci_hdl_t *handle);
int ARMCI_Test(armci_hdl_t *handle);
int ARMCI_WaitProc(int process);
int ARMCI_WaitAll(void);

/* --- mutexes --------------------------------------------------------------------------------- */

/* Collective: each process has `count` of them, numbered from 0. */
int ARMCI_Create_mutexes(int count);
int ARMCI_Destroy_mutexes(void);
void ARMCI_Lock(int mutex, int process);
void ARMCI_Unlock(int mutex, int process);

/* --- groups ---------------------------------------------------------------------------------- */

/* Collective over the members alone, which are named by their ranks in the parent (at first, the
 * default group). A process that is not named may call it, too, and gets a group without it. */
void ARMCI_Group_create(int size, int *members, ARMCI_Group *group);
void ARMCI_Group_create_child(int size, int *members, ARMCI_Group *group, ARMCI_Group *parent);
/* Collective over the group. */
void ARMCI_Group_free(ARMCI_Group *group);
int ARMCI_Group_rank(ARMCI_Group *group, int *rank);
void ARMCI_Group_size(ARMCI_Group *group, int *size);
void ARMCI_Group_set_default(ARMCI_Group *group);
void ARMCI_Group_get_default(ARMCI_Group *group);
void ARMCI_Group_get_world(ARMCI_Group *group);
/* The rank in the world of a member. */
int ARMCI_Absolute_id(ARMCI_Group *group, int rank);

/* --- where processes are ------------------------------------------------------------------------
 *
 * Each process counts as a node of its own, since processes load and store no memory of others.
 */
enum armci_domain_e { ARMCI_DOMAIN_SMP = 0 };
typedef int armci_domain_t;

int armci_domain_nprocs(armci_domain_t domain, int id);
int armci_domain_id(armci_domain_t domain, int process);
int armci_domain_glob_proc_id(armci_domain_t domain, int id, int place);
int armci_domain_my_id(armci_domain_t domain);
int armci_domain_count(armci_domain_t domain);
int armci_domain_same_id(armci_domain_t domain, int process);
int ARMCI_Same_node(int process);
int ARMCI_Uses_shm(void);
int ARMCI_Uses_shm_grp(ARMCI_Group *group);
void ARMCI_Set_shm_limit(unsigned long bytes);

/* --- the same, for profilers to call --------------------------------------------------------- */

int PARMCI_Init(void);
int PARMCI_Init_args(int *argc, char ***argv);
int PARMCI_Init_thread(int level);
int PARMCI_Init_thread_comm(int level, MPI_Comm comm);
int PARMCI_Initialized(void);
int PARMCI_Finalize(void);
int PARMCI_Malloc(void **addresses, armci_size_t bytes);
int PARMCI_Free(void *address);
void *PARMCI_Malloc_local(armci_size_t bytes);
int PARMCI_Free_local(void *address);
int PARMCI_Malloc_memdev(void **addresses, armci_size_t bytes, const char *device);
int PARMCI_Malloc_group_memdev(void **addresses, armci_size_t bytes, ARMCI_Group *group,
                               const char *device);
int PARMCI_Free_memdev(void *address);
void PARMCI_Access_begin(void *address);
void PARMCI_Access_end(void *address);
int PARMCI_Get(void *from, void *to, int bytes, int process);
int PARMCI_Put(void *from, void *to, int bytes, int process);
int PARMCI_Acc(int type, void *scale, void *from, void *to, int bytes, int process);
int PARMCI_PutS(void *from, int from_strides[], void *to, int to_strides[], int count[], int levels,
                int process);
int PARMCI_GetS(void *from, int from_strides[], void *to, int to_strides[], int count[], int levels,
                int process);
int PARMCI_AccS(int type, void *scale, void *from, int from_strides[], void *to, int to_strides[],
                int count[], int levels, int process);
int PARMCI_PutV(armci_giov_t *pieces, int length, int process);
int PARMCI_GetV(armci_giov_t *pieces, int length, int process);
int PARMCI_AccV(int type, void *scale, armci_giov_t *pieces, int length, int process);
int PARMCI_Put_flag(void *from, void *to, int bytes, int *flag, int value, int process);
int PARMCI_PutS_flag(void *from, int from_strides[], void *to, int to_strides[], int count[],
                     int levels, int *flag, int value, int process);
int PARMCI_PutValueInt(int value, void *to, int process);
int PARMCI_PutValueLong(long value, void *to, int process);
int PARMCI_PutValueFloat(float value, void *to, int process);
int PARMCI_PutValueDouble(double value, void *to, int process);
int PARMCI_GetValueInt(void *from, int process);
long PARMCI_GetValueLong(void *from, int process);
float PARMCI_GetValueFloat(void *from, int process);
double PARMCI_GetValueDouble(void *from, int process);
int PARMCI_Rmw(int operation, void *old, void *at, int value, int process);
void PARMCI_Fence(int process);
void PARMCI_AllFence(void);
void PARMCI_Barrier(void);
int PARMCI_NbPut(void *from, void *to, int bytes, int process, armci_hdl_t *handle);
int PARMCI_NbGet(void *from, void *to, int bytes, int process, armci_hdl_t *handle);
int PARMCI_NbAcc(int type, void *scale, void *from, void *to, int bytes, int process,
                 armci_hdl_t *handle);
int PARMCI_NbPutS(void *from, int from_strides[], void *to, int to_strides[], int count[],
                  int levels, int process, armci_hdl_t *handle);
int PARMCI_NbGetS(void *from, int from_strides[], void *to, int to_strides[], int count[],
                  int levels, int process, armci_hdl_t *handle);
int PARMCI_NbAccS(int type, void *scale, void *from, int from_strides[], void *to,
                  int to_strides[], int count[], int levels, int process, armci_hdl_t *handle);
int PARMCI_NbPutV(armci_giov_t *pieces, int length, int process, armci_hdl_t *handle);
int PARMCI_NbGetV(armci_giov_t *pieces, int length, int process, armci_hdl_t *handle);
int PARMCI_NbAccV(int type, void *scale, armci_giov_t *pieces, int length, int process,
                  armci_hdl_t *handle);
int PARMCI_NbPutValueInt(int value, void *to, int process, armci_hdl_t *handle);
int PARMCI_NbPutValueLong(long value, void *to, int process, armci_hdl_t *handle);
int PARMCI_NbPutValueFloat(float value, void *to, int process, armci_hdl_t *handle);
int PARMCI_NbPutValueDouble(double value, void *to, int process, armci_hdl_t *handle);
int PARMCI_Wait(armci_hdl_t *handle);
int PARMCI_Test(armci_hdl_t *handle);
int PARMCI_WaitProc(int process);
int PARMCI_WaitAll(void);
int PARMCI_Create_mutexes(int count);
int PARMCI_Destroy_mutexes(void);
void PARMCI_Lock(int mutex, int process);
void PARMCI_Unlock(int mutex, int process);
void parmci_msg_barrier(void);
void parmci_msg_group_barrier(ARMCI_Group *group);

#ifdef __cplusplus
}
#endif

#include <message.h>

#endif
