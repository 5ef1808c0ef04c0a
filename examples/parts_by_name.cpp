// A store: values of any size, named by key. Each rank puts the parts that it has made, and reads,
// changes and counts those of others, wherever they lie.
#include <farside/farside.hpp>

#include <cstdlib>
#include <string>

/// A part of a machine: its drawing is large, and how often it was asked for is a cell, which is
/// changed by one atomic.
struct part {
  double drawing[64];
  int revision;
  long asked;
};
template <>
struct far::cells_of<part> : far::cells<&part::asked> {};

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    far::store<std::string, part> parts(100);
    const far::rank_t me = far::rank(), n = far::nprocs();
    auto name = [](far::rank_t r) { return "wheel of rank " + std::to_string(r); };

    part mine{};
    mine.drawing[0] = me;
    bool good = parts.put(name(me), mine) && !parts.put(name(me), mine);  // it is there now
    far::barrier();

    const std::string other = name((me + 1) % n);
    good = good && parts.get(other)->drawing[0] == (me + 1) % n;  // one get when it is known
    parts.fetch_add(other, &part::asked, 1);
    parts.fetch_add(name(0), &part::asked, 1);
    far::barrier();
    good = good && parts.get(name(0), &part::asked) == static_cast<long>(n) + 1;

    // Whoever is first draws it anew; the others see that it is another version by now.
    auto seen = parts.get_versioned(name(0));
    far::barrier();
    part next = seen->value;
    ++next.revision;
    const bool first = parts.update_if(name(0), seen->version, next);
    good = good && far::all_reduce(first ? 1 : 0, std::plus<>()) == 1;
    good = good && parts.get(name(0), &part::revision) == 1;
    far::barrier();

    std::size_t held = 0;
    for (auto entry : parts.local()) held += entry.value.asked > 0;  // no copies, no communication
    good = good && far::all_reduce(held, std::plus<>()) == parts.size();
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
