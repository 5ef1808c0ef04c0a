// Small messages on one way, gathered into one: for one rank, or for ranks behind it.
//
//   a batch:  | message header | record | record | ...
//   a record: | which function, to, from, bytes | its code address, where it is new | arguments |
//
// The first record of a function carries its code address, those that follow only a number.
#pragma once

#include <farside/base/error.hpp>
#include <farside/core/detail/messages/wire.hpp>

#include <cstring>
#include <limits>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail {

struct batch_record {
  std::uint32_t function;  ///< among those of this batch, by first appearance
  rank_t to, from;
  std::uint32_t bytes;
};

class batch {
 public:
  void add(code_address code, rank_t to, rank_t from, std::span<const std::byte> arguments) {
    if (arguments.size() > std::numeric_limits<std::uint32_t>::max())
      raise("a visit carries ", arguments.size(),
            " bytes of arguments, more than fit a batch (4 GiB). Send it with far::rpc_ff.");
    if (bytes_.empty()) bytes_.resize(sizeof(message_header));
    std::size_t which = 0;
    while (which < known_.size() && !(known_[which] == code)) ++which;
    batch_record head{static_cast<std::uint32_t>(which), to, from,
                      static_cast<std::uint32_t>(arguments.size())};
    append(&head, sizeof head);
    if (which == known_.size()) {
      known_.push_back(code);
      append(&code, sizeof code);
    }
    append(arguments.data(), arguments.size());
  }

  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  /// The message so far, with room for its header. The next one begins anew.
  std::vector<std::byte> take() {
    known_.clear();
    std::vector<std::byte> result;
    result.reserve(bytes_.capacity());  // the next batch is likely to need as much
    return std::exchange(bytes_, std::move(result));
  }

  /// Calls each(code, to, from, arguments) for the records of a batch without its header.
  template <class Each>
  static void read(std::span<const std::byte> records, Each each) {
    std::vector<code_address> known;
    for (std::size_t at = 0; at + sizeof(batch_record) <= records.size();) {
      batch_record head;
      std::memcpy(&head, records.data() + at, sizeof head);
      at += sizeof head;
      if (head.function == known.size()) {
        std::memcpy(&known.emplace_back(), records.data() + at, sizeof(code_address));
        at += sizeof(code_address);
      }
      auto arguments = records.subspan(at, head.bytes);
      at += head.bytes;
      each(known[head.function], head.to, head.from, arguments);
    }
  }

 private:
  void append(const void* from, std::size_t n) {
    auto* begin = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), begin, begin + n);
  }

  std::vector<std::byte> bytes_;
  std::vector<code_address> known_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
