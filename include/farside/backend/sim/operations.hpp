// What the simulated machine does when a rank begins an operation, or waits for one: see world.hpp.
// Each function is what docs/memory_model.md allows, at its worst. (When the operations take
// effect: delivery.hpp.)
#pragma once

#include <farside/backend/sim/delivery.hpp>
#include <farside/backend/sim/freed.hpp>
#include <farside/backend/sim/schedule.hpp>

#include <algorithm>

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

/// Cuts [offset, offset + bytes) into pieces of whole aligned words: (begin, length) of each.
inline world::pieces world::cut(std::size_t offset, std::size_t bytes) {
  auto words_from = [&](std::size_t begin) {
    return (offset + bytes + 7) / 8 - (offset + begin) / 8;
  };
  std::size_t words = words_from(0);
  std::size_t count = exploring() ? std::min<std::size_t>(words, 3) : adversary_.pieces(words);
  pieces result;
  std::size_t begin = 0;
  for (std::size_t left = count; left > 1; --left) {
    std::size_t room = words_from(begin) - (left - 1);  // the next cut lies after 1 to `room` words
    std::size_t take = exploring() ? 1 : 1 + adversary_.below(room);
    std::size_t end = ((offset + begin) / 8 + take) * 8 - offset;
    result.emplace_back(begin, end - begin);
    begin = end;
  }
  result.emplace_back(begin, bytes - begin);
  return result;
}

/// A word of a put may be cut too, as long as no get sees it (land_halves): the first word of a
/// piece becomes two pieces. Returns the second of them, or no index.
inline std::size_t world::cut_word(std::size_t offset, pieces& of) {
  if (exploring() || !adversary_.at_least(level::cruel) || !adversary_.happens(64)) return no_index;
  std::size_t at = adversary_.below(of.size());
  auto [begin, length] = of[at];
  if ((offset + begin) % 8 != 0 || length < 8) return no_index;
  std::size_t first = 1 + adversary_.below(7);
  auto place = of.begin() + static_cast<std::ptrdiff_t>(at);
  *place = {begin, first};
  place = of.insert(place + 1, {begin + first, 8 - first});
  if (length > 8) of.insert(place + 1, {begin + 8, length - 8});
  return at + 1;
}

inline std::shared_ptr<event> world::launch(rank_t me, event e) {
  rank_state& r = ranks_[me];
  e.number = ++r.issued;
  e.issued = steps_;
  auto result = std::make_shared<event>(std::move(e));
  if (r.in_flight.empty()) {
    r.busy_place = busy_.size();
    busy_.push_back(me);
  }
  r.in_flight.push_back(result);
  return result;
}

inline void world::put(rank_t me, rank_t target, std::size_t offset, const void* from,
                       std::size_t bytes) {
  source_place place = std::exchange(next_place, {});
  step(me, {});
  lift_veils(me);
  if (bytes == 0) return;
  int block = enter_block(me, target, offset, bytes, "puts");
  auto* source = static_cast<const std::byte*>(from);
  pieces parts = cut(offset, bytes);
  std::size_t second_half = cut_word(offset, parts);
  events made_of;
  for (auto [begin, length] : parts) {
    event e{event::put, me, target, offset + begin, length};
    e.data.assign(source + begin, source + begin + length);
    e.block = block;
    e.place = place;
    auto made = launch(me, std::move(e));
    made_of.push_back(made);
    note("rank %-4u puts %zu B to rank %u +0x%zx: #%llu", me, length, target, offset + begin,
         static_cast<unsigned long long>(made->number));
  }
  if (second_half != no_index) {
    made_of[second_half]->other_half = made_of[second_half - 1];
    made_of[second_half - 1]->other_half = made_of[second_half];
  }
  auto& mine = ranks_[me].in_flight;
  while (mine.size() > most_in_flight) deliver(me, adversary_.below(mine.size()));
}

inline world::events world::async_put(rank_t me, rank_t target, std::size_t offset,
                                      const void* from, std::size_t bytes) {
  step(me, {});
  lift_veils(me);
  events result;
  auto* source = static_cast<const std::byte*>(from);
  if (bytes == 0) return result;
  int block = enter_block(me, target, offset, bytes, "puts");
  for (auto [begin, length] : cut(offset, bytes)) {
    event e{event::put, me, target, offset + begin, length};
    e.source = source + begin;
    e.block = block;
    result.push_back(launch(me, std::move(e)));
    note("rank %-4u begins to put %zu B to rank %u +0x%zx: #%llu", me, length, target,
         offset + begin, static_cast<unsigned long long>(result.back()->number));
  }
  return result;
}

/// Lands like a put, in pieces of whole words, each of which is added at once.
inline world::events world::async_accumulate(rank_t me, rank_t target, std::size_t offset,
                                             const void* from, std::size_t bytes, addition add) {
  events result = async_put(me, target, offset, from, bytes);
  for (auto& e : result)
    e->change = [add, length = e->bytes](void* at, void* addends) { add(at, addends, length); };
  auto& mine = ranks_[me].in_flight;
  while (mine.size() > most_in_flight) deliver(me, adversary_.below(mine.size()));
  return result;
}

/// Pieces in any order; others may change what has not been read yet.
inline void world::get(rank_t me, rank_t target, std::size_t offset, void* to, std::size_t bytes) {
  if (bytes == 0) return step(me, {});
  int block = enter_block(me, target, offset, bytes, "reads");
  source_place place = std::exchange(next_place, {});
  auto pieces = cut(offset, bytes);
  while (!pieces.empty()) {
    std::size_t at = exploring() ? 0 : adversary_.below(pieces.size());
    auto [begin, length] = pieces[at];
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(at));
    step(me, {target, offset + begin, offset + begin + length, false});
    check_block(me, target, offset + begin, length, "reads", block);
    read(me, target, offset + begin, static_cast<std::byte*>(to) + begin, length, place);
    note("rank %-4u gets %zu B from rank %u +0x%zx", me, length, target, offset + begin);
  }
}

inline world::events world::async_get(rank_t me, rank_t target, std::size_t offset, void* to,
                                      std::size_t bytes) {
  step(me, {});
  lift_veils(me);
  events result;
  if (bytes == 0) return result;
  int block = enter_block(me, target, offset, bytes, "reads");
  auto* buffer = static_cast<std::byte*>(to);
  std::memset(buffer, 0xdb, bytes);  // nobody may look at it before the future is ready
  for (auto [begin, length] : cut(offset, bytes)) {
    event e{event::get, me, target, offset + begin, length};
    e.result = buffer + begin;
    e.block = block;
    result.push_back(launch(me, std::move(e)));
    note("rank %-4u begins to get %zu B from rank %u +0x%zx: #%llu", me, length, target,
         offset + begin, static_cast<unsigned long long>(result.back()->number));
  }
  return result;
}

inline void world::atomic(rank_t me, rank_t target, std::size_t offset, std::size_t bytes,
                          const char* name, bool writes, function_ref<void(void* word)> change) {
  int block = enter_block(me, target, offset, bytes, name);
  step(me, {target, offset, offset + bytes, writes});
  check_block(me, target, offset, bytes, name, block);
  lift_veils(me);
  lift_veils(target, offset, offset + bytes);
  if (!halves_.empty()) land_halves(target, offset, offset + bytes);
  note_unlanded(me, target, offset, offset + bytes, {});
  char* word = memory(target, offset);
  std::uint64_t old = 0, now = 0;
  std::memcpy(&old, word, bytes);
  change(word);
  std::memcpy(&now, word, bytes);
  if (now != old) ++changes_, ++written_;
  note("rank %-4u %s on rank %u +0x%zx: 0x%llx -> 0x%llx", me, name, target, offset,
       static_cast<unsigned long long>(old), static_cast<unsigned long long>(now));
  if (now != old && !exploring() && adversary_.at_least(level::cruel) && adversary_.happens(128))
    veils_.push_back({me, target, offset, bytes, old});
}

inline world::events world::async_atomic(rank_t me, rank_t target, std::size_t offset,
                                         std::size_t bytes, void* old,
                                         std::function<void(void*, void*)> change) {
  step(me, {});
  lift_veils(me);
  std::memset(old, 0xdb, bytes);
  event e{event::atomic, me, target, offset, bytes};
  e.result = static_cast<std::byte*>(old);
  e.block = enter_block(me, target, offset, bytes, "changes");
  e.change = std::move(change);
  events result{launch(me, std::move(e))};
  note("rank %-4u begins an atomic on rank %u +0x%zx: #%llu", me, target, offset,
       static_cast<unsigned long long>(result.back()->number));
  return result;
}

/// In an explored part, where each landing is an action of its own: the rank goes on when enough of
/// its own have been performed.
inline void world::block_until(rank_t me, std::function<bool()> done) {
  if (done()) return;
  ranks_[me].until = std::move(done);
  make_unrunnable(me, state::blocked);
  schedule(me);
}

/// All puts to the target land before it returns; others may run between.
inline void world::flush(rank_t me, std::optional<rank_t> target) {
  step(me, {});
  lift_veils(me);
  auto& mine = ranks_[me].in_flight;
  auto is_due = [&](const auto& e) {
    return e->what == event::put && (!target || e->target == *target);
  };
  if (exploring()) block_until(me, [&] { return std::none_of(mine.begin(), mine.end(), is_due); });
  for (;;) {
    std::vector<std::size_t> due;
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (is_due(mine[i])) due.push_back(i);
    if (due.empty()) break;
    bool interrupted = false;
    // From the back, as deliver() moves the last one into the gap.
    while (!due.empty() && !interrupted) {
      std::size_t pick = due.size() - 1;
      if (!exploring() && adversary_.at_least(level::normal) && adversary_.happens(64)) {
        pick = adversary_.below(due.size());
        interrupted = true;  // the indices behind it have moved
      }
      std::size_t left = mine.size() - 1;
      deliver(me, due[pick]);
      if (mine.size() != left) interrupted = true;  // others had to land before it
      due.erase(due.begin() + static_cast<std::ptrdiff_t>(pick));
    }
    if (interrupted && adversary_.happens(64)) {
      --operations_;  // still the same operation
      step(me, {});
    }
  }
  if (target)
    note("rank %-4u has flushed rank %u", me, *target);
  else
    note("rank %-4u has flushed all", me);
}

inline void world::signal(rank_t me, rank_t target, std::size_t offset) {
  step(me, {});
  lift_veils(me);
  event e{event::signal, me, target, offset, 8};
  e.block = enter_block(me, target, offset, 8, "signals");
  auto made = launch(me, std::move(e));
  note("rank %-4u signals rank %u +0x%zx: #%llu", me, target, offset,
       static_cast<unsigned long long>(made->number));
}

/// Blocks until the word has counted so far. False: a rank has died.
inline bool world::await(rank_t me, std::size_t offset, std::uint64_t count) {
  auto reached = [&] {
    std::uint64_t word;
    std::memcpy(&word, memory(me, offset), sizeof word);
    return word >> 1 >= count;
  };
  step(me, {me, offset, offset + 8, false});
  lift_veils(me);
  while (!reached()) {
    if (lost_rank() >= 0) return false;
    rank_state& r = ranks_[me];
    r.awaited_word = offset;
    r.awaited_count = count;
    make_unrunnable(me, state::blocked);
    note("rank %-4u waits for +0x%zx to count to %llu", me, offset,
         static_cast<unsigned long long>(count));
    schedule(me);
  }
  return true;
}

/// A round of a loop that waits for others ends.
inline void world::pause(rank_t me) {
  rank_state& r = ranks_[me];
  r.idle_rounds = r.round_began == written_ ? r.idle_rounds + 1 : 0;
  r.polls = true;
  step(me, {});
  ranks_[me].polls = false;
  ranks_[me].round_began = written_;
}

/// An asynchronous operation is complete when its rank has asked for it often enough.
inline bool world::ask(rank_t me, events& parts) {
  step(me, {});
  lift_veils(me);
  auto performed = [](auto& e) { return e->performed || e->what == event::put; };
  bool done = std::all_of(parts.begin(), parts.end(), performed);
  chance soon = adversary_.at_least(level::harsh) ? 24 : 96;
  if (exploring()) {
    block_until(me, [&] { return std::all_of(parts.begin(), parts.end(), performed); });
  } else if (adversary_.active() && !adversary_.happens(done ? 2 * soon : soon)) {
    return false;
  }
  complete(parts);
  return true;
}

/// A put has been taken by the network, and may still be far from its target; of the others, the
/// results are given.
inline void world::complete(events& parts) {
  for (auto& e : parts) {
    if (e->what == event::put) {
      if (e->source != nullptr && !e->performed)
        e->data.assign(e->source, e->source + e->bytes), e->source = nullptr;
      continue;
    }
    if (!e->performed) {
      auto& flying = ranks_[e->origin].in_flight;
      auto at = std::find(flying.begin(), flying.end(), e);
      if (at != flying.end()) deliver(e->origin, static_cast<std::size_t>(at - flying.begin()));
    }
    std::memcpy(e->result, e->data.data(), e->bytes);
  }
  parts.clear();
}

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend
