// The parts of `farside doctor`.
#pragma once

#include <string>
#include <vector>

namespace far::app {

enum class health { ok, warning, missing };

class findings {
 public:
  void section(const std::string& title);
  void add(health state, std::string what, std::string found, std::string advice = "");
  std::string text() const;

 private:
  struct line {
    std::string state, what, found, advice;  ///< without state it is a title
  };
  std::vector<line> lines_;
};

struct usable_transports {
  bool openmpi = false, mpich = false, shmem = false;
};

void examine_machine(findings&);
/// True if the kernel has all that smp needs.
bool examine_kernel(findings&);
void examine_tools(findings&);
usable_transports examine_transports(findings&);
void examine_devices(findings&);

}  // namespace far::app
