// What the board lets one conclude about a job, and above all what it does not.
#include <farside/base/verdict.hpp>

#include <cstring>
#include <memory>
#include <vector>

#include "check.hpp"

namespace {

using far::job_board::leaving;
using far::job_board::rank_state;
using far::job_board::waiting;

/// A job of some ranks, none of which does anything yet.
struct job {
  std::vector<std::unique_ptr<far::job_board::slot>> memory;
  far::job_board::slots ranks;

  explicit job(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      memory.push_back(std::make_unique<far::job_board::slot>());
      ranks.push_back(memory.back().get());
      ranks[i]->state = rank_state::running;
    }
  }
  far::job_board::slot& operator[](std::size_t i) { return *ranks[i]; }

  /// The rank enters its next collective of all ranks.
  void enters(std::size_t rank, const char* name, std::uint32_t line) {
    far::job_board::slot& s = *ranks[rank];
    std::uint64_t number = s.entered + 1;
    far::job_board::called& entry = s.calls[number % far::job_board::kept_calls];
    std::strncpy(entry.name, name, sizeof entry.name - 1);
    std::strncpy(entry.file, "prog.cpp", sizeof entry.file - 1);
    entry.line = line;
    entry.number = number;
    s.entered = s.inside = number;
  }
  void waits(std::size_t rank, waiting what) {
    ranks[rank]->waits = far::job_board::wait{what, far::job_board::no_rank};
    ranks[rank]->waits_since = ++clock;
  }
  void computes(std::size_t rank) {
    ranks[rank]->waits = far::job_board::wait{};
    ranks[rank]->waits_since = 0;
  }
  std::uint64_t clock = 0;
};

void names() {
  CHECK(far::job_board::names_of({3}) == "rank 3");
  CHECK(far::job_board::names_of({1, 2}) == "ranks 1 and 2");
  CHECK(far::job_board::names_of({0, 2, 5, 6, 7}) == "ranks 0, 2 and 5 to 7");
}

void calls() {
  job j(3);
  for (std::size_t r = 0; r < 3; ++r) j.enters(r, "barrier", 1);
  CHECK(far::job_board::different_calls(j.ranks).empty());
  j.enters(0, "all_reduce", 2);  // ahead of the others
  CHECK(far::job_board::different_calls(j.ranks).empty());
  j.enters(1, "all_reduce", 3);  // the same, from another line
  CHECK(far::job_board::different_calls(j.ranks).empty());
  j.enters(2, "print", 4);
  CHECK(
      far::job_board::different_calls(j.ranks) ==
      "rank 0 calls all_reduce at prog.cpp:2, rank 1 calls all_reduce at prog.cpp:3, rank 2 calls "
      "print at prog.cpp:4");
  job far_ahead(2);
  far_ahead.enters(1, "barrier", 1);
  for (int i = 0; i < 20; ++i) far_ahead.enters(0, "broadcast", 2);  // the first is forgotten
  CHECK(far::job_board::different_calls(far_ahead.ranks).empty());
}

void left() {
  job j(3);
  for (std::size_t r = 0; r < 3; ++r) j.enters(r, "barrier", 1);
  j.waits(0, waiting::barrier);
  j[1].left = j[2].left = leaving::far_run;
  CHECK(
      far::job_board::others_have_left(j.ranks).empty());  // they have entered it: it will be over
  j.enters(0, "barrier", 7);
  CHECK(far::job_board::others_have_left(j.ranks) ==
        "rank 0 calls barrier at prog.cpp:7, the others have left far::run");
  j[2].left = leaving::no;
  CHECK(far::job_board::others_have_left(j.ranks) ==
        "rank 0 calls barrier at prog.cpp:7, rank 1 has left far::run");
  j.computes(0);  // an empty collective waits for nobody
  CHECK(far::job_board::others_have_left(j.ranks).empty());
  j.waits(0, waiting::collective);
  j[0].left = leaving::far_run;  // what the library itself does at the end
  CHECK(far::job_board::others_have_left(j.ranks).empty());
}

/// Looks once a second, for 5 s, at ranks that look around 10 times meanwhile; whether it is
/// decided.
template <class Meanwhile>
bool decided(job& j, Meanwhile meanwhile) {
  far::job_board::standstill still;
  for (std::uint64_t now = 1; now <= 6; ++now) {
    if (still.look(j.ranks, now * 1'000'000'000, 3'000'000'000, 8)) return true;
    for (auto* rank : j.ranks) rank->rounds = rank->rounds + 10;
    meanwhile(now);
  }
  return false;
}

void standing_still() {
  auto nothing = [](std::uint64_t) {};
  job j(3);
  CHECK(!decided(j, nothing));  // all compute
  for (std::size_t r = 0; r < 3; ++r) j.waits(r, r == 0 ? waiting::pop : waiting::ending);
  CHECK(decided(j, nothing));
  CHECK(!decided(j, [&](std::uint64_t) { j[1].activity = j[1].activity + 1; }));  // it serves
  CHECK(!decided(j, [&](std::uint64_t now) {
    if (now % 2 == 0) j.waits(2, waiting::ending);  // another wait
  }));
  CHECK(!decided(j, [&](std::uint64_t) { j[2].rounds = 0; }));  // in a handler, or stopped
  j[1].threads = 1;                                             // another thread may act
  CHECK(!decided(j, nothing));
  j[1].threads = 0;
  j.computes(1);
  CHECK(!decided(j, nothing));
  j[1].state = rank_state::finished;  // can do nothing any more
  CHECK(decided(j, nothing));
  j[0].state = j[2].state = rank_state::finished;
  CHECK(!decided(j, nothing));  // nobody waits
}

}  // namespace

int main() {
  names();
  calls();
  left();
  standing_still();
  return verdict("verdict");
}
