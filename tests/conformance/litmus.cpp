// Litmus tests of the memory model: small races whose outcomes docs/memory_model.md forbids.
//
// A litmus has roles (short programs that run at the same time) and variables (words of far
// memory, 0 at first, each in a cache line of its own). Every run uses fresh words; the roles meet
// before each run and start after small random delays. Beside the forbidden outcomes each test
// tells how often the roles really crossed: a race that never happened proves nothing, though no
// number of runs proves everything.
#include "harness.hpp"
#include "spread_over_cores.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <thread>

namespace litmus_tests {

using far_test::objects_on_each_rank;
using far_test::release;
using far_test::shared_objects;
using far_test::spread_over_cores;

namespace {

using word = std::uint64_t;

struct alignas(64) payload {
  std::array<word, 64> words;  // 512 bytes: more than one cache line, more than a word-wise copy
};

struct alignas(128) cell {
  word value;
  word rest[15];
};

/// What the roles of one run have read; unused ones stay 0.
using readings = std::array<word, 2>;

struct tally {
  long runs = 0, forbidden = 0, crossed = 0;
};

/// Seconds that one litmus may take: FARSIDE_LITMUS_SECONDS, or half of one.
double chosen_budget() {
  const char* chosen = std::getenv("FARSIDE_LITMUS_SECONDS");
  return chosen != nullptr ? std::atof(chosen) : 0.5;
}

class litmus {
 public:
  static constexpr std::size_t batch = 256;

  /// Collective. Role r is played by rank r, or by rank r modulo their number where there are
  /// fewer: then one after another.
  litmus(unsigned roles, unsigned variables)
      : roles_(roles), players_(std::min<unsigned>(roles, far::nprocs())) {
    for (unsigned v = 0; v < variables; ++v)
      variables_.push_back(objects_on_each_rank<cell>(batch, cell{}));
    payloads_ = objects_on_each_rank<payload>(batch, payload{});
    turns_ = objects_on_each_rank<word>(1, word{0});
    random_ = far_test::random_engine();
  }
  ~litmus() {
    for (auto& variable : variables_) release(variable);
    release(payloads_);
    release(turns_);
  }
  litmus(const litmus&) = delete;

  /// The word of variable `v` in this run, wherever it lies this time.
  far::ptr<word> at(unsigned v) const {
    return far::pointer_cast<word>(variables_[v][host(v)] + static_cast<std::ptrdiff_t>(run_));
  }
  far::ptr<payload> data() const { return payloads_[host(7)] + static_cast<std::ptrdiff_t>(run_); }

  /// Runs `play(role)`, which gives what it has read, as often as the budget allows, and judges
  /// each run by `judge(readings of each role)`: -1 forbidden, 1 crossed, 0 neither. Collective.
  template <class Play, class Judge>
  tally race(Play play, Judge judge) {
    tally sum;
    const double budget = chosen_budget();
    spread_over_cores apart(far::rank() < players_ ? far::rank() : 0);
    double took = 0;
    std::size_t runs = 16;  // few at first: over a network a run may take milliseconds
    while (sum.runs < 40'000 && took < budget) {
      double one = round(runs, play, judge, sum);
      took += one;
      if (one < budget / 16) runs = std::min(2 * runs, batch);
    }
    far_test::note(sum.runs, " runs, ", sum.forbidden, " forbidden, ", sum.crossed, " crossed");
    return sum;
  }

 private:
  far::rank_t host(unsigned v) const {
    return static_cast<far::rank_t>((v + shift_) % far::nprocs());
  }

  template <class Play, class Judge>
  double round(std::size_t runs, Play& play, Judge& judge, tally& sum) {
    far::rank_t me = far::rank();
    for (auto& variable : variables_) {
      std::vector<cell> zeros(runs);
      far::put(variable[me], zeros.data(), runs);
    }
    std::vector<payload> zeros(runs);
    far::put(payloads_[me], zeros.data(), runs);
    std::vector<std::vector<readings>> read(roles_, std::vector<readings>(runs));
    ++shift_;
    far::barrier();
    auto begin = std::chrono::steady_clock::now();
    if (me < players_) {
      for (run_ = 0; run_ < runs; ++run_) {
        // What lies in whose cache decides which accesses can pass each other: try all.
        for (unsigned v = 0; v < variables_.size(); ++v)
          if (random_() % 2 == 0) far::get(at(v));
        meet();
        for (unsigned role = me; role < roles_; role += players_) read[role][run_] = play(role);
      }
    }
    double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    took = far::all_reduce(took, far::maximum());
    for (unsigned role = 0; role < roles_; ++role)
      far::broadcast(std::span(read[role]), static_cast<far::rank_t>(role % players_));
    for (std::size_t i = 0; i < runs; ++i) {
      std::vector<readings> all(roles_);
      for (unsigned role = 0; role < roles_; ++role) all[role] = read[role][i];
      int verdict = judge(all);
      sum.runs += 1;
      sum.forbidden += verdict < 0;
      sum.crossed += verdict > 0;
    }
    far::barrier();
    return std::max(took, 1e-9);
  }

  /// All players leave it at about the same time.
  void meet() {
    due_ += players_ - 1;
    for (far::rank_t other = 0; other < players_; ++other)
      if (other != far::rank()) far::fetch_add(turns_[other], 1);
    int patience = players_ <= std::thread::hardware_concurrency() ? 20'000 : 50;
    for (int spins = 0; far::atomic_load(turns_[far::rank()]) < due_; ++spins)
      if (spins > patience) std::this_thread::yield();
    // Who came last leaves first, some hundred nanoseconds ahead. The next full microsecond is the
    // same for both.
    auto now = [] {
      return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    };
    for (auto start = now() >> 10; now() >> 10 == start;) {
    }
    for (std::uint64_t delay = random_() % 128; delay > 0; --delay) asm volatile("" ::: "memory");
  }

  unsigned roles_;
  far::rank_t players_;
  std::vector<std::vector<far::ptr<cell>>> variables_;
  std::vector<far::ptr<payload>> payloads_;
  std::vector<far::ptr<word>> turns_;
  std::mt19937_64 random_;
  std::size_t run_ = 0;
  std::size_t shift_ = 0;
  word due_ = 0;
};

/// Message passing: if the flag is seen, so is what was put before.
int judge_message(const std::vector<readings>& all) {
  auto [flag, data] = all[1];
  if (flag == 1 && data != 1) return -1;
  return flag == 0 && data == 1;  // the reader came between the two
}

int judge_both_zero(const std::vector<readings>& all) {
  if (all[0][0] == 0 && all[1][0] == 0) return -1;
  return all[0][0] == 1 && all[1][0] == 1;
}

int judge_both_one(const std::vector<readings>& all) {
  if (all[0][0] == 1 && all[1][0] == 1) return -1;
  return all[0][0] == 0 && all[1][0] == 0;
}

/// All words of the payload, or which value differs.
word all_of(const payload& p) {
  for (word w : p.words)
    if (w != p.words[0]) return 1000 + w;
  return p.words[0];
}

}  // namespace

// put data, flush, put flag  ||  get flag, get data
FAR_TEST(message_passing_by_puts) {
  litmus t(2, 2);
  auto result = t.race(
      [&](unsigned role) -> readings {
        if (role == 0) {
          far::put(t.at(0), 1u);
          far::flush();
          far::put(t.at(1), 1u);
          return {};
        }
        word flag = far::get(t.at(1));
        word data = far::get(t.at(0));
        return {flag, data};
      },
      judge_message);
  CHECK_EQ(result.forbidden, 0);
}

// put data, flush(rank), swap flag  ||  atomic_load flag, get data
FAR_TEST(message_passing_by_atomics) {
  litmus t(2, 2);
  auto result = t.race(
      [&](unsigned role) -> readings {
        if (role == 0) {
          far::put(t.at(0), 1u);
          far::flush(t.at(0).rank());
          far::atomic_store(t.at(1), 1u);
          return {};
        }
        word flag = far::atomic_load(t.at(1));
        word data = far::get(t.at(0));
        return {flag, data};
      },
      judge_message);
  CHECK_EQ(result.forbidden, 0);
}

// The same with 512 bytes of data, of which none may be old.
FAR_TEST(message_passing_of_many_words) {
  litmus t(2, 2);
  payload ones;
  ones.words.fill(1);
  auto result = t.race(
      [&](unsigned role) -> readings {
        if (role == 0) {
          far::put(t.data(), ones);
          far::flush();
          far::atomic_store(t.at(1), 1u);
          return {};
        }
        word flag = far::atomic_load(t.at(1));
        word data = all_of(far::get(t.data()));
        return {flag, data};
      },
      judge_message);
  CHECK_EQ(result.forbidden, 0);
}

// put data, flush, put flag  ||  get flag until it is seen, get data
FAR_TEST(message_passing_by_polling) {
  litmus t(2, 2);
  payload ones;
  ones.words.fill(1);
  auto result = t.race(
      [&](unsigned role) -> readings {
        if (role == 0) {
          far::put(t.data(), ones);
          far::flush();
          far::put(t.at(1), 1u);
          far::flush();
          return {};
        }
        word polls = 0;
        while (far::get(t.at(1)) == 0)
          if (++polls > 100) far::progress(), std::this_thread::yield();
        return {polls, all_of(far::get(t.data()))};
      },
      [](const std::vector<readings>& all) { return all[1][1] != 1 ? -1 : all[1][0] > 0; });
  CHECK_EQ(result.forbidden, 0);
}

// async_get may be waited for in any order, but is complete when it is ready.
FAR_TEST(message_passing_by_async_gets) {
  litmus t(2, 2);
  auto result = t.race(
      [&](unsigned role) -> readings {
        if (role == 0) {
          far::async_put(t.at(0), 1u).wait();
          far::flush();
          far::async_swap(t.at(1), 1u).wait();
          return {};
        }
        word flag = far::async_get(t.at(1)).get();
        word data = far::async_get(t.at(0)).get();
        return {flag, data};
      },
      judge_message);
  CHECK_EQ(result.forbidden, 0);
}

// put to everybody, barrier, everybody has it: read by get and by load.
FAR_TEST(message_passing_by_barrier) {
  far::rank_t me = far::rank(), all = far::nprocs();
  auto mail = objects_on_each_rank<payload>(all, payload{});
  long wrong = 0;
  for (word round = 1; round <= 60; ++round) {
    payload letter;
    for (far::rank_t to = 0; to < all; ++to) {
      letter.words.fill(round * 1000 + me);
      far::put(mail[to] + me, letter);
    }
    far::barrier();
    for (far::rank_t from = 0; from < all; ++from) {
      for (word w : mail[me].local()[from].words) wrong += w != round * 1000 + from;
      wrong += all_of(far::get(mail[(me + round) % all] + from)) != round * 1000 + from;
    }
    far::barrier();
  }
  CHECK_EQ(wrong, 0);
  release(mail);
}

// Store buffering: put x, flush, get y  ||  put y, flush, get x: one of them sees the other.
FAR_TEST(store_buffering) {
  litmus t(2, 2);
  auto result = t.race(
      [&](unsigned role) -> readings {
        far::put(t.at(role), 1u);
        far::flush();
        return {far::get(t.at(1 - role))};
      },
      judge_both_zero);
  CHECK_EQ(result.forbidden, 0);
}

// The same by atomics, whose words are read by a get after a flush, or by an atomic.
FAR_TEST(store_buffering_by_swap_and_get) {
  litmus t(2, 2);
  auto result = t.race(
      [&](unsigned role) -> readings {
        far::swap(t.at(role), 1u);
        far::flush();
        return {far::get(t.at(1 - role))};
      },
      judge_both_zero);
  CHECK_EQ(result.forbidden, 0);
}

FAR_TEST(store_buffering_by_swap_and_load) {
  litmus t(2, 2);
  auto result = t.race(
      [&](unsigned role) -> readings {
        far::swap(t.at(role), 1u);
        return {far::atomic_load(t.at(1 - role))};
      },
      judge_both_zero);
  CHECK_EQ(result.forbidden, 0);
}

// Load buffering: get x, put y  ||  get y, put x: no value comes from the future.
FAR_TEST(load_buffering) {
  litmus t(2, 2);
  auto result = t.race(
      [&](unsigned role) -> readings {
        word seen = far::get(t.at(role));
        far::put(t.at(1 - role), 1u);
        return {seen};
      },
      judge_both_one);
  CHECK_EQ(result.forbidden, 0);
}

// S: put x=2, flush, put y=1  ||  get y, put x=1: if y was seen, x=1 is the last word.
FAR_TEST(a_put_after_a_get_is_later) {
  litmus t(2, 2);
  auto result = t.race(
      [&](unsigned role) -> readings {
        if (role == 0) {
          far::put(t.at(0), 2u);
          far::flush();
          far::put(t.at(1), 1u);
          far::flush();
          return {};
        }
        word seen = far::get(t.at(1));
        if (seen == 0) return {0, 1};
        far::put(t.at(0), 1u);
        far::flush();
        return {seen, far::get(t.at(0))};
      },
      [](const std::vector<readings>& all) { return all[1][1] != 1 ? -1 : all[1][0] == 1; });
  CHECK_EQ(result.forbidden, 0);
}

// Independent reads of independent writes: atomics have one order for all.
FAR_TEST(independent_reads_of_independent_writes) {
  litmus t(4, 2);
  auto result = t.race(
      [&](unsigned role) -> readings {
        if (role < 2) {
          far::swap(t.at(role), 1u);
          return {};
        }
        word first = far::atomic_load(t.at(role - 2));
        word second = far::atomic_load(t.at(3 - role));
        return {first, second};
      },
      [](const std::vector<readings>& all) {
        bool a = all[2] == readings{1, 0}, b = all[3] == readings{1, 0};
        return a && b ? -1 : a || b;
      });
  CHECK_EQ(result.forbidden, 0);
}

// Write to read causality: swap x  ||  load x, swap y  ||  load y, load x: who has seen what
// another one did on seeing x sees x.
FAR_TEST(write_to_read_causality) {
  litmus t(3, 2);
  auto result = t.race(
      [&](unsigned role) -> readings {
        if (role == 0) {
          far::swap(t.at(0), 1u);
          return {};
        }
        if (role == 1) {
          word seen = far::atomic_load(t.at(0));
          if (seen == 1) far::swap(t.at(1), 1u);
          return {seen};
        }
        word flag = far::atomic_load(t.at(1));
        word data = far::atomic_load(t.at(0));
        return {flag, data};
      },
      [](const std::vector<readings>& all) {
        return all[2][0] == 1 && all[2][1] == 0 ? -1 : all[2][0] == 1;
      });
  CHECK_EQ(result.forbidden, 0);
}

// Coherence: one word's values are seen by everybody in one order, and a rank sees its own puts.
FAR_TEST(reads_of_one_word_never_go_back) {
  litmus t(2, 1);
  auto result = t.race(
      [&](unsigned role) -> readings {
        if (role == 0) {
          word own = 0;
          for (word v = 1; v <= 8; ++v) {
            far::put(t.at(0), v);
            own |= far::get(t.at(0)) ^ v;  // nobody else writes
          }
          return {own};
        }
        word last = 0, back = 0, steps = 0;
        for (int i = 0; i < 12; ++i) {
          word now = far::get(t.at(0));
          back |= now < last || now > 8;
          steps += now != last;
          last = now;
        }
        return {back, steps};
      },
      [](const std::vector<readings>& all) {
        return all[0][0] != 0 || all[1][0] != 0 ? -1 : all[1][1] > 1;
      });
  CHECK_EQ(result.forbidden, 0);
}

// CoWW and flush: puts of one rank to one word, each flushed, end with the last.
FAR_TEST(puts_to_one_word_stay_in_order) {
  litmus t(2, 2);
  auto result = t.race(
      [&](unsigned role) -> readings {
        if (role == 0) {
          far::put(t.at(0), 1u);
          far::flush();
          far::put(t.at(0), 2u);
          far::flush();
          far::atomic_store(t.at(1), 1u);
          return {};
        }
        word flag = far::atomic_load(t.at(1));
        return {flag, far::get(t.at(0))};
      },
      [](const std::vector<readings>& all) {
        return all[1][0] == 1 && all[1][1] != 2 ? -1 : all[1][1] == 1 || all[1][1] == 2;
      });
  CHECK_EQ(result.forbidden, 0);
}

namespace {

/// A writer puts patterns over an object of `N` bytes that all others get meanwhile: each aligned
/// word is one of the patterns as a whole. `skew`: how far the private buffers are from alignment.
template <std::size_t N>
void words_are_not_torn(std::size_t skew) {
  if (!far::detail::here().link.racy_get()) SKIP("this transport does not promise racy_get");
  static_assert(N % 8 == 0);
  auto at = shared_objects<std::array<word, N / 8>>(0);
  auto stop = shared_objects<word>(0);
  far::rank_t writer = far::nprocs() - 1;
  auto bytes = far::pointer_cast<unsigned char>(at);
  long torn = 0, changes = 0;
  spread_over_cores apart(far::rank());
  if (far::rank() == writer) {
    auto begin = std::chrono::steady_clock::now();
    const std::chrono::duration<double> enough(chosen_budget() / 5);
    alignas(16) unsigned char source[N + 16];
    for (unsigned i = 1;; ++i) {
      std::fill_n(source + skew, N, static_cast<unsigned char>(i % 250 + 1));
      far::put(bytes, source + skew, N);
      if (i % 16 == 0) far::flush();
      if (i % 64 == 0 && std::chrono::steady_clock::now() - begin > enough) break;
    }
    far::atomic_store(stop, 1u);
  }
  alignas(16) unsigned char buffer[N + 16];
  unsigned char last = 0;
  for (bool over = false; !over;) {
    over = far::atomic_load(stop) == 1;  // at least one look, after the end too
    for (int i = 0; i < 50; ++i) {
      far::get(bytes, buffer + skew, N);
      for (std::size_t w = 0; w < N; w += 8)
        for (std::size_t b = 1; b < 8; ++b) torn += buffer[skew + w + b] != buffer[skew + w];
      changes += buffer[skew] != last;
      last = buffer[skew];
    }
    std::this_thread::yield();
  }
  CHECK_EQ(torn, 0);
  changes = far::all_reduce(changes);
  far_test::note(N, " bytes: ", changes, " changes seen");
  release(at);
  release(stop);
}

}  // namespace

FAR_TEST(racy_gets_of_64_bytes) { words_are_not_torn<64>(0); }
FAR_TEST(racy_gets_of_72_bytes) { words_are_not_torn<72>(0); }
FAR_TEST(racy_gets_of_4096_bytes) { words_are_not_torn<4096>(0); }
FAR_TEST(racy_gets_to_odd_addresses) { words_are_not_torn<256>(3); }
FAR_TEST(racy_gets_of_1000_bytes_to_odd_addresses) { words_are_not_torn<1000>(3); }

}  // namespace litmus_tests
