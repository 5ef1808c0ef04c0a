// Messages: each rank keeps a part of a phone book in an ordinary std::map, and the others ask it.
// What needs several steps at its owner (find, compare, change, answer) is one message.
#include <farside/farside.hpp>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

using book = std::map<std::string, long>;

/// Each rank's part. Handlers find that of the rank that they run on.
static far::rank_local<book> part;

static far::rank_t owner(const std::string& name) {
  return static_cast<far::rank_t>(std::hash<std::string>()(name) % far::nprocs());
}

static void add(const std::string& name, long number) { (*part)[name] = number; }

static std::optional<long> look_up(const std::string& name) {
  auto entry = part->find(name);
  return entry == part->end() ? std::nullopt : std::optional(entry->second);
}

static bool replace(const std::string& name, long from, long to) {
  auto entry = part->find(name);
  if (entry == part->end() || entry->second != from) return false;
  entry->second = to;
  return true;
}

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    constexpr long people = 1000;
    long first = far::rank() * people;
    auto name = [](long i) { return "person " + std::to_string(i); };

    far::visits visits;  // gathers messages by target: few large ones instead of many small
    for (long i = first; i < first + people; ++i) visits.visit(owner(name(i)), add, name(i), i);
    far::quiesce();  // all have been handled
    far::print("rank ", far::rank(), " keeps ", part->size(), " entries\n");

    std::string somebody = name(first == 0 ? far::nprocs() * people - 1 : first - 1);
    auto number = far::rpc(owner(somebody), look_up, somebody);  // begun
    auto nobody = far::rpc(owner("nobody"), look_up, std::string("nobody"));
    bool right = number.get().has_value() && !nobody.get();  // waited for, while others ask

    std::string hot = name(0);  // all ranks want to change one entry, from what it was: one can
    bool won = far::rpc(owner(hot), replace, hot, 0L, 100L + far::rank()).get();
    right = right && far::all_reduce(static_cast<int>(won)) == 1;
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
