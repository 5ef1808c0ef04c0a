// Operations that have begun: by explicit handles, which name them by a number, or by none.
#pragma once

#include "library.hpp"

namespace armci {

/// Keeps an operation until the handle is waited for; or, with no handle, until its process is.
/// `handle` has the right form.
void keep(far::future<void> operation, int process, armci_hdl_t* handle);

/// A handle that an operation is about to begin with. What it stood for before is complete then,
/// unless it is an aggregate one.
void begin_with(armci_hdl_t* handle);

/// All that is under way.
void finish_handles();

}  // namespace armci
