// A program that runs on its data dependencies alone: the blocks of a table, each of which needs the
// one above it and the one left of it (here: how many ways lead to a cell of a grid). No rank polls,
// and no barrier stands between steps; a block is computed where the one above it lies, as soon as
// both are there.
#include <farside/farside.hpp>

#include <array>
#include <cstdlib>
#include <map>

namespace {

constexpr int side = 8, blocks = 6;  // cells of a block, blocks of the grid, each way
using edge = std::array<unsigned long, side>;

/// The last row and the last column of a block: what its neighbours need.
struct block {
  edge below, right;
};

/// Row and column of a block as its key.
constexpr int at(int row, int column) { return row * blocks + column; }

/// Columns of blocks are dealt out to ranks.
struct by_column {
  far::rank_t operator()(int key, far::rank_t ranks) const {
    return static_cast<far::rank_t>(key % blocks) % ranks;
  }
};

/// Each cell is the sum of those above it and left of it.
block compute(const edge& above, const edge& left) {
  block made;
  edge row = above;
  for (int i = 0; i < side; ++i) {
    for (int j = 0; j < side; ++j) {
      const auto k = static_cast<std::size_t>(j);
      row[k] += j == 0 ? left[static_cast<std::size_t>(i)] : row[k - 1];
    }
    made.right[static_cast<std::size_t>(i)] = row[side - 1];
  }
  made.below = row;
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    far::store<int, block, by_column> grid(blocks * blocks);
    const int me = static_cast<int>(far::rank()), n = static_cast<int>(far::nprocs());

    for (int row = 1; row < blocks; ++row)
      for (int column = 1; column < blocks; ++column)
        if ((row + column) % n == me)
          (void)far::on_keys(
              grid, {at(row - 1, column), at(row, column - 1)},
              [](auto& there, const block& above, const block& left, int to) {
                there.post(to, compute(above.below, left.right));
              },
              at(row, column));

    // Along the upper and the left side one way leads to each cell: that sets it going.
    edge ones;
    ones.fill(1);
    if (me == 0)
      for (int i = 0; i < blocks; ++i) {
        grid.post(at(0, i), {ones, ones});
        if (i > 0) grid.post(at(i, 0), {ones, ones});
      }
    const far::fence_report report = grid.fence();  // all of it has run

    // The same by one rank for itself.
    std::map<int, block> alone;
    for (int i = 0; i < blocks; ++i) alone[at(0, i)] = alone[at(i, 0)] = {ones, ones};
    for (int row = 1; row < blocks; ++row)
      for (int column = 1; column < blocks; ++column)
        alone[at(row, column)] =
            compute(alone[at(row - 1, column)].below, alone[at(row, column - 1)].right);

    const auto last = grid.get(at(blocks - 1, blocks - 1));
    bool good = report.activated == blocks * blocks && grid.size() == blocks * blocks;
    good = good && last && last->below == alone[at(blocks - 1, blocks - 1)].below;
    far::barrier();
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
