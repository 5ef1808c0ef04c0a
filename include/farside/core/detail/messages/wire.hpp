// Where messages lie, and what they look like. docs/protocols/messages.md tells the protocol.
//
//   words of a receiver, in its segment from `message_words` on (zero when the job starts):
//     +0     senders      ranks that have a ring here                              atomics
//     +64    bell         signals that wake its thread (attention::thread)         signals
//     +128   arrived[i]   bytes that the i-th of them has written to its ring      atomics
//     +...   rings[i]     its rank, and where that ring lies here                  atomics
//
//   a ring, made by its sender with alloc_on:  | credits: where, at the sender | - | bytes ... |
//   credits, in the sender's segment: bytes of the ring that the receiver has taken  atomics
//
// A ring carries a stream of messages, each a header and its arguments, padded to 8 bytes. A
// message may be longer than the ring.
#pragma once

#include <farside/core/context.hpp>
#include <farside/core/detail/messages/code.hpp>
#include <farside/core/ptr.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

inline ptr<std::uint64_t> senders_word(rank_t rank) { return {rank, message_words}; }
inline constexpr std::size_t bell_word = message_words + 64;
inline ptr<std::uint64_t> arrived_word(rank_t rank, std::uint64_t index) {
  return {rank, message_words + 128 + 8 * index};
}
inline ptr<std::uint64_t> mailbox_word(rank_t rank, std::uint64_t index, rank_t nprocs) {
  return {rank, message_words + 128 + 8 * (nprocs + index)};
}

/// What a ring begins with.
struct ring_head {
  std::uint64_t credits;  ///< far::ptr of the sender's word
  std::uint64_t padding;  ///< so that the bytes are aligned as alloc_on does it
};

/// Bytes of a ring: 64 KiB, less where so many ranks could send that a receiver's rings would take
/// more than 16 MiB, but never less than 4 KiB.
inline std::size_t ring_bytes(rank_t nprocs) {
  std::size_t share = (std::size_t{16} << 20) / nprocs & ~std::size_t{63};
  return std::clamp<std::size_t>(share, 4096, 65536);
}

/// Where the caller of an rpc waits for its result, in its own segment; none for rpc_ff.
struct reply_place {
  std::uint64_t slot = 0;  ///< offset of its state; 0: no answer is wanted
  std::uint64_t generation = 0;
};

struct message_header {
  code_address code;        ///< what reads the arguments and calls; {}: this is a long result
  std::uint64_t bytes = 0;  ///< of what follows
  reply_place reply;
};

/// Bytes of a message in a ring.
inline std::size_t padded(std::uint64_t bytes) {
  return sizeof(message_header) + ((bytes + 7) & ~std::uint64_t{7});
}

/// Fills in the room for a header that a message begins with, and pads the message.
inline void write_header(std::vector<std::byte>& message, message_header as) {
  as.bytes = message.size() - sizeof as;
  message.resize(padded(as.bytes));
  std::memcpy(message.data(), &as, sizeof as);
}

/// Wakes the thread that serves a rank, where it sleeps: elsewhere it only naps.
inline void wake(context& c, rank_t rank) {
  if (c.attends == attention::thread && c.link.coherent()) c.link.signal(rank, bell_word);
}

/// Reads a word of this rank's own segment that others change by atomics. No communication.
inline std::uint64_t look_at(context& c, std::size_t offset) {
  if (!c.link.coherent()) return c.link.template atomic_load<std::uint64_t>(c.link.rank(), offset);
  auto* at = static_cast<std::uint64_t*>(c.link.address(c.link.rank(), offset));
  return std::atomic_ref(*at).load(std::memory_order_acquire);
}

/// Reads `n` such words, which follow each other.
inline void look_at(context& c, std::size_t offset, std::uint64_t* to, std::size_t n) {
  if (!c.link.coherent() && c.link.racy_get())
    c.link.get(c.link.rank(), offset, to, 8 * n);
  else
    for (std::size_t i = 0; i < n; ++i) to[i] = look_at(c, offset + 8 * i);
}

}  // namespace far::inline FARSIDE_BACKEND::detail
