#pragma once

namespace armci {

/// The mutexes of ARMCI_Create_mutexes go with the library.
void forget_mutexes();

}  // namespace armci
