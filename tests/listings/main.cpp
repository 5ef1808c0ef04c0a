// The listings of a document as one program: `document_any NAME [ARGUMENT...]` is what the listing
// NAME would be with these arguments.
#include <cstdio>
#include <cstring>

#define LISTING(name) int listing_##name(int argc, char** argv);
#include "listings.inc"
#undef LISTING

int main(int argc, char** argv) {
  struct listing {
    const char* name;
    int (*run)(int, char**);
  };
  const listing all[] = {
#define LISTING(name) {#name, &listing_##name},
#include "listings.inc"
#undef LISTING
  };
  for (const listing& one : all)
    if (argc > 1 && std::strcmp(argv[1], one.name) == 0) return one.run(argc - 1, argv + 1);
  std::fprintf(stderr, "there is no such listing; there are:\n");
  for (const listing& one : all) std::fprintf(stderr, "  %s\n", one.name);
  return 2;
}
