// Notices jobs that can never go on, by what their ranks say on the board.
#pragma once

#include <optional>
#include <string>

#include "farside/base/verdict.hpp"
#include "job.hpp"

namespace far::app {

class hang_watch {
 public:
  /// One look; why the job cannot go on, once that is certain.
  std::optional<std::string> look(const job_state&);

  /// Whether ranks have called different collectives, when no rank changes anything any more.
  static std::optional<std::string> last_look(const job_state&);

 private:
  std::uint64_t looked_ = 0;  ///< monotonic_ns() of the last look
  std::uint64_t since_ = 0;   ///< when the fault was first seen; 0: not in the last look
  far::job_board::standstill standstill_;
};

}  // namespace far::app
