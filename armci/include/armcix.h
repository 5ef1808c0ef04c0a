/* What ARMCI-MPI has beyond ARMCI. */
#ifndef FARSIDE_ARMCIX_H
#define FARSIDE_ARMCIX_H

#include <armci.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Collective over the parent: a group for each colour, ordered by key. A negative one joins none. */
int ARMCIX_Group_split(ARMCI_Group *parent, int colour, int key, ARMCI_Group *group);
int ARMCIX_Group_dup(ARMCI_Group *parent, ARMCI_Group *group);

/* Sets of mutexes, each over a group. Processes are ranks in the group. */
typedef struct armcix_mutex_hdl_s *armcix_mutex_hdl_t;

armcix_mutex_hdl_t ARMCIX_Create_mutexes_hdl(int count, ARMCI_Group *group);
int ARMCIX_Destroy_mutexes_hdl(armcix_mutex_hdl_t set);
void ARMCIX_Lock_hdl(armcix_mutex_hdl_t set, int mutex, int process);
/* 0 if this process has it now. */
int ARMCIX_Trylock_hdl(armcix_mutex_hdl_t set, int mutex, int process);
void ARMCIX_Unlock_hdl(armcix_mutex_hdl_t set, int mutex, int process);

void ARMCIX_Progress(void);

#ifdef __cplusplus
}
#endif

#endif
