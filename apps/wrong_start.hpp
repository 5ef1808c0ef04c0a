// Starts that would silently become several jobs, and are refused.
#pragma once

#include <cstdint>
#include <string>

#include "program.hpp"

namespace far::app {

/// `--backend` of a program that is built for another one.
void refuse_wrong_backend(const std::string& program, const std::string& asked, transport how);

/// `farside run` or `farside sim` under mpirun or srun, as one of several.
void refuse_several_launchers(const std::string& command, std::uint32_t ranks);

}  // namespace far::app
