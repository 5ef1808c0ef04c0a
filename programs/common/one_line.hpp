// Programs that end with one line when they cannot do what they were asked for.
#pragma once

#include <farside/core/runtime.hpp>
#include <farside/core/team.hpp>
#include <toolkit/option_reader.hpp>
#include <toolkit/words.hpp>

#include <string>
#include <vector>

namespace programs {

/// Runs `body(words)` on all ranks. What it throws for its user, which must be the same on all
/// ranks, or come of a collective, becomes `farside NAME: ...` and status 1.
template <class Body>
int run_with_one_line(const char* name, int argc, char** argv, Body body) {
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
      problem = e.what();
    }
    if (problem.starts_with("farside: ")) problem.erase(0, 9);
    throw far::refusal(far::text("farside ", name, ": ", problem));
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
