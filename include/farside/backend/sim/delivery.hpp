// How operations that are in flight take effect on the simulated memory, and what a read sees of
// them: see world.hpp. The adversary chooses which of them lands next.
#pragma once

#include <farside/backend/sim/freed.hpp>
#include <farside/backend/sim/schedule.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

inline void world::deliver_some() {
  if (!adversary_.active()) {
    while (deliver_any()) {
    }
    return;
  }
  for (int i = 0; i < 8 && !busy_.empty() && adversary_.happens(adversary_.now().delivers); ++i)
    deliver_any();
}

/// Something must land so that a rank can go on: a signal, and puts stay in flight.
inline bool world::deliver_signal() {
  if (busy_.empty()) return false;
  if (adversary_.active() && adversary_.happens(192)) {
    std::size_t first = adversary_.below(busy_.size());
    for (std::size_t i = 0; i < busy_.size(); ++i) {
      rank_t origin = busy_[(first + i) % busy_.size()];
      auto& flying = ranks_[origin].in_flight;
      for (std::size_t at = 0; at < flying.size(); ++at)
        if (flying[at]->what == event::signal) {
          deliver(origin, at);
          return true;
        }
    }
  }
  return deliver_any();
}

inline bool world::deliver_any() {
  if (busy_.empty()) return false;
  rank_t origin = busy_[adversary_.active() ? adversary_.below(busy_.size()) : 0];
  auto& flying = ranks_[origin].in_flight;
  deliver(origin, adversary_.active() ? adversary_.below(flying.size()) : 0);
  return true;
}

inline std::shared_ptr<event> world::take_out(rank_t origin, std::size_t index) {
  rank_state& r = ranks_[origin];
  auto e = std::move(r.in_flight[index]);
  if (adversary_.active() && !exploring()) {
    if (index + 1 != r.in_flight.size()) r.in_flight[index] = std::move(r.in_flight.back());
    r.in_flight.pop_back();
  } else {
    r.in_flight.erase(r.in_flight.begin() + static_cast<std::ptrdiff_t>(index));  // keeps the order
  }
  if (r.in_flight.empty()) {
    busy_[r.busy_place] = busy_.back();
    ranks_[busy_.back()].busy_place = r.busy_place;
    busy_.pop_back();
  }
  return e;
}

inline void world::perform(event& e) {
  ++deliveries_;
  ++changes_;
  written_ += e.what != event::get;
  e.performed = true;
  if (auto& until = ranks_[e.origin].until; until && until()) {
    until = nullptr;
    make_runnable(e.origin);
  }
  char* at = memory(e.target, e.offset);
  check_landing(e);
  note("           #%llu of rank %u %s: %zu B on rank %u +0x%zx",
       static_cast<unsigned long long>(e.number), e.origin,
       e.what == event::put      ? "lands"
       : e.what == event::signal ? "counts"
                                 : "is performed",
       e.bytes, e.target, e.offset);
  switch (e.what) {
    case event::put:
      if (!halves_.empty()) land_halves(e.target, e.offset, e.offset + e.bytes, &e);
      if (e.source != nullptr && e.change) e.data.assign(e.source, e.source + e.bytes);
      if (e.change) {
        lift_veils(e.target, e.offset, e.offset + e.bytes);
        e.change(at, e.data.data());
      } else {
        std::memcpy(at, e.source != nullptr ? e.source : e.data.data(), e.bytes);
      }
      if (auto other = e.other_half.lock(); other && !other->performed) halves_.push_back(other);
      break;
    case event::get:
      e.data.resize(e.bytes);
      read(e.origin, e.target, e.offset, e.data.data(), e.bytes);
      break;
    case event::atomic:
      lift_veils(e.target, e.offset, e.offset + e.bytes);
      e.data.resize(e.bytes);
      e.change(at, e.data.data());
      break;
    case event::signal: {
      std::uint64_t word;
      std::memcpy(&word, at, sizeof word);
      word += 2;
      std::memcpy(at, &word, sizeof word);
      rank_state& r = ranks_[e.target];
      if (r.now == state::blocked && !r.meets && !r.until && r.awaited_word == e.offset &&
          word >> 1 >= r.awaited_count)
        make_runnable(e.target);
      break;
    }
  }
}

/// Nobody sees half a word: what is missing of it lands first. Another put of the same rank must
/// not come between the halves either; one of another rank may (`cause`: the put that lands).
inline void world::land_halves(rank_t target, std::size_t begin, std::size_t end,
                               const event* cause) {
  std::size_t first = begin / 8 * 8, last = (end + 7) / 8 * 8;
  for (std::size_t i = 0; i < halves_.size();) {
    auto e = halves_[i];
    auto& flying = ranks_[e->origin].in_flight;
    auto at = std::find(flying.begin(), flying.end(), e);
    bool stays =
        !e->overlaps(target, first, last) || (cause != nullptr && cause->origin != e->origin);
    if (at != flying.end() && stays) {
      ++i;
      continue;
    }
    halves_.erase(halves_.begin() + static_cast<std::ptrdiff_t>(i));
    if (at != flying.end()) deliver(e->origin, static_cast<std::size_t>(at - flying.begin()));
  }
}

/// A get sees this rank's own earlier puts.
inline void world::land_own(rank_t me, rank_t target, std::size_t begin, std::size_t end) {
  auto& mine = ranks_[me].in_flight;
  for (std::size_t i = 0; i < mine.size();) {
    if (mine[i]->what != event::put || !mine[i]->overlaps(target, begin, end)) {
      ++i;
      continue;
    }
    std::size_t left = mine.size() - 1;
    deliver(me, i);
    if (mine.size() != left) i = 0;  // others had to land before it
  }
}

/// Writes down which puts of other ranks, issued before, the read of these bytes does not see.
inline void world::note_unlanded(rank_t me, rank_t target, std::size_t begin, std::size_t end,
                                 const source_place& at) {
  for (rank_t origin : busy_) {
    if (origin == me) continue;
    for (const auto& e : ranks_[origin].in_flight)
      if (e->what == event::put && e->overlaps(target, begin, end))
        unlanded_.add(
            {me, origin, target, e->offset, e->bytes, e->number, e->issued, steps_, e->place, at});
  }
}

inline void world::read(rank_t me, rank_t target, std::size_t offset, void* to, std::size_t bytes,
                        const source_place& at) {
  land_own(me, target, offset, offset + bytes);
  if (!halves_.empty()) land_halves(target, offset, offset + bytes);
  note_unlanded(me, target, offset, offset + bytes, at);
  std::memcpy(to, memory(target, offset), bytes);
  for (std::size_t i = veils_.size(); i-- > 0;) {
    const veil& v = veils_[i];
    if (v.origin == me || v.target != target || v.offset < offset ||
        v.offset + v.bytes > offset + bytes)
      continue;
    if (adversary_.happens(128))
      std::memcpy(static_cast<char*>(to) + (v.offset - offset), &v.old, v.bytes);
    else
      veils_.erase(veils_.begin() + static_cast<std::ptrdiff_t>(i));  // seen once: seen by all
  }
}

inline void world::lift_veils(rank_t origin) {
  if (!veils_.empty()) std::erase_if(veils_, [&](const veil& v) { return v.origin == origin; });
}

inline void world::lift_veils(rank_t target, std::size_t begin, std::size_t end) {
  if (!veils_.empty())
    std::erase_if(veils_, [&](const veil& v) {
      return v.target == target && v.offset < end && begin < v.offset + v.bytes;
    });
}

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend
