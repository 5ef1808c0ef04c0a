// far::device_block: memory of this rank's device segment that is given back at the end of its scope.
#pragma once

#include <farside/core/device/device.hpp>

#include <cstddef>
#include <optional>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

/// Bytes of this rank's own device segment. Movable. Local; no communication.
class device_block {
 public:
  /// Of nothing. Local; no communication.
  device_block() = default;
  /// Throws far::allocation_error if there is no room. Local; no communication.
  device_block(const device& on, std::size_t bytes)
      : on_(on), memory_(on_->alloc<std::byte>(bytes)), bytes_(bytes) {}
  device_block(device_block&& other) noexcept { *this = std::move(other); }
  device_block& operator=(device_block&& other) noexcept {
    std::swap(on_, other.on_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  /// Gives the memory back, unless it has gone with its runtime.
  ~device_block() {
    if (memory_) on_->dealloc(memory_);
  }

  /// Where it begins; null if it is of nothing. Local; no communication.
  device_ptr<std::byte> get() const { return memory_; }
  std::size_t bytes() const { return bytes_; }
  /// Likewise; far::device::dealloc is the caller's from now on. Local; no communication.
  device_ptr<std::byte> release() { return std::exchange(memory_, {}); }
  /// Gives the memory back at the next barrier of all ranks: others may use it until they have left, by the
  /// same exception, what it belongs to. Local; no communication.
  void leave() {
    if (memory_ && on_->is_open()) on_->state().leave(memory_.offset());
    memory_ = {};
  }

 private:
  std::optional<device> on_;
  device_ptr<std::byte> memory_{};
  std::size_t bytes_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND
