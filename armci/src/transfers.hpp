// One transfer as ARMCI describes it, in the terms of the library: which type is added, which block
// of bytes is meant.
#pragma once

#include "handles.hpp"
#include "library.hpp"

#include <array>
#include <cstring>

namespace armci {

/// Calls f.template operator()<T>() with the type that an ARMCI_ACC_ constant stands for.
template <class F>
auto with_type(int type, F f) {
  switch (type) {
    case ARMCI_ACC_INT:
      return f.template operator()<std::int32_t>();
    case ARMCI_ACC_LNG:
      return f.template operator()<std::int64_t>();
    case ARMCI_ACC_FLT:
      return f.template operator()<float>();
    case ARMCI_ACC_DBL:
      return f.template operator()<double>();
    case ARMCI_ACC_CPL:
      return f.template operator()<std::complex<float>>();
    case ARMCI_ACC_DCP:
      return f.template operator()<std::complex<double>>();
    default:
      raise(type,
            " is no type of an accumulate. Use ARMCI_ACC_INT, _LNG, _FLT, _DBL, _CPL or _DCP.");
  }
}

template <class T>
T scale_of(const void* scale) {
  T result;
  std::memcpy(&result, scale, sizeof result);
  return result;
}

/// A strided block of elements of type T, and what it touches at the far side.
template <class T>
struct block {
  far::strided shape;
  std::ptrdiff_t low = 0, bytes = 0;  ///< of the far side, from its address on
  bool empty = false;

  block(const int* far_strides, const int* local_strides, const int* count, int levels) {
    if (levels < 0 || levels >= static_cast<int>(far::level_list::most))
      raise(levels, " stride levels were given. There are 0 to ", far::level_list::most - 1, ".");
    std::array<std::ptrdiff_t, far::level_list::most> counts{}, far{}, local{};
    auto elements = [&](const char* what, std::ptrdiff_t of) {
      if (of % static_cast<std::ptrdiff_t>(sizeof(T)) != 0)
        raise(what, " of ", of, " bytes holds no whole elements, which have ", sizeof(T), ".");
      return of / static_cast<std::ptrdiff_t>(sizeof(T));
    };
    std::ptrdiff_t high = 0;
    for (int i = 0; i <= levels; ++i) {
      auto at = static_cast<std::size_t>(i);
      if (count[i] < 0) raise("count[", i, "] is ", count[i], ". Counts are not negative.");
      empty = empty || count[i] == 0;
      counts[at] = i == 0 ? elements("count[0]", count[0]) : count[i];
      if (i == 0) continue;
      far[at - 1] = elements("a stride", far_strides[i - 1]);
      local[at - 1] = elements("a stride", local_strides[i - 1]);
      std::ptrdiff_t reach = std::ptrdiff_t{far_strides[i - 1]} * (count[i] - 1);
      (reach < 0 ? low : high) += reach;
    }
    bytes = high - low + count[0];
    auto n = static_cast<std::size_t>(levels);
    shape.counts = far::level_list(std::span<const std::ptrdiff_t>(counts.data(), n + 1));
    shape.far_strides = far::level_list(std::span<const std::ptrdiff_t>(far.data(), n));
    shape.local_strides = far::level_list(std::span<const std::ptrdiff_t>(local.data(), n));
  }

  /// Where its first element is, after all of it was found to be in reach.
  far::ptr<T> place(library& lib, const void* address, int process) const {
    auto lowest = lib.place<std::byte>(static_cast<const char*>(address) + low, process, bytes);
    return far::ptr<T>(lowest.rank(), static_cast<std::size_t>(
                                          static_cast<std::ptrdiff_t>(lowest.offset()) - low));
  }
};

/// Copies a strided block within this process.
void copy_block(const char* from, const int* from_strides, char* to, const int* to_strides,
                const int* count, int levels);

}  // namespace armci
