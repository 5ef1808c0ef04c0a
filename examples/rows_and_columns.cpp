// Teams: the ranks as a grid, with a team for each row and each column.
#include <farside/farside.hpp>

#include <cstdlib>
#include <functional>

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    int n = static_cast<int>(far::nprocs()), columns = 1;
    while ((columns + 1) * (columns + 1) <= n) ++columns;
    int me = static_cast<int>(far::rank()), row = me / columns, column = me % columns;

    far::team in_row = far::world().split(row);
    far::team in_column = far::world().split(column);
    int row_sum = far::all_reduce(me, std::plus<>(), in_row);
    int row_of_top = far::broadcast(row, 0, in_column);
    far::print("rank ", me, " is at (", row, ", ", column, "), its row adds up to ", row_sum, "\n");
    return row_of_top == 0 && in_row.rank() == static_cast<far::rank_t>(column) ? EXIT_SUCCESS
                                                                                : EXIT_FAILURE;
  });
}
