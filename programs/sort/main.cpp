// `farside sort`: see options.cpp for what it does.

#include <common/refuse.hpp>
#include <farside/core/runtime.hpp>
#include <sort/options.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  return far::run(argc, argv, [](int words, char** word) {
    programs::sort_options options = programs::parse_sort(words, word);
    try {
      if (options.help) {
        if (far::rank() == 0) std::fputs(programs::sort_usage, stdout);
      } else if (options.isx) {
        programs::run_isx(options);
      } else if (!options.check.empty()) {
        programs::check_file(options);
      } else {
        programs::sort_file(options);
      }
    } catch (const far::allocation_error& full) {
      programs::refuse("sort", options.input, options.isx ? "--isx" : "", ": ", full.what());
    }
  });
}
