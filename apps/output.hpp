// A process that passes the output of mpirun on to ours, and notices when that cannot be written:
// mpirun itself would lose it without a word. It is a process of its own, as the reader of our
// output may keep it waiting.
#pragma once

#include <sys/types.h>

namespace far::app {

class output_process {
 public:
  /// Forks it. Returns the descriptor that mpirun's output goes to, which is closed on exec.
  int start();
  /// For the launcher, after mpirun was started: nobody else holds that descriptor then.
  void close_input();
  /// mpirun has ended: what is in the pipe is all there will be.
  void finish() const;
  /// Whether `pid` is it; takes note of how it ended.
  bool ended(pid_t pid, int wait_status);
  bool runs() const { return pid_ > 0; }
  /// Why output was lost: an errno; -1 if the process was killed; 0 if nothing was.
  int trouble() const { return trouble_; }

 private:
  pid_t pid_ = 0;
  int input_ = -1;
  int trouble_ = 0;
};

}  // namespace far::app
