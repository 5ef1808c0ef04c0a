// Collectives over a team's tree: a wave up, a wave down, and stages that carry what is larger than
// a slot. core/detail/team_block.hpp has the protocol and why slots are reused safely.
#pragma once

#include <farside/base/function_ref.hpp>
#include <farside/base/mutants.hpp>
#include <farside/core/wait_marker.hpp>

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>

namespace far::inline FARSIDE_BACKEND::detail {

/// Serves messages until this rank's own signal word has counted to `count`. Where memory is
/// coherent, it naps when no message has come for a while: cores may be fewer than ranks.
inline void serve_until(context& c, std::size_t offset, std::uint64_t count, job::waiting what,
                        rank_t on, const char* subject = nullptr) {
  rank_t me = c.link.rank();
  auto reached = [&] {
    return c.link.template atomic_load<std::uint64_t>(me, offset) >> 1 >= count;
  };
  if (reached()) return;
  wait_marker note(c, what, on, subject);
  constexpr auto patience = std::chrono::microseconds(500);
  using clock = std::chrono::steady_clock;
  unsigned rounds = 0;
  for (auto active = clock::now(); !reached();) {
    if (c.wait_round(rounds)) {
      active = clock::now();
      rounds = 0;
    } else if (c.link.coherent() && clock::now() - active > patience) {
      timespec nap{0, 50'000};
      nanosleep(&nap, nullptr);
    }
  }
}

/// Sleeps until this rank's own signal word has counted to `count`. A simulated rank sleeps within
/// the first await, and says before what for.
inline void await_word(context& c, std::size_t offset, std::uint64_t count, job::waiting what,
                       rank_t on, const char* subject) {
  if (!c.simulated() && c.link.await(offset, count)) return;
  wait_marker note(c, what, on, subject);
  while (!c.link.await(offset, count)) c.wait_round();
}

/// What the calling thread waits for in a collective of `t`. The call that the board names is not
/// that of a handler, which may make none.
inline job::waiting phase_of(context& c, const team_members& t) {
  if (!is_in_handler(c)) return t.phase;
  return t.phase == job::waiting::barrier ? job::waiting::barrier_in_handler
                                          : job::waiting::collective_in_handler;
}

/// Waits until this rank's own signal word has counted to `count`.
inline void await_signal(context& c, team_members& t, std::size_t word, std::uint64_t count,
                         rank_t on) {
  std::size_t offset = t.blocks[t.me] + word;
  if (c.messages.load(std::memory_order_acquire) != nullptr && c.attends == attention::poll &&
      !FARSIDE_MUTANT(collectives_do_not_serve))
    serve_until(c, offset, count, phase_of(c, t),
                on);  // in await it may sleep, and would not serve
  await_word(c, offset, count, phase_of(c, t), on, nullptr);
}

/// Up: once all children have arrived, calls merge(child position, bytes) for each in order, then
/// sends `n` bytes of `mine` to the parent.
inline void wave_up(context& c, team_members& t, void* mine, std::size_t n,
                    function_ref<void(rank_t, const void*)> merge) {
  if (!t.children.empty()) {
    if (FARSIDE_MUTANT(arrivals_not_added_up)) t.arrivals_due = 0;
    t.arrivals_due += t.children.size();
    await_signal(c, t, team_layout::arrivals, t.arrivals_due, job::no_rank);
    alignas(slot_bytes) std::byte buffer[slot_bytes];  // for any type that fits
    for (auto child : t.children) {
      if (n != 0)
        c.link.get(t.ranks[t.me], t.blocks[t.me] + team_layout::up(child.slot), buffer, n);
      merge(child.position, static_cast<const void*>(buffer));
    }
  }
  if (t.me == 0) return;
  auto parent = t.layout.parent(t.me);
  rank_t rank = t.ranks[parent.position];
  std::size_t block = t.blocks[parent.position];
  if (n != 0) {
    c.link.put(rank, block + team_layout::up(parent.slot), mine, n);
    if (!FARSIDE_MUTANT(wave_up_unflushed)) c.link.flush(rank);
  }
  c.link.signal(rank, block + team_layout::arrivals);
}

/// Down: receives `n` bytes to `mine` from the parent, then sends each child what
/// share(child position) points to.
inline void wave_down(context& c, team_members& t, void* mine, std::size_t n,
                      function_ref<const void*(rank_t)> share) {
  if (t.me != 0) {
    t.releases_due += 1;
    await_signal(c, t, team_layout::releases, t.releases_due,
                 t.ranks[t.layout.parent(t.me).position]);
    if (n != 0) c.link.get(t.ranks[t.me], t.blocks[t.me] + t.layout.down(), mine, n);
  }
  if (n != 0) {
    for (auto child : t.children) {
      rank_t rank = t.ranks[child.position];
      c.link.put(rank, t.blocks[child.position] + t.layout.down(), share(child.position), n);
    }
    for (auto child : t.children)
      if (!FARSIDE_MUTANT(wave_down_unflushed)) c.link.flush(t.ranks[child.position]);
  }
  // Far children lead large ranges: release them first.
  for (auto child = t.children.rbegin(); child != t.children.rend(); ++child)
    c.link.signal(t.ranks[child->position], t.blocks[child->position] + team_layout::releases);
}

template <has_barrier Link>
bool barrier_of(Link& link, context& c, team_members& t) {
  if (&t != c.world.get() || !link.start_barrier()) return false;
  if (link.await_barrier()) return true;
  wait_marker note(c, phase_of(c, t));
  while (!link.await_barrier()) c.wait_round();
  return true;
}
template <class Link>
bool barrier_of(Link&, context&, team_members&) {
  return false;
}

/// Everybody has arrived when anybody leaves; puts of all members are complete.
inline void synchronize(context& c, team_members& t) {
  if (!FARSIDE_MUTANT(barrier_unflushed)) c.link.flush();
  if (t.size() == 1 || barrier_of(c.link, c, t)) return;
  auto nothing = [](rank_t, const void*) {};
  wave_up(c, t, nullptr, 0, nothing);
  wave_down(c, t, nullptr, 0, [&](rank_t) -> const void* { return &t; });
}

/// The last wave over the team of all ranks: returns when all of them have called it, while
/// collectives that some have not entered stay where they are.
inline void leave_together(context& c, team_members& t) {
  c.link.flush();
  if (t.size() == 1) return;
  if (!t.children.empty())
    await_signal(c, t, team_layout::last_arrivals, t.children.size(), job::no_rank);
  if (t.me != 0) {
    rank_t parent = t.layout.parent(t.me).position;
    c.link.signal(t.ranks[parent], t.blocks[parent] + team_layout::last_arrivals);
    await_signal(c, t, team_layout::last_releases, 1, t.ranks[parent]);
  }
  for (auto child = t.children.rbegin(); child != t.children.rend(); ++child)
    c.link.signal(t.ranks[child->position], t.blocks[child->position] + team_layout::last_releases);
}

/// `n <= slot_bytes` bytes from `root` to all: up to the tree's top, down to everybody.
inline void broadcast_small(context& c, team_members& t, void* data, std::size_t n, rank_t root) {
  // The root's ancestors pass its bytes on; a position leads the root's range if it is at most it.
  auto leads_root = [&](rank_t child) {
    rank_t stride = 1;
    while (child % (stride * tree_radix) == 0 && stride < t.size()) stride *= tree_radix;
    return child <= root && root - child < stride;
  };
  wave_up(c, t, data, n, [&](rank_t child, const void* bytes) {
    if (t.me != root && leads_root(child)) std::memcpy(data, bytes, n);
  });
  std::byte ignored[slot_bytes];
  wave_down(c, t, t.me == root ? ignored : data, n, [&](rank_t) -> const void* { return data; });
}

/// Moves pieces through the stages: `fill(stage address, piece)` writes this member's stage,
/// `drain(piece, stage offset in a member's block)` reads the others'. One synchronisation a
/// piece: a stage is filled again two pieces later, when all have drained it.
inline void staged(context& c, team_members& t, std::size_t pieces,
                   function_ref<void(std::size_t piece, std::size_t stage)> fill,
                   function_ref<void(std::size_t piece, std::size_t stage)> drain) {
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    std::size_t stage = t.layout.stage(t.stage_turn);
    if (!FARSIDE_MUTANT(stages_not_alternated)) t.stage_turn ^= 1;
    fill(piece, stage);
    synchronize(c, t);
    drain(piece, stage);
  }
}

inline void put_own(context& c, team_members& t, std::size_t at, const void* from, std::size_t n) {
  c.link.put(t.ranks[t.me], t.blocks[t.me] + at, from, n);
}
inline void get_from(context& c, team_members& t, rank_t member, std::size_t at, void* to,
                     std::size_t n) {
  if (n != 0) c.link.get(t.ranks[member], t.blocks[member] + at, to, n);
}

inline std::size_t pieces_of(std::size_t bytes, std::size_t piece) {
  return (bytes + piece - 1) / piece;
}

inline void broadcast_bytes(context& c, team_members& t, void* data, std::size_t n, rank_t root) {
  if (t.size() == 1 || n == 0) return;
  if (n <= slot_bytes) return broadcast_small(c, t, data, n, root);
  auto* bytes = static_cast<std::byte*>(data);
  std::size_t most = t.layout.stage_bytes;
  auto length = [&](std::size_t piece) { return std::min(most, n - piece * most); };
  staged(
      c, t, pieces_of(n, most),
      [&](std::size_t piece, std::size_t stage) {
        if (t.me == root) put_own(c, t, stage, bytes + piece * most, length(piece));
      },
      [&](std::size_t piece, std::size_t stage) {
        if (t.me != root) get_from(c, t, root, stage, bytes + piece * most, length(piece));
      });
}

/// Each member's bytes to all (root == none) or to one: sizes[i] bytes of member i land at to[i].
inline void gather_bytes(context& c, team_members& t, const void* mine,
                         std::span<const std::uint64_t> sizes, std::span<std::byte* const> to,
                         bool receive) {
  auto* bytes = static_cast<const std::byte*>(mine);
  std::size_t most = t.layout.stage_bytes;
  std::size_t longest = *std::max_element(sizes.begin(), sizes.end());
  auto length = [&](rank_t member, std::size_t piece) -> std::size_t {
    return sizes[member] > piece * most ? std::min<std::size_t>(most, sizes[member] - piece * most)
                                        : 0;
  };
  staged(
      c, t, pieces_of(longest, most),
      [&](std::size_t piece, std::size_t stage) {
        if (std::size_t n = length(t.me, piece)) put_own(c, t, stage, bytes + piece * most, n);
      },
      [&](std::size_t piece, std::size_t stage) {
        if (!receive) return;
        for (rank_t i = 0; i < t.size(); ++i) {
          rank_t member = (t.me + i) % t.size();  // not all from the same member at once
          get_from(c, t, member, stage, to[member] + piece * most, length(member, piece));
        }
      });
}

/// `n` bytes of every member, one after another.
inline void all_gather_bytes(context& c, team_members& t, const void* mine, void* all,
                             std::size_t n, bool receive = true) {
  std::vector<std::uint64_t> sizes(t.size(), n);
  std::vector<std::byte*> to(t.size());
  for (rank_t i = 0; receive && i < t.size(); ++i) to[i] = static_cast<std::byte*>(all) + i * n;
  gather_bytes(c, t, mine, sizes, to, receive);
}

/// Member i's j-th blob becomes member j's i-th. send[j] has send_sizes[j] bytes; receive[i] has
/// room for receive_sizes[i]; `longest` is the longest blob of all members.
inline void all_to_all_bytes(context& c, team_members& t, std::span<const std::byte* const> send,
                             std::span<const std::uint64_t> send_sizes,
                             std::span<std::byte* const> receive,
                             std::span<const std::uint64_t> receive_sizes, std::size_t longest) {
  std::size_t most = t.layout.stage_bytes / t.size() & ~std::size_t{7};  // of the stage, for each
  auto length = [&](std::uint64_t size, std::size_t piece) -> std::size_t {
    return size > piece * most ? std::min<std::size_t>(most, size - piece * most) : 0;
  };
  staged(
      c, t, pieces_of(longest, most),
      [&](std::size_t piece, std::size_t stage) {
        for (rank_t j = 0; j < t.size(); ++j)
          if (std::size_t n = length(send_sizes[j], piece))
            put_own(c, t, stage + j * most, send[j] + piece * most, n);
      },
      [&](std::size_t piece, std::size_t stage) {
        for (rank_t k = 0; k < t.size(); ++k) {
          rank_t i = (t.me + k) % t.size();
          get_from(c, t, i, stage + t.me * most, receive[i] + piece * most,
                   length(receive_sizes[i], piece));
        }
      });
}

/// Folds `n` elements of `right` into `left`: left[i] = op(left[i], right[i]).
using fold = function_ref<void(void* left, const void* right, std::size_t n)>;

/// In place over the tree, `n * size <= slot_bytes`; the result is everywhere.
inline void all_reduce_small(context& c, team_members& t, void* values, std::size_t n,
                             std::size_t size, fold op) {
  wave_up(c, t, values, n * size, [&](rank_t, const void* theirs) { op(values, theirs, n); });
  wave_down(c, t, values, n * size, [&](rank_t) -> const void* { return values; });
}

/// Large: each member folds one slice of every piece, then all collect the slices. The input lies
/// in stage 0 and the folded slices in stage 1; the second synchronisation of a piece lets stage 0
/// be written again, the first one of the next piece stage 1.
inline void all_reduce_large(context& c, team_members& t, void* values, std::size_t n,
                             std::size_t size, fold op) {
  auto* bytes = static_cast<std::byte*>(values);
  std::size_t slice = t.layout.stage_bytes / t.size() / size;
  std::size_t piece = slice * t.size();
  std::size_t input = t.layout.stage(0), folded = t.layout.stage(1);
  std::vector<std::byte> sum(slice * size),
      theirs(slice * size);  // aligned as new does: for all types
  // An earlier collective may still be read from the stages.
  if (!FARSIDE_MUTANT(all_reduce_begins_at_once)) synchronize(c, t);
  for (std::size_t done = 0; done < n; done += piece) {
    std::size_t now = std::min(piece, n - done);
    auto begin = [&](rank_t member) { return std::min(now, member * slice); };
    auto length = [&](rank_t member) {
      return std::min(now, (member + 1) * slice) - begin(member);
    };
    put_own(c, t, input, bytes + done * size, now * size);
    synchronize(c, t);
    std::size_t mine = length(t.me);
    for (rank_t i = 0; i < t.size(); ++i) {  // in the members' order
      get_from(c, t, i, input + begin(t.me) * size, (i == 0 ? sum : theirs).data(), mine * size);
      if (i != 0 && mine != 0) op(sum.data(), theirs.data(), mine);
    }
    if (mine != 0) put_own(c, t, folded + begin(t.me) * size, sum.data(), mine * size);
    synchronize(c, t);
    for (rank_t i = 0; i < t.size(); ++i)
      get_from(c, t, i, folded + begin(i) * size, bytes + (done + begin(i)) * size,
               length(i) * size);
  }
  if (!FARSIDE_MUTANT(all_reduce_ends_at_once)) synchronize(c, t);
}

inline void all_reduce_bytes(context& c, team_members& t, void* values, std::size_t n,
                             std::size_t size, fold op) {
  if (t.size() == 1 || n == 0) return;
  if (n * size <= slot_bytes) return all_reduce_small(c, t, values, n, size, op);
  if (t.layout.stage_bytes / t.size() >= size) return all_reduce_large(c, t, values, n, size, op);
  std::vector<std::byte> all(t.size() * size);  // elements too large for a slice: one at a time
  for (std::size_t k = 0; k < n; ++k) {
    auto* value = static_cast<std::byte*>(values) + k * size;
    all_gather_bytes(c, t, value, all.data(), size);
    for (rank_t i = 1; i < t.size(); ++i) op(all.data(), all.data() + i * size, 1);
    std::memcpy(value, all.data(), size);
  }
}

/// Folds in order what lies before this member into `before` (false: nothing lies before). Messages
/// are the value, followed by a byte that says whether there is one.
inline bool scan_small(context& c, team_members& t, const void* mine, void* before,
                       std::size_t size, fold op) {
  std::vector<std::byte> range(size + 1), prefix(size + 1), down(size + 1);
  std::memcpy(range.data(), mine, size);
  std::vector<std::byte> upto;  // this member's range before each child, from its own value on
  wave_up(c, t, range.data(), size + 1, [&](rank_t, const void* theirs) {
    upto.insert(upto.end(), range.begin(), range.begin() + static_cast<std::ptrdiff_t>(size));
    op(range.data(), theirs, 1);
  });
  const std::byte* next = upto.data();
  wave_down(c, t, prefix.data(), size + 1, [&](rank_t) -> const void* {
    bool any = prefix[size] != std::byte{0};
    std::memcpy(down.data(), any ? prefix.data() : next, size);
    if (any) op(down.data(), next, 1);
    down[size] = std::byte{1};
    next += size;
    return down.data();
  });
  std::memcpy(before, prefix.data(), size);
  return prefix[size] != std::byte{0};
}

/// What members must agree on; checked builds compare it before every collective.
struct signature {
  char name[40], file[68];
  std::uint64_t element, count;
  std::uint32_t root, rank, line;
};

inline void check_agreement(context& c, team_members& t, const char* name, std::size_t element,
                            std::size_t count, rank_t root) {
  if constexpr (FARSIDE_CHECKED) {
    check_may_wait(c);
    signature mine{};
    std::strncpy(mine.name, name, sizeof mine.name - 1);
    copy_path(mine.file, sizeof mine.file, c.call_file);
    mine.element = element, mine.count = count, mine.root = root, mine.rank = c.link.rank();
    mine.line = c.call_line;
    auto text_of = [](const signature& s) {
      std::string place = s.line == 0 ? "" : text(" at ", s.file, ":", s.line);
      std::string root_text = s.root == job::no_rank ? "" : text(", root ", s.root);
      std::string sizes =
          s.element == 0 ? "" : text(" (", s.count, " x ", s.element, " bytes", root_text, ")");
      return text("rank ", s.rank, " calls ", s.name, place, sizes);
    };
    wave_up(c, t, &mine, sizeof mine, [&](rank_t, const void* bytes) {
      signature theirs;
      std::memcpy(&theirs, bytes, sizeof theirs);
      if (std::strcmp(theirs.name, mine.name) != 0 || theirs.element != mine.element ||
          theirs.count != mine.count || theirs.root != mine.root)
        raise("mismatched collectives on a team of ", t.size(), ": ", text_of(mine), ", but ",
              text_of(theirs),
              ". All members must call the same collectives in the same order with the same sizes "
              "and root.");
    });
    wave_down(c, t, nullptr, 0, [&](rank_t) -> const void* { return &t; });
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail
