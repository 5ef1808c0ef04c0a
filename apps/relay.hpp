// Passes the output of ranks on, line by line, each with its rank before it.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

namespace far::app {

/// What to say when output could not be written, for this reason.
std::string cannot_write(int reason);

/// Writes all of it; false if nobody reads any more.
bool write_all(int fd, const char* data, std::size_t size);

/// One stream of one rank. Lines leave whole, by one write, so that those of different ranks
/// never mix; a last line without an end gets one.
class relay {
 public:
  /// Takes `from` over. With `shared` several processes write to `to`, and lines longer than
  /// PIPE_BUF are held together by a lock.
  relay(int from, int to, std::string prefix, bool shared);

  int source() const { return from_; }
  bool open() const { return from_ >= 0; }
  /// Moves what can be read now. Closes itself at the end of the stream.
  void move();
  /// Passes on what is left and closes.
  void finish();
  /// Why our own output could not be written: an errno; 0 if it could.
  int trouble() const { return trouble_; }

 private:
  void emit(std::size_t end);

  int from_, to_;
  std::string prefix_, pending_;
  bool shared_;
  int trouble_ = 0;
};

class relays {
 public:
  void add(relay one) { all_.push_back(std::move(one)); }
  void add_to(std::vector<pollfd>& set) const;
  /// Reads from every stream that has something.
  void move();
  /// Takes what is still in the pipes; does not wait for writers that live on.
  void finish();
  int trouble() const;

 private:
  std::vector<relay> all_;
};

}  // namespace far::app
