// main() of a program whose problems are told in one line.
#pragma once

#include <common/refuse.hpp>
#include <farside/core/runtime.hpp>
#include <toolkit/option_reader.hpp>
#include <toolkit/words.hpp>

#include <string>
#include <vector>

namespace programs {

/// `body(words)` returns the program's status. Whatever is wrong becomes one line: `farside PROGRAM: ...`.
/// Options that make no sense, and errors of type Together, are met by all ranks alike.
template <class... Together, class Body>
int run_program(const char* program, int argc, char** argv, Body body) {
  return far::run(argc, argv, [&](int count, char** arguments) {
    std::string problem;
    try {
      return body(std::vector<std::string>(arguments + 1, arguments + count));
    } catch (const far::refusal&) {
      throw;
    } catch (const far::rank_failure&) {
      throw;
    } catch (const toolkit::wrong_option& e) {
      far::barrier();  // all ranks have seen it
      problem = e.what();
    } catch (const far::error& e) {
      if ((... || (dynamic_cast<const Together*>(&e) != nullptr))) far::barrier();
      problem = e.what();
    }
    if (problem.starts_with("farside: ")) problem.erase(0, 9);
    refuse(program, problem);
  });
}

/// Refuses an option that is not known, with one that may have been meant.
[[noreturn]] inline void refuse_option(const std::string& given,
                                       const std::vector<std::string>& known) {
  const std::string meant = toolkit::nearest(given, known);
  throw toolkit::wrong_option("there is no option " + given +
                              (meant.empty() ? "" : "; did you mean " + meant + "?") +
                              "; --help lists them");
}

}  // namespace programs
