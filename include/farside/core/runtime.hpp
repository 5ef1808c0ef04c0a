// far::runtime: the library is in use while it lives.
#pragma once

#include <farside/base/environment.hpp>
#include <farside/base/verdict.hpp>
#include <farside/core/collectives.hpp>
#include <farside/core/detail/crash_report.hpp>
#include <farside/core/detail/report.hpp>
#include <farside/core/detail/standard_streams.hpp>
#include <farside/core/memory.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

/// Whether all ranks take turns on one thread.
inline bool ranks_are_simulated() {
#if defined(FARSIDE_USE_ANY)
  const any_backend::carrier* by = any_backend::chosen_carrier();
  return by != nullptr && by->simulated;
#elif defined(FARSIDE_USE_SIM)
  return true;
#else
  return false;
#endif
}

inline attention chosen_attention(std::optional<attention> wanted) {
  attention result = wanted.value_or(attention::poll);
  if (auto name = setting("FARSIDE_ATTENTION"); name && !wanted) {
    if (*name == "thread")
      result = attention::thread;
    else if (*name == "rank")
      result = attention::rank;
    else if (*name != "poll")
      raise("environment variable FARSIDE_ATTENTION='", *name,
            "' names nobody who could serve messages. Set it to poll or thread.");
  }
  if (result == attention::rank)
    raise(
        "attention by rank was asked for, but no process of this job could serve the messages of "
        "others: handlers are free to use the memory of their own rank, which no other process "
        "has. Use FARSIDE_ATTENTION=thread (far::attention::thread), which serves ranks that "
        "compute, or poll.");
  if (result == attention::thread && ranks_are_simulated())
    raise(
        "attention by thread was asked for, but simulated ranks take turns on one thread, so that "
        "a seed repeats a run. Use FARSIDE_ATTENTION=poll (far::attention::poll) here.");
  return result;
}

}  // namespace detail

/// Collective over all ranks of the job, made once at the beginning of main; its end is
/// collective too. When an exception leaves its scope it does not communicate (nobody might
/// answer): the rank counts as failed, and the launcher ends the job.
class runtime {
 public:
  struct options {
    thread_level threads = thread_level::single;
    std::size_t segment = 0;  ///< bytes a rank; 0: FARSIDE_SEGMENT, or what the back end finds best
    /// What serves messages. Empty: FARSIDE_ATTENTION (poll, thread), or poll. `thread` makes the
    /// runtime one for thread_level::multiple.
    std::optional<far::attention> attention{};
    bool may_keep_processes = false;  ///< of a program that has started MPI: docs/mpi_progress.md
  };

  /// Collective over all ranks of the job: returns when all segments are there. 1 barrier.
  /// Transports may take arguments of their own out of `argv`.
  runtime(int& argc, char**& argv, options with) { start(begin(&argc, &argv, with)); }
  runtime(int& argc, char**& argv) : runtime(argc, argv, options()) {}
  explicit runtime(options with) { start(begin(nullptr, nullptr, with)); }
  runtime() : runtime(options()) {}
#if defined(FARSIDE_USE_MPI)
  /// Inside a program that uses MPI: the ranks are those of `over`, in its order. MPI is neither
  /// initialised nor finalised here if the program has done so. Collective over `over`. 1 barrier.
  explicit runtime(MPI_Comm over, options with) { start(begin(nullptr, nullptr, with), over); }
  explicit runtime(MPI_Comm over) : runtime(over, options()) {}
#endif

  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;
  /// Collective: waits until all ranks are here, and serves them meanwhile. Costs a few collectives.
  ~runtime();

  /// Says why this rank is about to fail. True: a launcher hears it, and prints it. Local; no
  /// communication.
  bool fail(const char* why) {
    context_->tell_names();
    if (context_->is_secondary_failure()) return false;
    context_->slot->say(why);
    return context_->launched();
  }

 private:
  /// Hands the words of a far::refusal to the launcher; false if there is none.
  bool refuse(const char* why) {
    context_->slot->say(why);
    end_as_ = detail::job::rank_state::refused;
    return context_->launched();
  }

  template <class Body>
  friend int run_with(int argc, char** argv, Body& body, runtime::options with);
  /// A tag first: a user's `far::runtime world({.threads = ...})` must find one constructor only.
  runtime(std::in_place_t, const detail::start_options& start_with) { start(start_with); }

  static detail::start_options begin(int* argc, char*** argv, options with) {
    detail::keep_standard_streams();
    detail::start_options result;
    result.argc = argc;
    result.argv = argv;
    result.threads = with.threads;
    result.segment = with.segment;
    result.attention = with.attention;
    result.may_keep_processes = with.may_keep_processes;
    return result;
  }

  template <class... More>
  void start(detail::start_options start_with, const More&... more);
  void attach_board(detail::context& c, bool as_thread);

  std::unique_ptr<detail::context> context_;
  int unwinding_ = std::uncaught_exceptions();
  detail::job::rank_state end_as_ =
      detail::job::rank_state::failed;  ///< when an exception leaves its scope
  detail::job::leaving how_it_ends_ = detail::job::leaving::runtime;
};

namespace detail {

/// The contexts of simulated ranks, by rank: all are in this process.
inline std::vector<context*> simulated_ranks;

inline detail::job::slots simulated_slots() {
  detail::job::slots result;
  for (context* c : simulated_ranks) {
    if (c == nullptr) return {};  // it has ended, or not begun
    c->tell_names();
    result.push_back(c->slot);
  }
  return result;
}

/// Why the simulated ranks cannot go on; empty if that is not known.
inline std::string explain_simulated() {
  detail::job::slots ranks = simulated_slots();
  if (ranks.empty()) return "";
  std::string why = detail::job::different_calls(ranks);
  if (why.empty()) why = detail::job::others_have_left(ranks);
  return why.empty() ? "" : why + ". " + detail::job::same_collectives;
}

/// A rank has entered a collective of all ranks: those that have entered one of the same number
/// must have called the same.
inline void compare_simulated(context& c, std::uint64_t number) {
  detail::job::said_call mine = detail::job::call_of(*c.slot, number);
  for (context* other : simulated_ranks) {
    if (other == nullptr || other == &c) continue;
    detail::job::said_call theirs = detail::job::call_of(*other->slot, number);
    if (theirs.number != number || theirs.name == mine.name) continue;
    c.tell_names();
    other->tell_names();
    rank_t first = std::min(c.link.rank(), other->link.rank());
    context& a = first == c.link.rank() ? c : *other;
    context& b = &a == &c ? *other : c;
    raise("rank ", a.link.rank(), " calls ", detail::job::call_of(*a.slot, number).text(),
          ", rank ", b.link.rank(), " calls ", detail::job::call_of(*b.slot, number).text(), ". ",
          detail::job::same_collectives);
  }
}

/// A simulated machine runs many ranks on one thread: it must know whose context is current.
template <class Context, class Link>
void bind_to_machine(Link& link, Context* c) {
  if constexpr (simulates_machine<Link>) {
    auto describe = [](void* of) {
      auto* rank = static_cast<Context*>(of);
      rank->tell_names();
      return detail::job::describe_wait_fully(*rank->slot);
    };
    auto stands = [](void* of) -> std::uint64_t {
      detail::job::slot& s = *static_cast<Context*>(of)->slot;
      std::uint64_t since = s.waits_since;
      return since == 0 ? 0 : (since ^ s.activity * 0x9e3779b97f4a7c15u) | 1;
    };
    if (ranks_are_simulated()) {
      simulated_ranks.resize(link.nprocs());
      if (c != nullptr && simulated_ranks[link.rank()] != nullptr)  // of a run that was given up
        std::fill(simulated_ranks.begin(), simulated_ranks.end(), nullptr);
      simulated_ranks[link.rank()] = c;
      if (c != nullptr) c->compares_calls = compare_simulated;
    }
    link.machine().bind(link.rank(), {c, [](void* of) { set_current(static_cast<Context*>(of)); },
                                      describe, stands, explain_simulated});
  }
}

}  // namespace detail

namespace detail {

/// Checked builds: what nobody has freed. All user code has ended on all ranks.
inline void report_leaks([[maybe_unused]] context& c) {
#if FARSIDE_CHECKED
  std::lock_guard lock(c.mutex);
  collect_freed(c);
  if (std::string left = c.sites.report(); !left.empty())
    std::fprintf(stderr,
                 "farside: rank %u: %sGive it back with far::dealloc when it is not needed.\n",
                 c.link.rank(), left.c_str());
#endif
}

}  // namespace detail

template <class... More>
void runtime::start(detail::start_options start_with, const More&... more) {
  if (detail::current != nullptr || detail::process_context.load() != nullptr)
    detail::raise(
        "a second far::runtime was made while the first one lives. One is enough: it serves the "
        "whole process.");
  auto target = detail::setting("FARSIDE_STATS");
  if (target == "0") target.reset();
  attention attends = detail::chosen_attention(start_with.attention);
  if (attends == attention::thread) start_with.threads = thread_level::multiple;
  context_ = std::make_unique<detail::context>(start_with.threads, start_with, more...);
  detail::context& c = *context_;
  c.attends = attends;
  bool as_thread = start_with.shared_job != nullptr;
  attach_board(c, as_thread);
  detail::set_current(&c);
  detail::bind_to_machine(c.link, &c);
  if (!as_thread) detail::process_context.store(&c, std::memory_order_release);
  c.world->phase = detail::job::waiting::starting;
  detail::synchronize(c, *c.world);  // all segments are there
  c.service();                       // from now on messages are served
  if (target) {
    c.stats_target = *target;
    stats::enable();
  }
}

inline void runtime::attach_board(detail::context& c, bool as_thread) {
  detail::job::board* board = nullptr;
  if (auto path = detail::setting(detail::job::board_variable))
    board = detail::job::board::open(path->c_str());
  detail::install_handlers(board != nullptr);
  if (board != nullptr) {
    auto index = as_thread
                     ? c.link.rank()
                     : detail::integer_setting(detail::job::slot_variable, 0, board->slots - 1)
                           .value_or(c.link.rank());
    c.use_slot((*board)[static_cast<std::size_t>(index)]);
  }
  c.slot->rank.store(c.link.rank());
  c.slot->world.store(c.link.nprocs());
  c.slot->waits.store({});
  c.slot->left.store(detail::job::leaving::no);
  c.slot->threads.store(c.threads == thread_level::multiple);
  c.slot->pid.store(static_cast<std::uint32_t>(getpid()));
  c.slot->state.store(detail::job::rank_state::running);
}

inline runtime::~runtime() {
  if (!context_) return;
  detail::context& c = *context_;
  if (std::uncaught_exceptions() > unwinding_) {
    fail("an exception left the scope of its far::runtime");
    if (!c.is_secondary_failure()) c.slot->state.store(end_as_);
    if (auto* post = c.messages.load()) post->stop();
    c.values.end();
    detail::end_containers(c);
    detail::bind_to_machine<detail::context>(c.link, nullptr);
    detail::set_current(nullptr);
    detail::process_context.store(nullptr);
    // Others may still reach into its memory: it stays until the process ends.
    static_cast<void>(context_.release());
    return;
  }
  try {
    detail::wait_marker note(c, detail::job::waiting::ending);
    detail::message_service* post = c.service();
    c.tell_names();
    c.slot->left.store(how_it_ends_, std::memory_order_release);
    c.world->phase = detail::job::waiting::ending;
    detail::leave_together(c, *c.world);
    if (post != nullptr) post->finish();
    c.world->phase = detail::job::waiting::ending;
    detail::synchronize(c, *c.world);
    c.values.end();
    if (post != nullptr) post->stop();
    detail::report_statistics(c);
    c.world->phase = detail::job::waiting::ending;
    detail::synchronize(c, *c.world);
    detail::end_containers(c);
    detail::report_leaks(c);
    c.slot->state.store(detail::job::rank_state::finished);
    c.link.finish();
  } catch (const std::exception& e) {
    if (!fail(e.what())) std::fprintf(stderr, "rank %u: %s\n", c.link.rank(), e.what());
    detail::tell_machine(c.link, detail::is_excusable(e));
    c.link.abort(e.what());
  }
  detail::bind_to_machine<detail::context>(c.link, nullptr);
  detail::set_current(nullptr);
  detail::process_context.store(nullptr);
}

/// Runs `body` on every rank and returns the program's exit status: main in one line. Ranks may
/// then also be threads of one process (FARSIDE_THREADS=N on smp). `body` takes nothing or
/// (argc, argv), and returns nothing or an exit status. An exception that leaves it is printed
/// with the rank's number and ends the job; a far::refusal is printed as it is, once. Collective
/// over all ranks of the job; costs what a far::runtime does.
template <class Body>
int run(int argc, char** argv, Body body, runtime::options with) {
  return run_with(argc, argv, body, with);
}
template <class Body>
int run(int argc, char** argv, Body body) {
  return run_with(argc, argv, body, runtime::options());
}

namespace detail {

template <class Body>
int call_body(Body& body, int argc, char** argv) {
  auto call = [&] {
    if constexpr (std::is_invocable_v<Body&, int, char**>)
      return body(argc, argv);
    else
      return body();
  };
  if constexpr (std::is_void_v<decltype(call())>)
    return call(), 0;
  else
    return static_cast<int>(call());
}

}  // namespace detail

namespace detail {

/// A rank that has refused waits for the launcher to end the job: were it gone before, others
/// might notice and complain. The launcher needs a tenth of a second; if it is gone, so are we.
inline void await_end() { std::this_thread::sleep_for(std::chrono::seconds(5)); }

}  // namespace detail

/// The body of far::run, for the library. Collective; costs what a far::runtime does.
template <class Body>
int run_with(int argc, char** argv, Body& body, runtime::options with) {
  auto one_rank = [&](const detail::start_options& start_with) {
    std::string name = "a rank that did not start";
    bool told = false;
    try {
      runtime world(std::in_place, start_with);
      world.how_it_ends_ = detail::job::leaving::far_run;
      name = text("rank ", rank());
      try {
        return detail::call_body(body, argc, argv);
      } catch (const refusal& e) {
        told = world.refuse(e.what());
        throw;
      } catch (const std::exception& e) {
        told = world.fail(e.what());
        throw;
      }
    } catch (const refusal& e) {
      if (told)
        detail::await_end();
      else
        std::fprintf(stderr, "%s\n", e.what());
    } catch (const std::exception& e) {
#if defined(FARSIDE_USE_SIM)
      if (detail::is_excusable(e))
        static_cast<detail::sim_backend::world*>(start_with.shared_job)
            ->excuse(start_with.thread_rank);
#elif defined(FARSIDE_USE_ANY)
      if (detail::is_excusable(e) && detail::ranks_are_simulated())
        detail::any_backend::chosen_carrier()->excuse(start_with);
#endif
      if (!told) std::fprintf(stderr, "%s: %s\n", name.c_str(), e.what());
    } catch (...) {
      std::fprintf(stderr, "%s: an exception that is no std::exception\n", name.c_str());
    }
    return 1;
  };
#if defined(FARSIDE_USE_SIM)
  try {
    detail::start_options shared = runtime::begin(&argc, &argv, with);
    rank_t nprocs = detail::sim_backend::chosen_nprocs();
    detail::sim_backend::world machine(nprocs, detail::sim_backend::choose_segment(shared, nprocs));
    return machine.run([&](rank_t r) {
      detail::start_options mine = shared;
      mine.shared_job = &machine;
      mine.thread_rank = r;
      return one_rank(mine);
    });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
#elif !defined(FARSIDE_USE_MPI) && !defined(FARSIDE_USE_SHMEM)
  try {
#if defined(FARSIDE_USE_ANY)
    if (const auto* by = detail::any_backend::chosen_carrier())
      return by->run != nullptr ? by->run(runtime::begin(&argc, &argv, with), one_rank)
                                : one_rank(runtime::begin(&argc, &argv, with));
#endif
    if (auto count = detail::integer_setting(detail::job::threads_variable, 1, 1 << 19)) {
      auto nprocs = static_cast<rank_t>(*count);
      detail::start_options shared = runtime::begin(&argc, &argv, with);
      detail::smp_backend::thread_job job(nprocs, shared);
      std::vector<int> results(nprocs);
      std::vector<std::thread> threads;
      for (rank_t r = 0; r < nprocs; ++r)
        threads.emplace_back([&, r] {
          detail::start_options mine = shared;
          mine.shared_job = &job;
          mine.thread_rank = r;
          results[r] = one_rank(mine);
          if (results[r] != 0) {  // the other threads may wait for this one for ever
            std::fflush(nullptr);
            std::_Exit(results[r]);
          }
        });
      for (auto& thread : threads) thread.join();
      return 0;
    }
  } catch (const std::exception& e) {  // a setting that cannot be: ranks speak for themselves
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
#endif
  return one_rank(runtime::begin(&argc, &argv, with));
}

}  // namespace far::inline FARSIDE_BACKEND
