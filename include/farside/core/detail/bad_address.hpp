// Where segments are mapped, the CPU notices far pointers that are null or lead out of a segment:
// the first bytes of each segment (null_guard) and what lies behind its end are inaccessible. This
// handler turns the fault into a sentence, and then lets happen what would have happened without
// it: a handler that the program or its MPI has installed is called, or the process ends by the
// signal.
#pragma once

#include <farside/core/context.hpp>

#include <execinfo.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace far::inline FARSIDE_BACKEND::detail {

/// Whether the access that failed was a store; -1 if this CPU does not tell.
inline int fault_was_a_store([[maybe_unused]] void* machine) {
#if defined(__x86_64__)
  auto* state = static_cast<ucontext_t*>(machine);
  return (state->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#elif defined(__aarch64__)
  // The kernel appends records {magic, size, ...}; that of the syndrome register says it.
  auto* state = static_cast<ucontext_t*>(machine);
  auto* at = reinterpret_cast<const char*>(state->uc_mcontext.__reserved);
  for (const char* end = at + sizeof state->uc_mcontext.__reserved; at + 16 <= end;) {
    std::uint32_t magic, size;
    std::memcpy(&magic, at, 4);
    std::memcpy(&size, at + 4, 4);
    if (magic == 0 || size == 0) break;
    if (magic == 0x45535201) {
      std::uint64_t syndrome;
      std::memcpy(&syndrome, at + 8, 8);
      return static_cast<int>(syndrome >> 6 & 1);
    }
    at += size;
  }
  return -1;
#else
  return -1;
#endif
}

/// Says which far pointer led to this address, if one did. Nothing here allocates or locks.
template <class Context>
void explain_fault([[maybe_unused]] Context& c, [[maybe_unused]] const void* address,
                   [[maybe_unused]] int store) {
  if constexpr (maps_segments<decltype(c.link)>) {
    auto segments = c.link.segments();
    if (!segments) return;
    auto* base = static_cast<const char*>(segments.address(0, 0));
    auto apart = static_cast<std::size_t>(static_cast<const char*>(segments.address(1, 0)) - base);
    auto* at = static_cast<const char*>(address);
    if (at < base) return;
    auto distance = static_cast<std::size_t>(at - base);
    std::size_t rank = distance / apart, offset = distance % apart;
    std::size_t segment = c.link.segment_size();
    const rank_t nprocs = c.link.nprocs();
    if (rank > nprocs && !(segments.is_fixed() && rank < max_ranks)) return;
    if (rank < nprocs && offset >= null_guard && offset < segment) return;  // another mistake
    char why[160];
    if (rank == 0 && offset < null_guard)
      std::snprintf(why, sizeof why, "the far pointer is null%s", offset == 0 ? "" : ", or nearly");
    else if (offset < null_guard && rank > 0 && rank <= nprocs && segment == apart)
      std::snprintf(why, sizeof why,
                    "that is beyond the end of the segment of rank %zu, or a pointer that was "
                    "never set",
                    rank - 1);
    else if (rank >= nprocs)
      std::snprintf(why, sizeof why, "there is no such rank");
    else if (offset < null_guard)
      std::snprintf(why, sizeof why, "nothing lies there: the pointer was never set");
    else
      std::snprintf(why, sizeof why, "it reaches beyond the end of that rank's segment");
    char text[600];
    int length = std::snprintf(
        text, sizeof text,
        "rank %u: %s at %zu:0x%zx of %u ranks with segments of %zu bytes: %s. Use pointers from "
        "far::alloc, far::make or far::alloc_on, within what was allocated.",
        c.link.rank(),
        store < 0    ? "an access (get, put or atomic)"
        : store != 0 ? "a write (put or atomic)"
                     : "a read (get or atomic)",
        rank, offset, nprocs, segment, why);
    c.slot->say(text);
    if (length > 0 && write(2, "farside: ", 9) == 9 && write(2, text, std::strlen(text)) > 0 &&
        write(2, "\nstack:\n", 8) == 8) {
      void* frames[48];
      backtrace_symbols_fd(frames, backtrace(frames, 48), 2);
    }
  }
}

/// What SIGSEGV did before. Static: there is one of each signal in a process.
inline struct sigaction fault_before = {};

inline void on_fault(int number, siginfo_t* what, void* machine) {
  const bool by_cpu = what->si_code > 0;
  context* c = current != nullptr ? current : process_context.load(std::memory_order_acquire);
  if (by_cpu && c != nullptr) explain_fault(*c, what->si_addr, fault_was_a_store(machine));
  // Once: the instruction is tried again on return, and fails again, as if there were no handler.
  sigaction(number, &fault_before, nullptr);
  if (!by_cpu) ::raise(number);  // somebody has sent it: it comes when this handler returns
}

/// Called once a process, by its first runtime.
inline void explain_faults() {
  void* frame;
  backtrace(&frame, 1);  // loads what it needs, so that it need not do so in a handler
  struct sigaction ours = {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  if (sigaction(SIGSEGV, nullptr, &fault_before) == 0) sigaction(SIGSEGV, &ours, nullptr);
}

}  // namespace far::inline FARSIDE_BACKEND::detail
