// A program for any back end: all ranks add to a word of rank 0, which says how many there were.
#include <farside/farside.hpp>

#include <link.h>

#include <cstdio>
#include <set>
#include <string>

namespace {

std::set<std::string> loaded_libraries() {
  std::set<std::string> result;
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* list) {
        static_cast<std::set<std::string>*>(list)->emplace(library->dlpi_name);
        return 0;
      },
      &result);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  std::set<std::string> before;
  int status = far::run(argc, argv, [&] {
    auto sum = far::broadcast(far::rank() == 0 ? far::make<int>(0) : far::ptr<int>(), 0);
    far::fetch_add(sum, 1);
    far::barrier();
    if (far::rank() == 0) {
      before = loaded_libraries();
      std::printf("%d ranks, carried by %s\n", far::get(sum),
                  far::detail::here().link.carried_by());
    }
  });
  // A thread of a library may still run when the job ends: none may be unloaded.
  std::set<std::string> after = loaded_libraries();
  for (const std::string& library : before)
    if (!after.contains(library)) {
      std::printf("unloaded: %s\n", library.c_str());
      status = 1;
    }
  return status;
}
