// Memory of a rank's own for the bulk of its data.
#pragma once

#include <common/refuse.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace programs {

/// An array that may become larger without being copied, and is not filled with zeros for nothing:
/// pages straight from the system, large ones where it has them. T is trivial.
template <class T>
class big_array {
 public:
  big_array() = default;
  explicit big_array(std::size_t n) { reserve(n), size_ = n; }
  big_array(big_array&& other) noexcept { swap(other); }
  big_array& operator=(big_array&& other) noexcept { return swap(other), *this; }
  ~big_array() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }

  /// Room for `n` elements at least; what is there stays, at another address perhaps.
  void reserve(std::size_t n) {
    std::size_t wanted = (n * sizeof(T) + granule - 1) / granule * granule;
    if (wanted <= bytes_) return;
    void* at = data_ == nullptr ? mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                : mremap(data_, bytes_, wanted, MREMAP_MAYMOVE);
    if (at == MAP_FAILED)
      throw far::allocation_error(
          far::text("farside: ", wanted,
                    " bytes of memory are not to be had on this machine. Use more ranks on more "
                    "machines, or less data."));
    madvise(at, wanted, MADV_HUGEPAGE);  // a fifth of the time for what scatters; may be refused
    data_ = static_cast<T*>(at);
    bytes_ = wanted;
  }
  /// New elements hold anything.
  void resize(std::size_t n) { reserve(n), size_ = n; }
  void append(std::span<const T> some) {
    if ((size_ + some.size()) * sizeof(T) > bytes_)
      reserve(std::max(size_ + some.size(), size_ + size_ / 4));
    std::copy(some.begin(), some.end(), data_ + size_);
    size_ += some.size();
  }
  void clear() { size_ = 0; }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

  void swap(big_array& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(bytes_, other.bytes_);
  }

 private:
  static constexpr std::size_t granule = std::size_t{2} << 20;
  T* data_ = nullptr;
  std::size_t size_ = 0, bytes_ = 0;
};

}  // namespace programs
