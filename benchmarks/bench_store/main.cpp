// What operations of far::store cost. First beside floors of this process: a hash map, memcpy, a
// vector. Then the studies of a paper that kept such data in lists which a network card matched:
// gets by number of entries, beside lists at the owner, of large values, and puts until they are
// seen. Each run has one way of serving (FARSIDE_ATTENTION, FARSIDE_MPI): `farside bench store` makes
// one after another, and draws them together.
#include "rows.hpp"

int main(int argc, char** argv) {
  return far::run(argc, argv, [](int count, char** words) {
    return far::bench::main(count, words, "Measures the operations of far::store.",
                            [](far::bench::suite& s) {
                              floor_rows(s);
                              get_rows(s);
                              matching_rows(s);
                              neighbour_rows(s);
                              visible_rows(s);
                            });
  });
}
