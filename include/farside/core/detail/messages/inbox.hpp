// The receiver's side of rings: copies what has arrived out of them, gives their room back at once,
// and cuts it into messages. What it keeps of a sender is at most a ring's bytes and one message
// that is not yet complete. The thread that serves uses it, one at a time.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/detail/messages/wire.hpp>
#include <farside/core/rma.hpp>

#include <cstring>
#include <optional>

namespace far::inline FARSIDE_BACKEND::detail {

class inbox {
 public:
  /// What one rank has sent.
  class line {
   public:
    struct message {
      message_header header;
      std::span<const std::byte> arguments;  ///< valid until compact()
    };

    rank_t from() const { return from_; }

    /// The next complete message.
    std::optional<message> next() {
      std::size_t left = bytes_.size() - read_;
      if (left < sizeof(message_header)) return {};
      message found;
      std::memcpy(&found.header, bytes_.data() + read_, sizeof found.header);
      std::size_t size = padded(found.header.bytes);
      if (left < size) {
        bytes_.reserve(read_ + size);
        return {};
      }
      found.arguments = std::span(bytes_).subspan(read_ + sizeof(message_header),
                                                  static_cast<std::size_t>(found.header.bytes));
      read_ += size;
      return found;
    }

    /// Forgets the messages that `next` has given.
    void compact() {
      if (bytes_.capacity() > keep && read_ == bytes_.size())
        bytes_ = {};
      else
        bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(read_));
      read_ = 0;
    }

   private:
    friend inbox;
    static constexpr std::size_t keep = std::size_t{1} << 20;

    rank_t from_ = 0;
    std::size_t ring_ = 0;  ///< offset of its bytes; 0: not yet known
    ptr<std::uint64_t> credits_;
    std::uint64_t taken_ = 0, uncredited_ = 0;
    std::vector<std::byte> bytes_;
    std::size_t read_ = 0;
  };

  explicit inbox(context& c) : c_(c), ring_(ring_bytes(c.link.nprocs())) {}

  /// Looks for senders and for what they have sent. No communication: own memory only.
  void look() {
    std::uint64_t senders = look_at(c_, senders_word(0).offset());
    if (senders > lines_.size()) {
      lines_.resize(senders);
      arrived_.resize(senders);
    }
    if (senders != 0) look_at(c_, arrived_word(0, 0).offset(), arrived_.data(), arrived_.size());
  }

  std::size_t size() const { return lines_.size(); }
  line& operator[](std::size_t i) { return lines_[i]; }

  /// Copies what has newly come from the i-th sender. An atomic for each quarter of a ring.
  void take(std::size_t i) {
    line& in = lines_[i];
    if (arrived_[i] == in.taken_) return;
    if (in.ring_ == 0) find_ring(i);
    while (in.taken_ != arrived_[i]) {
      std::size_t position = in.taken_ % ring_;
      auto n = std::min<std::size_t>(arrived_[i] - in.taken_, ring_ - position);
      if (FARSIDE_MUTANT(message_room_given_back_early)) credit(in, n);
      std::size_t before = in.bytes_.size();
      in.bytes_.resize(before + n);
      c_.link.get(c_.link.rank(), in.ring_ + position, in.bytes_.data() + before, n);
      in.taken_ += n;
      if (!FARSIDE_MUTANT(message_room_given_back_early)) credit(in, n);
    }
  }

 private:
  /// Its word was stored before anything was announced.
  void find_ring(std::size_t i) {
    line& in = lines_[i];
    rank_t me = c_.link.rank();
    auto where =
        ptr<std::byte>::from_raw(look_at(c_, mailbox_word(me, i, c_.link.nprocs()).offset()));
    ring_head head;
    c_.link.get(me, where.offset(), &head, sizeof head);
    in.from_ = where.rank();
    in.ring_ = where.offset() + sizeof head;
    in.credits_ = ptr<std::uint64_t>::from_raw(head.credits);
  }

  void credit(line& in, std::size_t n) {
    in.uncredited_ += n;
    if (in.uncredited_ < ring_ / 4) return;
    fetch_add(in.credits_, in.uncredited_);
    in.uncredited_ = 0;
  }

  context& c_;
  std::size_t ring_;
  std::vector<line> lines_;             ///< by the order in which ranks began to send
  std::vector<std::uint64_t> arrived_;  ///< of each, as last seen
};

}  // namespace far::inline FARSIDE_BACKEND::detail
