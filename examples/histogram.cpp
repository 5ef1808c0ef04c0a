// A histogram over all ranks, two ways: one far atomic for each value, and values sent in large
// messages to the rank that holds their bin. Both must agree, with each other and with one counted
// alone.
#include <farside/farside.hpp>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <vector>

constexpr std::size_t bins = 1000, values = 50'000;

static std::vector<std::size_t> draw(far::rank_t rank) {
  std::mt19937 random(rank);
  std::normal_distribution<double> bell(bins / 2.0, bins / 10.0);
  std::vector<std::size_t> result;
  while (result.size() < values)
    if (double x = bell(random); x >= 0 && x < bins) result.push_back(static_cast<std::size_t>(x));
  return result;
}

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    auto mine = draw(far::rank());

    far::darray<std::int64_t> by_atomics(bins, 0);
    for (std::size_t bin : mine) by_atomics.fetch_add(bin, 1);

    // Bins are counted by their owners, in their own memory: no atomics at all.
    far::darray<std::int64_t> by_messages(bins, 0);
    far::exchange<std::size_t> mail;
    auto count = [&](std::span<const std::size_t> some) {
      for (std::size_t bin : some) ++by_messages.local()[bin - by_messages.local_begin()];
    };
    for (std::size_t bin : mine) mail.send(by_messages.owner(bin), bin, count);
    mail.finish(count);

    auto first = by_atomics.all_to_vector(), second = by_messages.all_to_vector();
    std::vector<std::int64_t> alone(bins);
    for (far::rank_t rank = 0; rank < far::nprocs(); ++rank)
      for (std::size_t bin : draw(rank)) ++alone[bin];
    if (far::rank() == 0)
      std::printf("the middle bin has %ld of %zu values; %s\n", long(first[bins / 2]),
                  values * far::nprocs(),
                  first == alone && second == alone ? "all agree" : "THEY DIFFER");
    return first == alone && second == alone ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
