// The pseudo-random numbers are those of splitmix64, the same on every machine and in every version: genomes that
// `farside simulate` makes of a seed, and the runs of `farside sim`, follow from them.
#include <farside/base/random.hpp>

#include "check.hpp"

#include <array>
#include <cmath>
#include <random>
#include <set>

namespace {

void known_numbers() {
  far::random_stream zero(0);
  CHECK(zero() == 0xe220a8397b1dcdaf);
  CHECK(zero() == 0x6e789e6aa1b965f4);
  CHECK(zero() == 0x06c45d188009454f);
  far::random_stream of_seed(1234567);
  CHECK(of_seed() == 6457827717110365317u);
  CHECK(of_seed() == 3203168211198807973u);
}

void streams() {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    for (std::uint64_t stream = 0; stream < 8; ++stream) {
      far::random_stream random(seed, stream);
      for (int i = 0; i < 16; ++i) seen.insert(random());
    }
  CHECK(seen.size() == 8 * 8 * 16);
  CHECK(far::random_stream(5, 3)() == far::random_stream(5, 3)());
}

void ranges() {
  far::random_stream random(2019, 7);
  std::array<int, 6> sides{};
  double sum = 0;
  for (int i = 0; i < 60000; ++i) {
    std::uint64_t side = random.below(6);
    CHECK(side < 6);
    ++sides[side];
    double real = random.real();
    CHECK(real >= 0 && real < 1);
    sum += real;
  }
  for (int side : sides) CHECK(std::abs(side - 10000) < 500);  // five standard deviations
  CHECK(std::abs(sum / 60000 - 0.5) < 0.006);
  CHECK(random.below(1) == 0);
  std::uniform_int_distribution<int> one_to_six(1, 6);
  int drawn = one_to_six(random);
  CHECK(drawn >= 1 && drawn <= 6);
}

}  // namespace

int main() {
  known_numbers();
  streams();
  ranges();
  return verdict("random");
}
