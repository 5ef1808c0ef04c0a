// Where results come back to. The caller of an rpc reserves a slot in its own segment. The rank
// that has run the handler puts the result there, flushes, and stores the slot's state. No room in
// a mailbox is needed, so answers wait for nobody. Results of more than 112 bytes come as a message
// instead.
//
//   free --- reserve ---> awaited --- answered here, by an atomic:  --------> free
//                          |          state = generation and size
//                          +--------- answered by a message that     -------> free
//                                     names slot and generation
//
// A slot's state is never reset: each use has a generation of its own. The state is written once
// for each use, and the slot is used again only after that was seen. So two bodies are never
// written to it at one time.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/core/detail/messages/wire.hpp>
#include <farside/core/memory.hpp>
#include <farside/core/rma.hpp>

#include <memory>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail {

/// What an answer's bytes are: the result, the text of what the handler threw, or how long the
/// result is for which the caller has no room.
enum class answer_kind : std::uint8_t { result, thrown, no_room };

/// The text of an answer that is no result. `what` was sent to `target`.
inline std::string why_no_result(rank_t target, const char* what, answer_kind kind,
                                 std::span<const std::byte> bytes) {
  std::string_view said(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (kind == answer_kind::thrown)
    return text("rank ", target, ": the handler of ", what, " threw: ", said);
  return text("rank ", target, " has run the handler of ", what, ", but its result of ", said,
              " bytes cannot come back: more than 112 bytes need a ring of messages in the segment "
              "of the caller, rank ",
              here().link.rank(),
              ", which has no room for it. Give ranks larger segments (farside run --segment), or "
              "free far memory before the call.");
}

/// A call that waits for its result.
struct awaiting {
  virtual ~awaiting() = default;
  /// Keeps the result, or why there is none. Runs no user's code but loads.
  virtual void take(answer_kind kind, std::span<const std::byte> bytes) = 0;
  /// Makes the future ready: continuations run.
  virtual void make_ready() = 0;
};

struct alignas(512) reply_chunk {
  static constexpr std::size_t slots = 64;
  static constexpr std::size_t body_bytes = 112;
  std::uint64_t states[slots];
  std::byte bodies[slots][body_bytes];

  /// Chunks are aligned so that the offset of a state tells where its body lies.
  static std::size_t body_of(std::size_t state) {
    std::size_t index = state % sizeof(states) / 8;
    return state - 8 * index + sizeof(states) + body_bytes * index;
  }
};
static_assert(sizeof(reply_chunk::states) == alignof(reply_chunk));

/// A state: which use of the slot was answered, how many bytes, and what they are.
inline std::uint64_t answered(std::uint64_t generation, std::size_t bytes, answer_kind kind) {
  return generation << 16 | bytes << 2 | static_cast<std::uint64_t>(kind);
}

/// One thread at a time.
class replies {
 public:
  explicit replies(context& c) : c_(c) {}

  /// A slot is free on return, or far::allocation_error is thrown.
  void prepare() {
    if (free_.empty()) grow();
  }

  reply_place reserve(std::shared_ptr<awaiting> who) {
    prepare();
    std::size_t i = free_.back();
    free_.pop_back();
    slot& s = slots_[i];
    s.who = std::move(who);
    if (!FARSIDE_MUTANT(reply_generation_kept)) ++s.generation;
    ++chunks_[i / reply_chunk::slots].awaited;
    return {state_of(i), s.generation};
  }

  /// Gives what has been answered in slots to `found(who)`. No communication: own memory only.
  template <class Found>
  void look(Found found) {
    for (std::size_t k = 0; k < chunks_.size(); ++k) {
      if (chunks_[k].awaited == 0) continue;
      std::uint64_t states[reply_chunk::slots];
      look_at(c_, chunks_[k].offset, states, reply_chunk::slots);
      for (std::size_t j = 0; j < reply_chunk::slots; ++j) {
        std::size_t i = k * reply_chunk::slots + j;
        if (!slots_[i].who || states[j] >> 16 != slots_[i].generation) continue;
        std::byte body[reply_chunk::body_bytes];
        std::size_t n = (states[j] & 0xffff) >> 2;
        c_.link.get(c_.link.rank(), reply_chunk::body_of(state_of(i)), body, n);
        found(complete(i, static_cast<answer_kind>(states[j] & 3), std::span(body, n)));
      }
    }
  }

  /// A result that came as a message.
  std::shared_ptr<awaiting> take(reply_place place, answer_kind kind,
                                 std::span<const std::byte> bytes) {
    for (std::size_t k = 0;; ++k)
      if (std::size_t distance = place.slot - chunks_[k].offset; distance < 8 * reply_chunk::slots)
        return complete(k * reply_chunk::slots + distance / 8, kind, bytes);
  }

 private:
  struct slot {
    std::shared_ptr<awaiting> who;
    std::uint64_t generation = 0;
  };
  struct chunk {
    std::size_t offset;
    std::size_t awaited = 0;
  };

  std::size_t state_of(std::size_t i) const {
    return chunks_[i / reply_chunk::slots].offset + 8 * (i % reply_chunk::slots);
  }

  std::shared_ptr<awaiting> complete(std::size_t i, answer_kind kind,
                                     std::span<const std::byte> bytes) {
    auto who = std::exchange(slots_[i].who, nullptr);
    free_.push_back(i);
    --chunks_[i / reply_chunk::slots].awaited;
    who->take(kind, bytes);
    return who;
  }

  void grow() {
    auto at = alloc<reply_chunk>();
    std::vector<std::uint64_t> zeros(reply_chunk::slots);
    put(pointer_cast<std::uint64_t>(at), zeros.data(), zeros.size());
    flush(at.rank());
    for (std::size_t j = reply_chunk::slots; j-- > 0;) free_.push_back(slots_.size() + j);
    slots_.resize(slots_.size() + reply_chunk::slots);
    chunks_.push_back({at.offset()});
  }

  context& c_;
  std::vector<chunk> chunks_;
  std::vector<slot> slots_;
  std::vector<std::size_t> free_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
