// An array of elements without constructors, whose memory is neither cleared nor, where it is
// large, copied when its size changes. The arrays of a sparse matrix are such: they are written
// once, in order, and how long they become is known only then.
//
// An element takes memory when it is written for the first time, as the system gives pages at that
// moment only. So capacity that is never used costs addresses, not memory, and a smaller size hands
// it back without copying (with glibc and musl on Linux; elsewhere realloc may copy).
//
// The system is not asked for huge pages. Where it has them at hand, a product takes a quarter less
// time with them; in a virtual machine that gives free ones back to its host it took up to six
// times as long.
#pragma once

#include <farside/base/error.hpp>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

template <class T>
class plain_array {
  static_assert(std::is_trivially_copyable_v<T>,
                "elements of matrices are moved as bytes: T must be trivially copyable");

 public:
  plain_array() = default;
  /// `size` elements without values.
  explicit plain_array(std::size_t size) { resize(size); }
  plain_array(const plain_array& other) : plain_array(other.size_) {
    if (size_ != 0) std::memcpy(static_cast<void*>(data_), other.data_, size_ * sizeof(T));
  }
  plain_array(plain_array&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  plain_array& operator=(plain_array other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~plain_array() { std::free(data_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  /// Keeps the elements that both sizes have; further ones have no values.
  void resize(std::size_t size) {
    if (size == size_) return;
    if (!try_resize(size))
      raise<allocation_error>("no memory for ", size, " elements of ", sizeof(T),
                              " bytes of a local matrix. Use smaller tiles, or more ranks.");
  }

  /// Likewise. False, and nothing has changed, where there is no memory.
  [[nodiscard]] bool try_resize(std::size_t size) {
    if (size > std::numeric_limits<std::size_t>::max() / sizeof(T)) return false;
    if (size == 0) {
      std::free(data_);
      data_ = nullptr;
    } else {
      void* moved = std::realloc(static_cast<void*>(data_), size * sizeof(T));
      if (moved == nullptr) return false;
      data_ = static_cast<T*>(moved);
    }
    size_ = size;
    return true;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND
