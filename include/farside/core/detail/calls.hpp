// Which collective a rank is in, in the words of its user: the name of what was called and the
// place in the source. Only the outermost call counts: a container's constructor is one call,
// whatever collectives it is made of.
//
// The cost of a call is a few stores to the rank's own slot of the board, where the launcher reads
// them (base/verdict.hpp). Names of files are copied only when the rank waits for long.
#pragma once

#include <farside/core/context.hpp>

#include <cstdio>
#include <cstring>
#include <mutex>
#include <source_location>

namespace far::inline FARSIDE_BACKEND::detail {

/// The name of a collective, as long as the slot has room for; longer ones are cut.
struct call_name {
  char text[sizeof(job::called::name)] = {};

  template <std::size_t N>
  consteval call_name(const char (&name)[N]) {
    static_assert(N <= sizeof text);
    for (std::size_t i = 0; i < N; ++i) text[i] = name[i];
  }
  call_name(const char* kind, const char* suffix) {
    std::snprintf(text, sizeof text, "%s%s", kind, suffix);
  }
};

/// A name that lives for ever.
template <call_name Name>
inline constexpr const call_name& named = Name;

/// Says, as long as it lives, that this rank is in a collective over `t`; nothing inside another.
/// `name` lives as long, or is a template's argument. A place without a line is not known.
class calls {
 public:
  calls(context& c, const team_members& t, const call_name& name, std::source_location at) : c_(c) {
    // A handler may not wait: what it calls is refused (check_may_wait), and must not count here, as
    // others call nothing.
    if (is_in_handler(c)) return;
    std::atomic<bool>& inside = c.inside_call();
    if (inside.load(std::memory_order_relaxed)) return;
    outermost_ = true;
    inside.store(true, std::memory_order_relaxed);
    std::lock_guard lock(c.mutex);
    job::slot& s = *c.slot;
    c.call_name = name.text;
    c.call_file = at.line() != 0 ? at.file_name() : "";
    c.call_line = at.line();
    // One thread at a time makes collectives of a team: plain additions lose nothing that matters.
    s.collectives.store(s.collectives.load(std::memory_order_relaxed) + 1,
                        std::memory_order_relaxed);
    if (&t != c.world.get()) return;
    std::uint64_t number = s.entered.load(std::memory_order_relaxed) + 1;
    job::called& entry = s.calls[number % job::kept_calls];
    // Relaxed: a reader believes the entry only when it finds the same a while later.
    entry.number.store(0, std::memory_order_relaxed);
    std::memcpy(entry.name, name.text, sizeof entry.name);
    entry.file[0] = '\0';
    entry.line = at.line();
    c.call_files[number % job::kept_calls] = c.call_file;
    entry.number.store(number, std::memory_order_release);
    s.entered.store(number, std::memory_order_release);
    s.inside.store(number, std::memory_order_relaxed);
    if (c.simulated()) compare(number);
  }
  ~calls() {
    if (outermost_) end();
  }
  calls(const calls&) = delete;

 private:
  /// Throws if other ranks have called something else.
  void compare(std::uint64_t number) {
    try {
      c_.compare_calls(number);
    } catch (...) {
      end();
      throw;
    }
  }
  void end() {
    std::lock_guard lock(c_.mutex);
    c_.call_name = nullptr;
    c_.slot->inside.store(0, std::memory_order_relaxed);
    c_.inside_call().store(false, std::memory_order_relaxed);
  }

  context& c_;
  bool outermost_ = false;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
