// What messages cost beside one-sided operations, in the same run; maps and queues by either; what
// a target that computes does to both; how fast far memory is copied. Each run has one way of
// serving (FARSIDE_ATTENTION, FARSIDE_MPI): `farside bench messages` makes one after another, and
// draws them together.
#include "rows.hpp"

int main(int argc, char** argv) {
  return far::run(argc, argv, [](int count, char** words) {
    return far::bench::main(count, words, "Measures messages beside one-sided operations.",
                            [](far::bench::suite& s) {
                              round_trip_rows(s);
                              engine_rows(s);
                              attention_rows(s);
                              bandwidth_rows(s);
                            });
  });
}
