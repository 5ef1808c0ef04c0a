// Programs that can never go on, and programs that only look so: `hangs NAME`. hangs_test.sh knows
// what must be said of each. Lines are named in its messages: `// at: NAME` marks them.
#include <farside/containers/circular_queue.hpp>
#include <farside/containers/hash_map.hpp>
#include <farside/core/rpc.hpp>
#include <farside/farside.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

constexpr auto long_time = std::chrono::milliseconds(4500);  // longer than it takes to decide

bool first() { return far::rank() == 0; }

/// Compiled as it stands, so that a stack has its name.
[[gnu::noinline]] void wait_for_the_others() {
  far::barrier();  // at: computes
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

const std::map<std::string, int (*)()> programs = {
    // --- can never go on -----------------------------------------------------------------------
    {"barrier-alone",
     [] {
       if (first()) far::barrier();  // at: barrier-alone
       return 0;
     }},
    {"different",
     [] {
       far::barrier();
       if (first())
         far::all_reduce(1);  // at: all_reduce
       else
         far::barrier();  // at: barrier
       return 0;
     }},
    {"different-structures",
     [] {
       struct three {
         long a, b, c;
         three operator+(const three& o) const { return {a + o.a, b + o.b, c + o.c}; }
       };
       for (int i = 0; i < 3; ++i) far::all_reduce(7);
       if (first())
         far::all_reduce(three{1, 2, 3});  // at: structures
       else
         far::barrier();  // at: no-structures
       return 0;
     }},
    {"quiesce-alone",
     [] {
       far::hash_map<int, int> ages(100);
       if (first()) far::quiesce();
       return 0;
     }},
    {"fence-alone",
     [] {
       far::store<int, int> parts(100);
       if (first()) parts.fence();
       return 0;
     }},
    {"save-alone",
     [] {
       far::store<int, int> parts(100);
       if (first()) parts.save("/dev/null");
       return 0;
     }},
    {"print-alone",
     [] {
       if (first()) far::print("hello\n");
       return 0;
     }},
    {"print-and-barrier",
     [] {
       if (first()) far::print("hello\n");
       if (!first()) far::barrier();  // at: no-print
       return 0;
     }},
    {"map-alone",
     [] {
       if (first()) far::hash_map<int, int> ages(100);  // at: map-alone
       return 0;
     }},
    {"clear-alone",
     [] {
       far::hash_map<int, int> ages(100);
       if (first()) ages.clear();
       return 0;
     }},
    {"team",
     [] {
       far::team two = far::world().split(far::rank() < 2 ? 0 : -1);
       if (first()) far::barrier(two);  // at: team
       far::barrier();                  // at: world
       return 0;
     }},
    {"pop",
     [] {
       far::circular_queue<int> inbox(0, 16, {.name = "inbox"});
       if (first()) inbox.pop();
       return 0;
     }},
    {"lock",
     [] {
       far::mutex door(0, {.name = "door"});
       if (first()) door.lock();
       far::barrier();
       if (!first()) door.lock();
       return 0;
     }},
    {"handler",
     [] {
       if (first())
         far::rpc(1, [] {
           return far::rpc(2, [] { return far::rpc(1, [] { return 1; }).get(); }).get();
         }).get();
       return 0;
     }},

    {"handler-barrier",
     [] {
       if (first()) far::rpc(1, [] { far::barrier(); }).get();
       far::barrier();
       return 0;
     }},
    {"handler-reduce",
     [] {
       if (first()) far::rpc(1, [] { return far::all_reduce(1); }).get();
       far::barrier();
       return 0;
     }},

    // --- goes on ---------------------------------------------------------------------------------
    {"computes",
     [] {
       if (first()) std::this_thread::sleep_for(long_time);
       wait_for_the_others();
       return 0;
     }},
    {"serves",  // a rank that waits runs a handler, for long
     [] {
       if (first())
         far::rpc(1, [] {
           std::this_thread::sleep_for(long_time);
           return 1;
         }).get();
       far::barrier();
       return 0;
     }},
    {"teams-differ",  // more collectives on some ranks than on others, each over its own team
     [] {
       far::team own = far::world().split(far::rank() < 2 ? 0 : 1);
       for (far::rank_t i = 0; i < 20 * (1 + far::rank() / 2); ++i) far::barrier(own);
       if (first()) far::all_reduce(1, std::plus<>(), far::world().split(0));
       if (!first()) far::all_reduce(1, std::plus<>(), far::world().split(0));
       return 0;
     }},

    // --- ends otherwise --------------------------------------------------------------------------
    {"throws",
     [] {
       if (far::rank() == 1) throw std::runtime_error("no room at the inn");
       far::barrier();
       return 0;
     }},
    {"no-room-for-an-answer",
     [] {
       if (first()) {
         far::rpc(1, [] { return 1; }).get();  // a slot for short answers is there from now on
         for (std::size_t piece = std::size_t{1} << 30; piece != 8; piece /= 2) try {
             for (;;) (void)far::alloc<std::byte>(piece);
           } catch (const far::allocation_error&) {
           }
         far::rpc(1, [] { return std::string(600, 'x'); }).get();
       }
       far::barrier();
       return 0;
     }},
    {"returns", [] { return far::rank() == 2 ? 3 : 0; }},
    {"says",
     [] {
       for (int i = 0; i < 50; ++i)
         far::print_here("line ", i, " ", std::string(200, static_cast<char>('a' + far::rank())));
       if (first()) far::print_here("alone");
       return 0;
     }},
    {"hangs-computing",
     [] {
       if (first()) std::this_thread::sleep_for(std::chrono::minutes(5));
       wait_for_the_others();
       return 0;
     }},
};

}  // namespace

int main(int argc, char** argv) {
  auto chosen = programs.find(argc > 1 ? argv[1] : "");
  std::string name = argc > 1 ? argv[1] : "";
  if (name == "thread") {  // another thread of a rank pushes, while the rank itself waits
    return far::run(argc, argv,
                    [] {
                      far::circular_queue<int> inbox(0, 16, {.name = "inbox"});
                      std::thread other;
                      if (far::rank() == 1)
                        other = std::thread([&] {
                          std::this_thread::sleep_for(long_time);
                          inbox.push(1);
                        });
                      if (first()) inbox.pop();
                      far::barrier();
                      if (other.joinable()) other.join();
                    },
                    {.threads = far::thread_level::multiple});
  }
  if (chosen == programs.end()) {
    std::fprintf(stderr, "usage: hangs NAME\n");
    return 2;
  }
  return far::run(argc, argv, [&] { return chosen->second(); });
}
