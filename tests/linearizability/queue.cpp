// Queues: histories known to be good and known to be bad.
#include "by_hand.hpp"

using namespace linearizability;
using linearizability::queue;

namespace {

using value = std::optional<std::uint64_t>;
const value nothing;

struct queues : by_hand<queue> {
  static event<queue> pushed(std::uint32_t client, std::uint64_t from, std::uint64_t until,
                             std::uint64_t v) {
    return done(client, from, until, queue::push(v), true);
  }
  static event<queue> popped(std::uint32_t client, std::uint64_t from, std::uint64_t until,
                             std::uint64_t v) {
    return done(client, from, until, queue::pop(), v);
  }
  static event<queue> empty(std::uint32_t client, std::uint64_t from, std::uint64_t until) {
    return done(client, from, until, queue::try_pop(), nothing);
  }
  static event<queue> full(std::uint32_t client, std::uint64_t from, std::uint64_t until,
                           std::uint64_t v) {
    return done(client, from, until, queue::try_push(v), false);
  }

  static void order() {
    CHECK(good("one after the other",
               {empty(0, 1, 2), pushed(0, 3, 4, 1), pushed(0, 5, 6, 2), popped(0, 7, 8, 1),
                done(0, 9, 10, queue::try_pop(), value(2)), empty(0, 11, 12)}));
    CHECK(good("pushes that overlap come in either order",
               {pushed(0, 1, 4, 1), pushed(1, 2, 3, 2), popped(0, 5, 6, 2), popped(0, 7, 8, 1)}));
    CHECK(good("pops that overlap come in either order",
               {pushed(0, 1, 2, 1), pushed(0, 3, 4, 2), popped(0, 5, 8, 2), popped(1, 6, 7, 1)}));
    CHECK(good("equal values", {pushed(0, 1, 2, 5), pushed(0, 3, 4, 5), popped(0, 5, 6, 5),
                                popped(0, 7, 8, 5), empty(0, 9, 10)}));
    CHECK(bad("popped twice", {pushed(0, 1, 2, 1), popped(0, 3, 6, 1), popped(1, 4, 5, 1)},
              "The value was popped twice"));
    CHECK(bad("popped out of order",
              {pushed(0, 1, 2, 1), pushed(0, 3, 4, 2), popped(0, 5, 6, 2), popped(0, 7, 8, 1)},
              "The second value was pushed after the first and popped before it"));
    CHECK(bad("overtaken", {pushed(0, 1, 2, 1), pushed(0, 3, 4, 2), popped(0, 5, 6, 2)},
              "it was popped, the first was not"));
    CHECK(bad("out of thin air", {pushed(0, 1, 2, 1), popped(1, 3, 4, 9)},
              "The value was never pushed"));
    CHECK(bad("popped before it was pushed", {popped(1, 1, 2, 9), pushed(0, 3, 4, 9)},
              "The value was popped before it was pushed"));
    CHECK(bad("equal values, popped once too often",
              {pushed(0, 1, 2, 5), pushed(0, 3, 4, 5), popped(0, 5, 6, 5), popped(0, 7, 8, 5),
               popped(1, 5, 9, 5)}));
  }

  static void emptiness() {
    CHECK(good("empty before the push took effect", {pushed(0, 1, 4, 1), empty(1, 2, 3)}));
    CHECK(good("empty between two values",
               {pushed(0, 1, 2, 1), popped(0, 3, 6, 1), pushed(1, 5, 8, 2), empty(2, 4, 7)}));
    CHECK(good("empty between two values, at the only moment there is",
               {pushed(0, 1, 2, 1), pushed(1, 3, 5, 2), empty(2, 4, 7), popped(0, 5, 6, 1),
                popped(1, 8, 9, 2)}));
    CHECK(bad("empty while one was surely in",
              {pushed(0, 1, 2, 1), empty(1, 3, 4), popped(0, 5, 6, 1)},
              "At each moment of the first, one of these values was in"));
    CHECK(bad("empty while one or the other was surely in",
              {pushed(0, 1, 2, 1), empty(2, 5, 12), pushed(1, 3, 7, 2), popped(0, 9, 11, 1),
               popped(1, 14, 16, 2)},
              "push(2)"));
    CHECK(bad("empty when nobody ever popped", {pushed(0, 1, 2, 1), empty(1, 3, 4)}));
  }

  static void bounds() {
    queue of_two{2};
    CHECK(good("full", {pushed(0, 1, 2, 1), pushed(0, 3, 4, 2), full(0, 5, 6, 3)}, of_two));
    CHECK(good("full while a pop was under way",
               {pushed(0, 1, 2, 1), pushed(0, 3, 4, 2), full(0, 6, 7, 3), popped(1, 5, 8, 1)},
               of_two));
    CHECK(bad("full when there surely was room",
              {pushed(0, 1, 2, 1), pushed(0, 3, 4, 2), popped(0, 5, 6, 1), full(0, 7, 8, 3)},
              "At each moment of it there was room", of_two));
    CHECK(bad("pushed when there surely was no room",
              {pushed(0, 1, 2, 1), pushed(0, 3, 4, 2), pushed(0, 5, 6, 3)}, "push(3) -> pushed",
              of_two));
    CHECK(good("waited for room",
               {pushed(0, 1, 2, 1), pushed(0, 3, 4, 2), pushed(0, 5, 9, 3), popped(1, 6, 8, 1)},
               of_two));
    CHECK(bad("did not wait for room",
              {pushed(0, 1, 2, 1), pushed(0, 3, 4, 2), pushed(0, 5, 6, 3), popped(1, 7, 8, 1)}, "",
              of_two));
    CHECK(bad("out of order, with a bound",
              {pushed(0, 1, 2, 1), pushed(0, 3, 4, 2), popped(0, 5, 6, 2)},
              "it was popped, the first was not", of_two));
    CHECK(bad("full without a bound", {full(0, 1, 2, 1)}, "there was room"));
    CHECK(bad("nobody waits for an empty queue",
              {done(0, 1, 2, queue::pop(), false), pushed(0, 3, 4, 1)}));
  }

  static void not_returned() {
    CHECK(good("push took effect", {lost(0, 1, queue::push(1)), popped(1, 5, 6, 1)}));
    CHECK(good("push took no effect", {lost(0, 1, queue::push(1)), empty(1, 5, 6)}));
    CHECK(good("pop took a value", {pushed(0, 1, 2, 1), pushed(0, 3, 4, 2),
                                    lost(1, 2, queue::pop()), popped(0, 5, 6, 2)}));
    CHECK(good("pop took no value",
               {pushed(0, 1, 2, 1), lost(1, 2, queue::pop()), popped(0, 5, 6, 1)}));
    CHECK(good("pop took the last value",
               {pushed(0, 1, 2, 1), lost(1, 2, queue::try_pop()), empty(0, 5, 6)}));
    CHECK(
        bad("one pop took two values", {pushed(0, 1, 2, 1), pushed(0, 3, 4, 2), pushed(0, 5, 6, 3),
                                        lost(1, 2, queue::pop()), popped(0, 7, 8, 3)}));
    CHECK(bad("pop took a value before it began", {pushed(0, 1, 2, 1), pushed(0, 3, 4, 2),
                                                   popped(0, 5, 6, 2), lost(1, 7, queue::pop())}));
    CHECK(good("pops that did not say what they took",
               {pushed(0, 1, 2, 1), pushed(0, 3, 4, 2), silent(0, 5, 6, queue::pop()),
                popped(0, 7, 8, 2)}));
    CHECK(bad("pop that must have taken what another one says it took",
              {pushed(0, 1, 2, 1), silent(0, 3, 4, queue::pop()), popped(0, 5, 6, 1)}));
    CHECK(good("push took effect, with a bound", {lost(0, 1, queue::push(1)), full(1, 5, 6, 2)},
               queue{1}));
    CHECK(good("push took no effect, with a bound",
               {lost(0, 1, queue::push(1)), pushed(1, 5, 6, 2), full(1, 7, 8, 3)}, queue{1}));
    CHECK(bad("try_push that did not say that there was room",
              {silent(0, 1, 2, queue::try_push(2)), pushed(0, 3, 4, 1)}, "push(1) -> pushed",
              queue{1}));
    CHECK(good("try_push that did not say whether there was room",
               {pushed(0, 1, 2, 1), silent(0, 3, 4, queue::try_push(2)), popped(0, 5, 6, 1),
                empty(0, 7, 8)},
               queue{1}));
  }

  static void many_queues() {
    history h = {done(0, 1, 2, queue::push(1, 0), true), done(0, 3, 4, queue::push(2, 1), true),
                 done(0, 5, 6, queue::pop(1), 2), done(0, 7, 8, queue::pop(0), 1)};
    CHECK(good("queues do not see each other", h));
    h.push_back(done(0, 9, 10, queue::pop(1), 1));
    CHECK(bad("from another queue", h, "of partition 1"));
  }
};

}  // namespace

int main() {
  queues::order();
  queues::emptiness();
  queues::bounds();
  queues::not_returned();
  queues::many_queues();
  return verdict("linearizability.queue");
}
