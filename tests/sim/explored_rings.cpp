// All schedules of a few operations on the slots of a ring: see explored.cpp. A rank looks once
// where a queue would look until it sees something, as no rank may poll here.
//
//   explored_rings_sim NAME     with FARSIDE_SIM_EXHAUSTIVE=RUNS
#include <farside/containers/circular_queue.hpp>
#include <farside/farside.hpp>

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using word = std::uint64_t;
using far::detail::pop_overlap;
using far::detail::ring_tickets;
using far::detail::ring_word;

void expect(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

/// The parts of a queue, one step at a time.
template <std::size_t Bytes = 8>
struct parts {
  using slots = far::detail::sealed_slots<Bytes, far::detail::slot_check::seal>;
  struct element {
    word words[Bytes / 8] = {};
    bool operator==(const element&) const = default;
  };

  explicit parts(std::uint64_t capacity) : all(far::detail::here()) {
    far::detail::ring_layout shape(capacity, slots::stride, true);
    far::ptr<far::detail::ring_line> at = nullptr;
    if (far::rank() == 0) {
      at = far::alloc<far::detail::ring_line>(shape.lines());
      std::vector<far::detail::ring_line> zeros(shape.lines());
      far::put(at, zeros.data(), zeros.size());
    }
    at = far::broadcast(at, 0);
    far::barrier();
    tickets.place(far::detail::here(), shape, at);
  }

  bool write_if_free(word ticket, const element& value) {
    if (!all.look_for_room(tickets, ticket, 1)) return false;
    all.write(tickets, ticket, reinterpret_cast<const std::byte*>(&value), 1, true);
    return true;
  }
  std::optional<element> read_if_there(word ticket) {
    element value;
    if (all.read(tickets, ticket, 1, reinterpret_cast<std::byte*>(&value)) == 0)
      return std::nullopt;
    return value;
  }
  void free(word ticket) {
    all.free(tickets, ticket, 1, pop_overlap::any_mix);
    all.settle(tickets);
  }

  ring_tickets tickets;
  slots all;
};

/// A pop that comes while its element is being written sees all of it, or none.
void push_and_pop() {
  parts<16> q(2);
  using element = parts<16>::element;
  std::optional<element> seen;
  {
    far::explored part;
    if (far::rank() == 0) {
      word ticket = q.tickets.claim_push(1);
      q.write_if_free(ticket, {{1, 2}});
    } else {
      word ticket = q.tickets.claim_pop(1);
      seen = q.read_if_there(ticket);
    }
  }
  expect(!seen || *seen == element{{1, 2}}, "half an element was popped");
  far::barrier();
  if (far::rank() == 0)
    expect(q.read_if_there(0) == std::optional(element{{1, 2}}), "an element is missing");
}

/// One slot. While its element is popped, the next is pushed if the slot has become free: the pop
/// has the old one, and who looks for the new one sees all of it or none.
void next_round() {
  parts<16> q(1);
  using element = parts<16>::element;
  if (far::rank() == 0) q.write_if_free(q.tickets.claim_push(1), {{7, 1}});
  far::barrier();
  bool pushed = false;
  std::optional<element> old, next;
  {
    far::explored part;
    if (far::rank() == 0) {
      word ticket = q.tickets.claim_pop(1);
      old = q.read_if_there(ticket);
      q.free(ticket);
      next = q.read_if_there(1);
    } else {
      pushed = q.write_if_free(1, {{7, 2}});
    }
  }
  far::barrier();
  if (far::rank() == 0) {
    expect(old == std::optional(element{{7, 1}}), "an element was lost");
    expect(!next || *next == element{{7, 2}}, "the next element was seen too early");
  }
  bool now = q.read_if_there(1).has_value();
  expect(far::all_reduce(int{pushed}) == int{now}, "the next element is not there");
}

/// The same with two slots and two pushes: both ranks push, each its ticket, and both are there.
void two_pushes() {
  parts<8> q(2);
  word mine = 0;
  bool pushed = false;
  {
    far::explored part;
    mine = q.tickets.claim_push(1);
    pushed = q.write_if_free(mine, {{far::rank() + 1}});
  }
  far::barrier();
  expect(pushed, "there was room");
  auto here = q.read_if_there(mine);
  expect(here && here->words[0] == far::rank() + 1, "an element was overwritten");
}

/// try_push of both ranks, one place: exactly one has it.
void one_place() {
  parts<8> q(1);
  std::optional<word> ticket;
  {
    far::explored part;
    ticket = q.tickets.try_claim_push(1);
  }
  expect(far::all_reduce(int{ticket.has_value()}) == 1, "one place was given to two, or to none");
}

/// try_pop of both ranks, one element: exactly one has it.
void one_element() {
  parts<8> q(2);
  if (far::rank() == 0) q.write_if_free(q.tickets.claim_push(1), {{5}});
  far::barrier();
  std::uint64_t got = 0;
  {
    far::explored part;
    got = q.tickets.try_claim_pop(2).count;
  }
  expect(far::all_reduce(got) == 1, "one element was given to two, or to none");
}

/// A push to a full queue while it is popped: room is given at most once, and not before.
void full_while_popped() {
  parts<8> q(1);
  if (far::rank() == 0) q.write_if_free(q.tickets.claim_push(1), {{5}});
  far::barrier();
  bool room = false;
  word head = 0;
  {
    far::explored part;
    if (far::rank() == 0) {
      q.tickets.claim_pop(1);
    } else {
      room = q.tickets.try_claim_push(1).has_value();
      head = far::atomic_load(q.tickets.word(ring_word::head));
    }
  }
  expect(!room || head == 1, "room was given in a full queue");
}

/// Pushes in a phase without pops, more than there is room for: the end is where it was.
void phased_overrun() {
  parts<8> q(1);
  std::uint64_t granted = 0;
  {
    far::explored part;
    granted = q.tickets.phased_push(1).count;
  }
  far::barrier();
  expect(far::all_reduce(granted) == 1, "one place was given to two, or to none");
  expect(far::atomic_load(q.tickets.word(ring_word::tail)) == 1,
         "a ticket beyond the end was kept");
}

const std::map<std::string, void (*)()> cases = {
    {"push_and_pop", push_and_pop},     {"next_round", next_round},
    {"two_pushes", two_pushes},         {"one_place", one_place},
    {"one_element", one_element},       {"full_while_popped", full_while_popped},
    {"phased_overrun", phased_overrun},
};

}  // namespace

int main(int argc, char** argv) {
  auto chosen = cases.find(argc > 1 ? argv[1] : "");
  if (chosen == cases.end()) {
    std::fprintf(stderr, "usage: explored_rings_sim NAME, one of\n");
    for (const auto& [name, body] : cases) std::fprintf(stderr, "  %s\n", name.c_str());
    return 2;
  }
  return far::run(argc, argv, [&] { chosen->second(); });
}
