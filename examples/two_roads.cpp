// Paths in a graph: its adjacency matrix squared says which cities are two roads apart, and over
// another semiring how short the shortest way is.
#include <farside/algorithms/multiply.hpp>
#include <farside/farside.hpp>

#include <cstdlib>

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    // A ring of 1,000 cities. Each rank inserts some roads, wherever they are kept.
    constexpr std::size_t cities = 1000;
    far::sparse_matrix<double> roads({cities, cities});
    for (std::size_t city = far::rank(); city < cities; city += far::nprocs()) {
      const std::size_t next = (city + 1) % cities;
      const double length = 1 + static_cast<double>(city % 7);
      roads.insert({city, next}, length);
      roads.insert({next, city}, length);
    }
    roads.assemble();  // collective: sorts in what has come

    // The shortest way over two roads: a sum of lengths, and the least of them.
    far::sparse_matrix<double> two_roads({cities, cities});
    far::multiply(roads, roads, two_roads, far::min_plus<double>());

    // Far from here, and back: the two roads to the next city but one.
    bool good = two_roads.find({10, 12}) == *roads.find({10, 11}) + *roads.find({11, 12});
    good = good && !two_roads.find({10, 500});
    far::print("rank ", far::rank(), " holds ", two_roads.my_tiles().size(), " of ",
               two_roads.grid_shape().size(), " tiles; ", two_roads.nnz(),
               " pairs are two roads apart\n");
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
