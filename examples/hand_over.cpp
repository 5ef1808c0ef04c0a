// One rank hands data to the next: put the data, flush, then raise a flag with an atomic. The
// flush is what makes it right: an atomic may overtake a put.
#include <farside/farside.hpp>

#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

struct mailbox {
  int letter[16];
  int full;
};

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    far::rank_t me = far::rank(), next = (me + 1) % far::nprocs();
    auto mine = far::make<mailbox>();
    auto boxes = far::all_gather(mine);
    auto flag_of = [](far::ptr<mailbox> box) { return far::pointer_cast<int>(box) + 16; };

    std::vector<int> letter(16);
    std::iota(letter.begin(), letter.end(), static_cast<int>(100 * me));
    far::put(far::pointer_cast<int>(boxes[next]), letter.data(), letter.size());
    far::flush(next);
    far::atomic_store(flag_of(boxes[next]), 1);

    while (far::atomic_load(flag_of(mine)) == 0) std::this_thread::yield();
    mailbox got = far::get(mine);
    far::rank_t from = (me + far::nprocs() - 1) % far::nprocs();
    far::print("rank ", me, " got ", got.letter[0], " to ", got.letter[15], " from rank ", from,
               "\n");
    return got.letter[15] == static_cast<int>(100 * from + 15) ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
