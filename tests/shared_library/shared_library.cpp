// Functions of shared libraries are found on other ranks, wherever those have loaded them: one that
// was linked, and one that is loaded at run time (PLUGIN as the first argument).
#include "library.hpp"

#include <farside/core/rpc.hpp>

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  return far::run(argc, argv, [](int count, char** arguments) {
    far::rank_t to = (far::rank() + 1) % far::nprocs();
    auto where = far::all_gather(reinterpret_cast<std::uintptr_t>(&sample::describe));
    std::string mine = "the library on rank " + std::to_string(to) + ": 7";
    bool good = far::rpc(to, &sample::describe, 7).get() == mine;
    good = good && sample::ask(to, 7).get() == mine + "?";
    good = good && far::rpc(to, [](int x) { return sample::describe(x); }, 7).get() == mine;

    if (count < 2) return EXIT_FAILURE;
    far::barrier();  // loaded after messages were sent
    // Where the ranks differ in what they have loaded before it, it lies elsewhere, too.
    void* plugin = dlopen(arguments[1], RTLD_NOW);
    if (plugin == nullptr) std::fprintf(stderr, "%s\n", dlerror());
    far::barrier();
    auto function =
        plugin ? reinterpret_cast<int (*)(int)>(dlsym(plugin, "sample_plugin")) : nullptr;
    good = good && function != nullptr && far::rpc(to, function, 1).get() == 1001;

    bool moved = false;
    for (auto address : where) moved = moved || address != where[0];
    if (far::rank() == 0)
      std::printf("the ranks have it %s\n", moved ? "in different places" : "in one place");
    return far::all_reduce(good, std::logical_and<>()) ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
