// What a rank says when it goes down, and its stack when it is asked: process-wide handlers,
// installed once by the first runtime of a process.
#pragma once

#include <farside/core/context.hpp>
#include <farside/core/detail/bad_address.hpp>

#include <execinfo.h>
#include <signal.h>

#include <cstdio>
#include <exception>
#include <mutex>
#include <string>

namespace far::inline FARSIDE_BACKEND::detail {

/// Whether a fault elsewhere, or memory that is full, explains it.
inline bool is_excusable(const std::exception& e) {
  return dynamic_cast<const rank_failure*>(&e) || dynamic_cast<const allocation_error*>(&e);
}

/// A simulated machine goes on without the rank, if a planned fault explains its end.
template <class Link>
void tell_machine(Link& link, bool excusable) {
  if constexpr (simulates_machine<Link>) link.machine().terminated(link.rank(), excusable);
}

/// Ends the job, as others would wait for what this rank cannot do; `why` stands in its own words.
[[noreturn]] inline void end_job(context& c, const std::string& why, bool excusable) {
  c.slot->say(why.c_str());
  c.slot->state.store(job::rank_state::failed);
  if (!c.launched()) std::fprintf(stderr, "rank %u: %s\n", c.link.rank(), why.c_str());
  std::fflush(nullptr);
  tell_machine(c.link, excusable);
  c.link.abort(why.c_str());
  std::abort();  // never: for compilers, who do not know this of all back ends
}

/// An exception that nobody catches: its message belongs to the rank, on the board and on stderr.
[[noreturn]] inline void on_terminate() {
  std::string why = "std::terminate was called without an exception";
  bool excusable = false;
  if (auto uncaught = std::current_exception()) {
    try {
      std::rethrow_exception(uncaught);
    } catch (const std::exception& e) {
      why = e.what();
      excusable = is_excusable(e);
    } catch (...) {
      why = "an exception that is no std::exception";
    }
  }
  if (current != nullptr) {
    bool told = !current->is_secondary_failure() && current->launched();
    if (told) current->slot->say(why.c_str());
    if (!told)
      std::fprintf(stderr, "rank %u: uncaught exception: %s\n", current->link.rank(), why.c_str());
    tell_machine(current->link, excusable);
  } else {
    std::fprintf(stderr, "uncaught exception: %s\n", why.c_str());
  }
  std::abort();
}

/// SIGQUIT from the launcher: where is this rank? The launcher reads the answer from the board, and
/// finds the names. backtrace() was called once before, so that it need not load anything here.
inline void on_quit(int) {
  context* c = current != nullptr ? current : process_context.load();
  if (c == nullptr || c->slot->frames_ready.load(std::memory_order_relaxed)) return;
  job::slot& s = *c->slot;
  constexpr int most = static_cast<int>(sizeof s.frames / sizeof s.frames[0]);
  void* frames[most];
  int n = backtrace(frames, most);
  for (int i = 0; i < most; ++i)
    s.frames[i] = i < n ? reinterpret_cast<std::uintptr_t>(frames[i]) : 0;
  s.frames_ready.store(1, std::memory_order_release);
}

inline std::once_flag handlers_installed;

inline void install_handlers(bool launched) {
  std::call_once(handlers_installed, [launched] {
    std::set_terminate(on_terminate);
    explain_faults();
    struct sigaction now;
    if (launched && sigaction(SIGQUIT, nullptr, &now) == 0 &&
        (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)) {
      void* frame;
      backtrace(&frame, 1);
      struct sigaction ours = {};
      ours.sa_handler = on_quit;
      ours.sa_flags = SA_RESTART;
      sigaction(SIGQUIT, &ours, nullptr);
    }
  });
}

}  // namespace far::inline FARSIDE_BACKEND::detail
