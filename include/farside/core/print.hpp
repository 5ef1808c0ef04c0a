// far::print: output of all ranks, in order.
#pragma once

#include <farside/core/collectives.hpp>

#include <cstdio>
#include <sstream>

namespace far::inline FARSIDE_BACKEND {

/// Collective over the world: rank 0 prints every rank's text to stdout, in rank order. The
/// arguments are joined as std::ostream prints them; a rank without arguments adds nothing.
template <class... Parts>
void print(const Parts&... parts) {
  std::ostringstream line;
  static_cast<void>((line << ... << parts));
  auto texts = gather(line.str(), 0);
  for (const auto& text : texts) std::fwrite(text.data(), 1, text.size(), stdout);
  if (!texts.empty()) std::fflush(stdout);
}

}  // namespace far::inline FARSIDE_BACKEND
