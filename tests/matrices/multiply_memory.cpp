// Products that run out of far memory: at the beginning, for partial tiles, for the result. All members
// throw, what was taken is given back, and the next product is right.
#include "matrix_oracle.hpp"

#include "containers/full_segments.hpp"

#include <memory>
#include <string>

namespace multiply_memory_tests {

using far::stationary;
using far::stealing;
using full_segments::ballast;
using full_segments::refused;
using matrix_tests::everything;
using matrix_tests::fill;
using matrix_tests::product_of;

namespace {

/// One-sided: how much of this rank's own segment is free, in pieces of 1 KiB and more.
std::size_t free_bytes() {
  std::vector<far::ptr<std::byte>> taken;
  std::size_t sum = 0;
  for (std::size_t piece = std::size_t{1} << 40; piece >= 1024; piece /= 2) try {
      while (true) {
        taken.push_back(far::alloc<std::byte>(piece));
        sum += piece;
      }
    } catch (const far::allocation_error&) {
    }
  for (auto block : taken) far::dealloc(block);
  return sum;
}

/// Collective: whether the product is refused, on all ranks alike, while the last one has `spare`
/// bytes in one piece and nothing else.
template <class M>
bool is_refused(const M& a, M& c, const far::multiply_options& how, std::size_t spare,
                const std::vector<long>& expected) {
  far::barrier();
  std::unique_ptr<ballast> full;
  if (far::rank() + 1 == far::nprocs()) full = std::make_unique<ballast>(spare);
  far::barrier();
  const bool threw = refused([&] { far::multiply(a, a, c, how); });
  const int all = far::all_reduce(threw ? 1 : 0);
  CHECK(all == 0 || all == static_cast<int>(far::nprocs()));
  far::barrier();
  if (all == 0) CHECK(everything(c) == expected);
  far::barrier();
  full.reset();
  far::barrier();
  return all != 0;
}

/// Likewise, and nothing is kept of those that were refused: a partial tile takes 2 KiB, of which
/// some ranks make several. Which pieces a rank makes, and so whether there is room, may differ from
/// time to time. What is free is looked at when C is whole, so that it has the same tiles.
template <class M>
bool check_refusal(const M& a, M& c, const far::multiply_options& how,
                   const std::vector<long>& expected) {
  constexpr std::size_t less_than_a_tile = 1500;
  if (!is_refused(a, c, how, less_than_a_tile, expected)) return false;
  constexpr std::size_t noise = 8192;  // of pieces that are too small to be looked for
  auto free_when_whole = [&] {
    far::multiply(a, a, c, how);
    far::barrier();
    const std::size_t free = free_bytes();
    far::barrier();
    return free;
  };
  const std::size_t before = free_when_whole();
  for (int round = 0; round < 4; ++round) is_refused(a, c, how, less_than_a_tile, expected);
  const std::size_t after = free_when_whole();
  CHECK(after + noise >= before);
  if (after + noise < before)
    std::printf("rank %u: %s keeps %zu bytes\n", far::rank(), to_text(how.algorithm).c_str(),
                before - after);
  far::barrier();
  return true;
}

template <class M>
void check_memory(stealing help) {
  const far::block_custom cuts{{16, 16}, far::squarest_grid({64, 64}, far::nprocs())};
  M a({64, 64}, cuts), c({64, 64}, cuts);
  fill(a, {1, 500});
  far::barrier();
  const auto factor = everything(a);
  const auto expected = product_of(factor, factor, 64, 64, 64, far::plus_times<long>());
  int refusals = 0;
  for (stationary algorithm : {stationary::c, stationary::a, stationary::b, stationary::layers,
                               stationary::summa, stationary::slices}) {
    if (help != stealing::none && algorithm != stationary::c && algorithm != stationary::a)
      continue;
    const far::multiply_options how{
        .algorithm = algorithm, .stealing = help, .update_memory = 4096};
    CHECK(is_refused(a, c, how, 0, expected));
    refusals += check_refusal(a, c, how, expected);
    far::multiply(a, a, c, how);
    CHECK(everything(c) == expected);
    far::barrier();
  }
  // Sparse results need room by any algorithm, dense ones where partial tiles are sent. A rank that owns
  // no tile and only helps others may come when all is taken.
  const bool owns = far::broadcast(!c.my_tiles().empty(), far::nprocs() - 1);
  const bool sends = far::nprocs() > 1 && help == stealing::none;
  if (sends || (matrix_tests::is_sparse<M> && owns)) CHECK(refusals > 0);
}

}  // namespace

FAR_TEST(dense_products_without_room) {
  check_memory<far::matrix<long>>(stealing::none);
  check_memory<far::matrix<long>>(stealing::near);
}
FAR_TEST(sparse_products_without_room) {
  check_memory<far::sparse_matrix<long>>(stealing::none);
  check_memory<far::sparse_matrix<long>>(stealing::random);
}

}  // namespace multiply_memory_tests
