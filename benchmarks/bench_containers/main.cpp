// What the operations of the containers cost beside their floors, measured in the same run:
//
//   hash_map       an open-addressing table of one process: same hash, bucket size, load and number
//                  of entries. "one after another": the next key depends on the value found, so
//                  that nothing overlaps; "independent": a CPU overlaps what it can
//   shared table   what sharing alone costs: all ranks insert into one plain table
//   floor table    absl::flat_hash_map, where that is installed
//   buffer         the counting loop on that table
//   fast_queue     memcpy of the same bytes
//   two pushers    one pusher on the same queue
//   counter        fetch_add on one word; Bloom filter: the same atomic or load on the same words
//
// Where ranks share no memory, the raw calls of the transport that do the same work come first.
#include "rows.hpp"

namespace {

void all_rows(far::bench::suite& s) {
  using namespace far::bench;
  if (!coherent()) {
    s.say("beside the raw calls of the transport:");
    call_rows(s);
    s.say("beside plain memory of each process, which far memory cannot reach:");
  }
  map_rows(s);
  map_change_rows(s);
  buffer_rows(s);
  queue_rows(s);
  small_rows(s);
}

}  // namespace

int main(int argc, char** argv) {
  return far::run(argc, argv, [](int count, char** words) {
    return far::bench::main(count, words,
                            "Measures the containers' operations beside their floors.", all_rows);
  });
}
