// Objects that are not trivially copyable in far memory: a box holds anything serializable. What
// has a fixed length lies in the box; the bytes of a string lie behind a far pointer.
#include <farside/farside.hpp>

#include <cstdlib>
#include <string>
#include <utility>

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    static_assert(far::box<std::pair<int, double>>::in_place);
    static_assert(!far::box<std::string>::in_place);

    far::rank_t me = far::rank(), next = (me + 1) % far::nprocs();
    auto slots = far::all_gather(far::alloc<far::box<std::string>>());

    // The box goes to the next rank's slot, and the bytes of the word to its memory.
    far::put(slots[next],
             far::box<std::string>::pack_on(next, "a word from rank " + std::to_string(me)));
    far::barrier();

    auto box = far::get(slots[me]);
    std::string word = box.unpack();
    box.release();  // the rank that takes a box out frees it
    far::print("rank ", me, " has ", word, "\n");
    far::rank_t from = (me + far::nprocs() - 1) % far::nprocs();
    return word == "a word from rank " + std::to_string(from) ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
