// How the simulated machine lets ranks go on: see world.hpp.
#pragma once

#include <farside/backend/sim/world.hpp>

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

inline world::world(rank_t nprocs, std::size_t segment)
    : settings_(read_settings(nprocs)),
      segment_(segment),
      stride_((segment + page - 1) / page * page),
      blocks_(nprocs, stride_) {
  void* at = mmap(nullptr, nprocs * stride_, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    raise("cannot map ", nprocs, " segments of ", segment, " bytes: ", std::strerror(errno),
          ". Ask for smaller ones: FARSIDE_SEGMENT=1M.");
  base_ = static_cast<char*>(at);
  ranks_.resize(nprocs);
  arguments_.resize(nprocs);
  for (rank_t r = 0; r < nprocs; ++r) {
    arguments_[r] = {this, r};
    make_runnable(r);
  }
  adversary_ = adversary(settings_);
  trace_ = trace(settings_.trace, settings_.exhaustive != 0);
  running_world = this;
}

inline world::~world() {
  running_world = nullptr;
  munmap(base_, ranks_.size() * stride_);
}

inline int world::run(function_ref<int(rank_t)> body) {
  body_ = &body;
  outcome how;
  bool more = false;
  do {
    reset();
    how = one_run();
    ++tried_;
    if (how != outcome::seen) ++runs_;
    if (settings_.exhaustive == 0) break;
    more = explorer_.next();
  } while (more && tried_ < settings_.exhaustive &&
           (how == outcome::ok || how == outcome::faulted || how == outcome::seen));
  if (how == outcome::seen) how = outcome::ok;
  if (settings_.exhaustive != 0 && !was_explored_ && how == outcome::ok) {
    std::fprintf(stderr,
                 "sim: there was nothing to explore: the program has no far::explored part\n");
    how = outcome::failed;
  }
  how_ = how;
  write_report(!more);
  if (fault_played_ && how == outcome::faulted)
    std::fprintf(stderr, "sim: the planned fault was played; %u of %u ranks finished, %u noticed\n",
                 finished_, nprocs(), noticed_);
  if (failed_ && settings_.report.empty())  // `farside sim` says so itself
    std::fprintf(stderr, "sim: rank %u failed with status %d\n", failed_->first, failed_->second);
  if (how == outcome::deadlock) explain_deadlock();
  if (how == outcome::failed || how == outcome::deadlock || how == outcome::steps)
    unlanded_.show(stderr, failed_ ? std::optional(failed_->first) : std::nullopt);
  if (settings_.exhaustive != 0 && (how == outcome::failed || how == outcome::deadlock)) {
    std::fprintf(stderr, "sim: run %llu fails; its explored part:\n",
                 static_cast<unsigned long long>(runs_));
    trace_.show(stderr);
  }
  if (how == outcome::steps) {
    std::fprintf(stderr,
                 "sim: no end after %llu steps: a rank waits for something that never comes (a put "
                 "without a flush?), or the limit is too low (FARSIDE_SIM_STEPS)\n",
                 static_cast<unsigned long long>(steps_));
    explain_waits();
  }
  return how == outcome::ok || how == outcome::faulted ? 0 : 1;
}

/// As if the process had just started.
inline void world::reset() {
  if (runs_ == 0 && steps_ == 0) return;
  madvise(base_, ranks_.size() * stride_, MADV_DONTNEED);
  runnable_.clear();
  busy_.clear();
  veils_.clear();
  halves_.clear();
  blocks_.reset();
  trace_.forget();
  unlanded_.forget();
  failed_.reset();
  for (rank_t r = 0; r < nprocs(); ++r) {
    fibre kept = std::move(ranks_[r].stack);
    ranks_[r] = rank_state();
    ranks_[r].stack = std::move(kept);
    make_runnable(r);
  }
  adversary_ = adversary(settings_);
  explored_ = fault_played_ = false;
  meeting_ = finished_ = noticed_ = 0;
  dead_ = -1;
  all_steps_ += steps_;
  steps_ = slept_ns_ = allocations_ = written_ = 0;
}

inline outcome world::one_run() {
  for (rank_t r = 0; r < nprocs(); ++r)
    ranks_[r].stack.prepare(stack_bytes(), &rank_main, &arguments_[r]);
  adversary_.begin_step(0);
  running_ = 0;
  fibre::resume(main_, ranks_[0].stack);
  if (ranks_[running_].bound.enter != nullptr) ranks_[running_].bound.enter(nullptr);
  return how_;
}

inline void world::rank_main(void* argument) {
  auto [where, rank] = *static_cast<entry_argument*>(argument);
  where->schedule(rank);  // any rank may be the first
  int status = (*where->body_)(rank);
  where->ended(rank, status);
}

inline void world::ended(rank_t me, int status) {
  if (status == 0) {
    note("rank %-4u ends", me);
    ++finished_;
  } else if (fault_played_ && ranks_[me].excused) {
    note("rank %-4u ends: the fault explains it", me);
    ++noticed_;
    if (dead_ < 0) dead_ = me, dead_at_ = steps_;
  } else {
    note("rank %-4u fails with status %d", me, status);
    failed_.emplace(me, status);
    end_run(outcome::failed);
  }
  make_unrunnable(me, state::finished);
  schedule(me);
  std::abort();  // nobody resumes a rank that has ended
}

/// A destructor could not let an exception out. If a fault explains it, the others go on.
inline void world::terminated(rank_t me, bool excusable) {
  if (!fault_played_ || !excusable) return;
  ranks_[me].excused = true;
  ended(me, 1);
}

inline void world::end_run(outcome how) {
  how_ = how;
  note("the run ends: %s", name_of(how));
  if (body_ == nullptr) {  // a program of one rank that has no far::run around it
    write_report(false);
    std::fprintf(stderr, "sim: the run ends: %s\n", name_of(how));
    std::_Exit(1);
  }
  fibre gone;  // never resumed
  fibre::resume(gone, main_);
  std::abort();
}

inline void world::schedule(rank_t me) {
  for (;;) {
    adversary_.begin_step(++steps_);
    if (steps_ > settings_.step_limit) end_run(outcome::steps);
    play_faults();
    if (steps_ % look_every == 0 && stands_still()) end_run(outcome::deadlock);
    std::optional<rank_t> next;
    if (exploring()) {
      next = explore();
    } else {
      deliver_some();
      if (!runnable_.empty()) next = choose(me);
    }
    if (next) {
      if (*next != me) resume(me, *next);
      return;
    }
    if (!runnable_.empty()) continue;  // something has landed
    if (finished_ + noticed_ + (fault_played_ && settings_.stop ? 1 : 0) == nprocs())
      end_run(fault_played_ ? outcome::faulted : outcome::ok);
    if (deliver_signal()) continue;
    if (dead_ < 0) end_run(outcome::deadlock);
    wake_blocked();
  }
}

inline void world::resume(rank_t me, rank_t next) {
  ++switches_;
  running_ = next;
  const binding& to = ranks_[next].bound;
  if (to.enter != nullptr)
    to.enter(to.context);
  else if (ranks_[me].bound.enter != nullptr)
    ranks_[me].bound.enter(nullptr);
  fibre::resume(ranks_[me].stack, ranks_[next].stack);
}

/// The rank that goes on. Where the adversary does not act, ranks take turns.
inline rank_t world::choose(rank_t me) {
  bool can_stay = ranks_[me].now == state::runnable;
  if (!adversary_.active()) {
    for (rank_t i = 1; i <= nprocs(); ++i) {
      rank_t r = (me + i) % nprocs();
      if (ranks_[r].now == state::runnable) return r;
    }
  }
  const mood& m = adversary_.now();
  auto starved = [&](rank_t r) {
    return m.starves && r == m.starved % nprocs() && runnable_.size() > 1;
  };
  if (can_stay && !starved(me) && !adversary_.happens(m.switches)) return me;
  std::size_t at = adversary_.below(runnable_.size());
  if (starved(runnable_[at])) at = (at + 1) % runnable_.size();
  return runnable_[at];
}

/// Whether a rank would see what it has seen in its last two rounds: a round that polls does nothing
/// but look, and its end may come before what it waits for was looked at. Schedules in which it goes
/// on all the same differ from others by such rounds alone, and there is no end of them.
inline bool world::polls_in_vain(const rank_state& r) const {
  return r.polls && r.idle_rounds >= 2 && r.round_began == written_;
}

/// One action of those that are possible: something lands, or a rank goes on.
inline std::optional<rank_t> world::explore() {
  std::vector<action> enabled;
  std::vector<std::pair<rank_t, std::size_t>> what;  // no index: the rank itself
  for (rank_t r = 0; r < nprocs(); ++r)
    if (ranks_[r].now == state::runnable && !polls_in_vain(ranks_[r])) {
      enabled.push_back({r, ranks_[r].next});
      what.emplace_back(r, no_index);
    }
  for (rank_t r = 0; r < nprocs(); ++r)
    for (std::size_t i = 0; i < ranks_[r].in_flight.size(); ++i) {
      const event& e = *ranks_[r].in_flight[i];
      footprint touches{e.target, e.offset, e.offset + e.bytes, e.what != event::get};
      enabled.push_back({std::uint64_t{1} << 63 | std::uint64_t{r} << 40 | e.number, touches});
      what.emplace_back(r, i);
    }
  if (enabled.empty()) {
    if (!runnable_.empty()) end_run(outcome::deadlock);
    return std::nullopt;
  }
  auto taken = explorer_.pick(enabled);
  if (!taken) end_run(outcome::seen);
  auto [rank, index] = what[*taken];
  if (index == no_index) return rank;
  deliver(rank, index);
  return std::nullopt;
}

/// All ranks come to (or leave) the explored part together. Nothing is in flight then.
inline void world::meet(rank_t me, bool entering) {
  if (settings_.exhaustive == 0) return;
  if (++meeting_ < nprocs()) {
    ranks_[me].meets = true;
    ranks_[me].next = {};
    make_unrunnable(me, state::blocked);
    schedule(me);
    return;
  }
  meeting_ = 0;
  explored_ = entering;
  was_explored_ = true;
  for (rank_t r = 0; r < nprocs(); ++r)
    if (std::exchange(ranks_[r].meets, false)) make_runnable(r);
  yield(me);
}

inline void world::play_faults() {
  if (settings_.stop && !fault_played_ && steps_ >= settings_.stop->second) {
    rank_t victim = settings_.stop->first;
    if (ranks_[victim].now == state::finished) {
      settings_.stop.reset();  // it was faster
    } else {
      fault_played_ = true;
      stop(victim);
    }
  }
  if (dead_ >= 0 && steps_ > dead_at_ + patience) {
    note("the launcher ends the job");
    end_run(outcome::faulted);
  }
}

/// The rank stops for good. What it had in flight lands or is lost.
inline void world::stop(rank_t rank) {
  note("rank %-4u stops for good", rank);
  make_unrunnable(rank, state::dead);
  ranks_[rank].until = nullptr;  // nothing that lands wakes it
  dead_ = rank;
  dead_at_ = steps_;
  events had = ranks_[rank].in_flight;
  for (auto& e : had) {
    auto& left = ranks_[rank].in_flight;
    auto at = std::find(left.begin(), left.end(), e);
    bool lost = adversary_.happens(128);
    // A source that still lies with the rank can be read no later than now.
    if (at == left.end() || (!lost && e->source == nullptr)) continue;
    auto index = static_cast<std::size_t>(at - left.begin());
    if (lost)
      take_out(rank, index);
    else
      deliver(rank, index);
  }
  lift_veils(rank);
}

inline void world::make_runnable(rank_t rank) {
  rank_state& r = ranks_[rank];
  r.now = state::runnable;
  r.place = runnable_.size();
  runnable_.push_back(rank);
}

inline void world::make_unrunnable(rank_t rank, state now) {
  rank_state& r = ranks_[rank];
  if (r.now == state::runnable) {
    runnable_[r.place] = runnable_.back();
    ranks_[runnable_.back()].place = r.place;
    runnable_.pop_back();
  }
  r.now = now;
}

/// Ranks that wait look around: a rank has died.
inline void world::wake_blocked() {
  steps_ = std::max(steps_, dead_at_ + grace + 1);
  for (rank_t r = 0; r < nprocs(); ++r)
    if (ranks_[r].now == state::blocked) make_runnable(r);
  if (runnable_.empty()) end_run(outcome::faulted);
}

inline bool world::allocation_fails() {
  if (++allocations_ != settings_.fail_allocation) return false;
  fault_played_ = true;
  note("an allocation fails, as planned");
  return true;
}

/// Whether every rank waits for something that only others could bring, while they do the same:
/// nothing is in flight, no word has changed since the last look, and each rank that polls has done
/// so often since, and says that it still waits for the same.
inline bool world::stands_still() {
  constexpr std::uint64_t often = 64;
  bool changed = std::exchange(changes_seen_, changes_) != changes_;
  bool still = !changed && busy_.empty() && !exploring() && dead_ < 0;
  bool looked = true;
  for (rank_state& r : ranks_) {
    if (r.now != state::runnable) continue;
    std::uint64_t stands = r.bound.stands == nullptr || r.bound.context == nullptr
                               ? 0
                               : r.bound.stands(r.bound.context);
    if (stands == 0 || stands != r.stands || changed) still = false;
    if (r.turns < r.stands_turns + often) looked = false;
    if (stands != r.stands || changed) r.stands_turns = r.turns;
    r.stands = stands;
  }
  return still && looked;
}

inline void world::explain_deadlock() const {
  for (const rank_state& s : ranks_)
    if (s.bound.explain != nullptr) {
      std::string why = s.bound.explain();
      if (!why.empty()) std::fprintf(stderr, "sim: %s\n", why.c_str());
      break;
    }
  std::fprintf(stderr, "sim: every rank waits, and nothing is in flight:\n");
  explain_waits();
}

inline void world::explain_waits() const {
  for (rank_t r = 0; r < std::min<rank_t>(nprocs(), 20); ++r) {
    const rank_state& s = ranks_[r];
    std::string why = "ended";
    if (s.now == state::dead) why = "stopped";
    if (s.now == state::blocked || s.now == state::runnable)
      why = "waits for " + (s.bound.describe && s.bound.context ? s.bound.describe(s.bound.context)
                                                                : "the others");
    std::fprintf(stderr, "  rank %u: %s\n", r, why.c_str());
  }
}

inline void world::write_report(bool complete) {
  if (settings_.report.empty()) return;
  std::FILE* out = std::fopen(settings_.report.c_str(), "w");
  if (out == nullptr) return;
  auto wide = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::fprintf(out,
               "outcome=%s steps=%llu operations=%llu deliveries=%llu switches=%llu "
               "allocations=%llu runs=%llu complete=%d failed_rank=%llu failed_status=%d\n",
               name_of(how_), wide(all_steps_ + steps_), wide(operations_), wide(deliveries_),
               wide(switches_), wide(allocations_), wide(runs_),
               settings_.exhaustive != 0 && complete, wide(failed_ ? failed_->first : 0),
               failed_ ? failed_->second : 0);
  std::fclose(out);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend
