// What is left when a rank stops for good: whoever finishes must have seen whole and right things.
//
// Each rank moves tokens from the others' pots to its own by compare-and-swap, and keeps a journal:
// an entry is put, flushed, and then announced by an atomic. A rank that stops may lose what it had
// not announced, and nothing else. Started by `farside sim --stop random`; without a fault it
// also checks the sum of all tokens.
#include <farside/farside.hpp>

#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

namespace {

using word = std::uint64_t;
constexpr word tokens = 20;
constexpr std::size_t entries = 64;

void expect(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

struct entry {
  word number, check;
};

void body() {
  far::rank_t me = far::rank(), n = far::nprocs();
  auto own_pot = far::make<word>(tokens);
  auto own_journal = far::alloc<entry>(entries);
  auto own_length = far::make<word>(0u);
  auto pots = far::all_gather(own_pot);
  auto journals = far::all_gather(own_journal);
  auto lengths = far::all_gather(own_length);
  far::barrier();

  std::mt19937_64 random(me + 1);
  for (word i = 0; i < 40; ++i) {
    far::rank_t from = static_cast<far::rank_t>(random() % n);
    word seen = far::atomic_load(pots[from]);
    if (seen > 0 && far::compare_swap(pots[from], seen, seen - 1) == seen)
      far::fetch_add(pots[me], 1u);

    far::put(journals[me] + static_cast<std::ptrdiff_t>(i), entry{i, ~i});
    far::flush(me);
    far::atomic_store(lengths[me], i + 1);

    far::rank_t other = static_cast<far::rank_t>(random() % n);
    word length = far::atomic_load(lengths[other]);
    expect(length <= 40, "a journal is longer than it can be");
    if (length > 0) {
      entry last = far::get(journals[other] + static_cast<std::ptrdiff_t>(length - 1));
      expect(last.number == length - 1 && last.check == ~last.number,
             "an entry that was announced is not there");
    }
    if (i % 8 == 0) far::dealloc(far::alloc_on<word>(other));
    if (i % 16 == 0) far::barrier();
  }
  far::barrier();
  expect(far::all_reduce(far::get(own_pot)) == tokens * n, "tokens were lost or made");
}

}  // namespace

int main(int argc, char** argv) {
  return far::run(argc, argv, [] { body(); });
}
