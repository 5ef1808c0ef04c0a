// errors MISUSE: one misuse each, in a program that is otherwise right. Started with ranks by
// errors_test.sh, which knows the message expected of each.
#include <farside/containers/fast_queue.hpp>
#include <farside/containers/hash_map.hpp>
#include <farside/containers/store.hpp>
#include <farside/farside.hpp>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using far::rank_t;

void out_of_range(std::size_t past_end) {
  auto& c = far::detail::here();
  far::ptr<long> p(far::nprocs() - 1, c.link.segment_size() - 8 + past_end);
  far::put(p, 1);
}

/// A hash that throws for keys which it took before, once `fails` is set.
struct changes_its_mind {
  static inline std::atomic<bool> fails = false;
  std::size_t operator()(int key) const {
    if (fails && key < 4) throw std::runtime_error("the hash has changed its mind");
    return far::hash<int>()(key);
  }
};

/// The misuses that happen inside a runtime.
const std::map<std::string, void (*)()> misuses = {
    {"second-runtime", [] { far::runtime again; }},
    {"second-thread",
     [] {
       std::string message;
       std::thread([&] {
         try {
           far::rank();
         } catch (const std::exception& e) {
           message = e.what();
         }
       }).join();
       if (!message.empty()) throw std::runtime_error(message);
     }},
    {"alloc-too-much", [] { (void)far::alloc<char>(std::size_t{1} << 43); }},
    {"alloc-bit-by-bit",
     [] {
       for (;;) (void)far::alloc<char>(1 << 16);
     }},
    {"alloc-on-too-much", [] { (void)far::alloc_on<char>(0, std::size_t{1} << 43); }},
    {"alloc-on-bit-by-bit",
     [] {
       for (;;) (void)far::alloc_on<char>(0, 1 << 16);
     }},
    {"alloc-on-bad-rank", [] { (void)far::alloc_on<int>(far::nprocs()); }},
    {"dealloc-twice",
     [] {
       auto p = far::alloc<int>();
       far::dealloc(p);
       far::dealloc(p);
     }},
    {"dealloc-twice-remote",
     [] {
       auto p = far::alloc_on<int>(0);
       far::dealloc(p);
       far::dealloc(p);
     }},
    {"dealloc-twice-by-another",
     [] {
       auto p = far::broadcast(far::rank() == 0 ? far::alloc<long>(4) : far::ptr<long>(), 0);
       far::barrier();
       if (far::rank() == far::nprocs() - 1) {
         far::dealloc(p);
         far::dealloc(p);
       }
       far::barrier();
       (void)far::alloc<long>();  // where the owner notices
       far::barrier();
     }},
    {"dealloc-inside",
     [] {
       auto p = far::alloc<long>(8);
       far::dealloc(p + 1);
     }},
    {"never-freed",
     [] {
       for (int i = 0; i < 3; ++i) (void)far::alloc<long>(4);
       (void)far::make<int>(far::rank());
       auto freed_by_another = far::all_gather(far::alloc<long>(8));
       far::dealloc(far::alloc<long>(2));
       far::barrier();
       far::dealloc(freed_by_another[(far::rank() + 1) % far::nprocs()]);
       far::hash_map<int, int> map(64);
       map.insert(1, 2);
     }},
    {"local-of-others",
     [] {
       auto all = far::all_gather(far::alloc<long>(1));
       far::barrier();
       auto own = all[far::rank()], others = all[far::nprocs() - 1 - far::rank()];
       far::put(own, 5L);
       far::flush();
       if (own.local() == nullptr || *own.local() != 5) throw std::runtime_error("own memory");
       if (others.local() == nullptr) throw std::runtime_error("that is on another node");
       far::dealloc(own);
     }},
    {"bad-root", [] { far::broadcast(1, far::nprocs()); }},
    {"empty-team", [] { far::barrier(far::team()); }},
    {"empty-future", [] { far::future<int>().get(); }},

    // Pointers that lead nowhere. Where memory is mapped the CPU notices.
    {"get-null", [] { far::get(far::ptr<long>()); }},
    {"get-many-null", [] { (void)far::get(far::ptr<long>(), 100); }},
    {"put-null", [] { far::put(far::ptr<long>(), 1); }},
    {"put-many-null",
     [] {
       std::vector<long> values(1000);
       far::put(far::ptr<long>(), values.data(), values.size());
     }},
    {"add-null", [] { far::fetch_add(far::ptr<long>(), 1L); }},
    {"compare-null", [] { far::compare_swap(far::ptr<long>(), 1L, 2L); }},
    {"load-null", [] { far::atomic_load(far::ptr<long>()); }},
    {"copy-from-null", [] { far::copy(far::ptr<long>(), far::alloc<long>(4), 4); }},
    {"copy-to-null", [] { far::copy(far::alloc<long>(4), far::ptr<long>(), 4); }},
    {"ref-null", [] { *far::ptr<long>() = 1; }},
    {"element-of-null", [] { far::ptr<long>()[100] = 1; }},
    {"async-get-null", [] { far::async_get(far::ptr<long>()).get(); }},
    {"async-put-null",
     [] {
       long value = 1;
       far::async_put(far::ptr<long>(), &value, 1).get();
     }},
    {"async-add-null", [] { far::async_fetch_add(far::ptr<long>(), 1L).get(); }},
    {"strided-null",
     [] {
       long values[4] = {};
       far::put_strided(far::ptr<long>(), values, {.counts = {2, 2}, .far_strides = {3}});
     }},
    {"accumulate-null",
     [] {
       double values[2] = {1, 2};
       far::accumulate(far::ptr<double>(), values, 2);
     }},
    {"never-set", [] { far::get(far::ptr<long>(1, 0)); }},
    {"rank-too-high", [] { far::get(far::ptr<long>(far::nprocs(), 4096)); }},
    {"beyond-the-end", [] { out_of_range(8); }},
    {"own-fault-handler",
     [] {
       signal(SIGSEGV, [](int) {
         if (write(2, "own handler\n", 12) == 12) _exit(7);
       });
       far::get(far::ptr<long>());
     }},

    // Noticed by checked builds only, or by luck.
    {"across-the-end",
     [] {
       auto& c = far::detail::here();
       (void)far::get(far::ptr<long>(0, c.link.segment_size() - 64), 9);
     }},
    {"huge-count",
     [] {
       long one = 0;
       far::get(far::make<long>(1), &one, ~std::size_t{0} / 4);
     }},
    {"misaligned", [] { far::fetch_add(far::ptr<long>(0, 0x11004), 1L); }},
    {"device-memory", [] { far::get(far::ptr<long>::from_raw(std::uint64_t{1} << 63 | 4096)); }},
    {"arithmetic",
     [] {
       auto p = far::alloc<long>(4);
       p += std::ptrdiff_t{1} << 42;
       far::put(p, 1);
     }},
    {"arithmetic-below",
     [] {
       far::ptr<long> p(far::nprocs() - 1, 64);
       p -= 100;
     }},
    {"flush-bad-rank", [] { far::flush(far::nprocs()); }},
    {"different-collectives",
     [] {
       if (far::rank() == 1)
         far::all_reduce(1);
       else
         far::broadcast(1, 0);
     }},
    {"different-roots", [] { far::broadcast(1, far::rank() == 1 ? 1 : 0); }},
    {"different-sizes",
     [] {
       std::vector<int> values(far::rank() == 1 ? 11 : 10);
       far::broadcast(std::span(values), 0);
     }},
    {"store-iterator-kept",
     [] {
       far::store<long, long> data(10);
       for (long key = 0; key < 20; ++key) data.put(key, key);
       far::barrier();
       for (auto entry : data.local()) data.erase(entry.key);
     }},
    {"different-types",
     [] {
       if (far::rank() == 1)
         far::broadcast(1.0, 0);
       else
         far::broadcast(1.0f, 0);
     }},
    {"map-moved-from",
     [] {
       far::hash_map<int, int> map(8, {.name = "ages"});
       auto other = std::move(map);
       map.insert(1, 1);
     }},
    {"map-too-large",
     [] {
       far::hash_map<int, int> map(8, {.name = "ages"});
       for (int i = 0;; ++i) map.insert(i, i);
     }},
    {"map-hash-throws",
     [] {
       far::hash_map<int, int, changes_its_mind> map(4, {.name = "ages"});
       if (far::rank() == 0)
         for (int i = 0; i < 4; ++i) map.insert(i, i);
       far::barrier();
       changes_its_mind::fails = true;
       try {  // whoever moves them throws, and the others would wait for that
         for (int i = 4; i < 1000; ++i) map.insert(i * 2 + static_cast<int>(far::rank()), i);
       } catch (const std::runtime_error&) {
       }
     }},
    {"queue-too-full",
     [] {
       far::fast_queue<int> queue(0, 3, {.name = "inbox"});
       for (int i = 0; i < 4; ++i) queue.push(i);
     }},
    {"barrier-or-not",
     [] {
       if (far::rank() == 1)
         far::barrier();
       else
         far::all_gather(1);
     }},
};

int before_runtime(int, char**) {
  far::barrier();
  return 0;
}

int after_runtime(int argc, char** argv) {
  std::optional<far::runtime> world;
  world.emplace(argc, argv);
  auto p = far::make<int>(1);
  world.reset();
  return far::get(p);
}

int map_after_runtime(int argc, char** argv) {
  std::optional<far::runtime> world;
  world.emplace(argc, argv);
  far::hash_map<int, int> map(8, {.name = "ages"});
  map.insert(1, 1);
  world.reset();
  return map.contains(1);
}

int two_in_a_row(int argc, char** argv) {
  {
    far::runtime world(argc, argv);
  }
  far::print("rank ", 1, "\n");
  return 0;
}

/// main as it is mostly written: not for ranks that are threads.
int in_main(int argc, char** argv) {
  far::runtime world(argc, argv);
  far::barrier();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string what = argc > 1 ? argv[1] : "";
  if (what == "before-runtime") return before_runtime(argc, argv);
  if (what == "after-runtime") return after_runtime(argc, argv);
  if (what == "map-after-runtime") return map_after_runtime(argc, argv);
  if (what == "after-runtime-collective") return two_in_a_row(argc, argv);
  if (what == "in-main") return in_main(argc, argv);
  if (what == "handler-before-runtime") {
    signal(SIGSEGV, [](int) {
      if (write(2, "own handler\n", 12) == 12) _exit(7);
    });
    return far::run(argc, argv, [] { far::get(far::ptr<long>()); });
  }
  if (what == "signal-sent") return far::run(argc, argv, [] { raise(SIGSEGV); });
  if (what == "nothing") return far::run(argc, argv, [] { far::barrier(); });
  auto found = misuses.find(what);
  if (found == misuses.end()) {
    std::fprintf(stderr, "errors: '%s' is no misuse that this program knows\n", what.c_str());
    return 64;
  }
  auto commit = found->second;
  return far::run(argc, argv, [commit] {
    commit();
    far::barrier();
  });
}
