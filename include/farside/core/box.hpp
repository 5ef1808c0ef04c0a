// far::box<T>: any serializable object in a form that far memory can hold.
//
//   fixed length     the object itself, in place; for trivially copyable T a box has T's bytes
//   variable length  {far pointer, size} of the serialized bytes, which lie in some rank's segment
//                    and are freed by the rank that removes the box (release)
//
// A box is trivially copyable, and owns nothing by itself: the rank that puts it somewhere must see
// to it that it is released once.
//
// Packing is local, all else one-sided.
#pragma once

#include <farside/core/memory.hpp>
#include <farside/core/serialization.hpp>

namespace far::inline FARSIDE_BACKEND {

template <class T>
class box {
 public:
  static constexpr bool in_place = fixed_length<T>;

  box() = default;  ///< An empty box. Assign a packed one to it before use.

  /// Puts the object in a box; variable-length bytes go to this rank's own segment, visible to
  /// others after flush or barrier. No communication.
  static box pack(const T& value) {
    detail::require_serializable<T>();
    if constexpr (in_place) {
      return box(detail::fixed_form<T>::pack(value));
    } else {
      auto bytes = to_bytes(value);
      box result({alloc<std::byte>(bytes.size()), bytes.size()});
      put(result.form_.where, bytes.data(), bytes.size());
      return result;
    }
  }

  /// Packs it with the bytes on another rank: 4 atomics and 1 put, if they are variable-length.
  static box pack_on(rank_t rank, const T& value) {
    detail::require_serializable<T>();
    if constexpr (in_place) {
      return pack(value);
    } else {
      auto bytes = to_bytes(value);
      box result({alloc_on<std::byte>(rank, bytes.size()), bytes.size()});
      put(result.form_.where, bytes.data(), bytes.size());
      return result;
    }
  }

  /// The object. In place: nothing to do; else 1 get.
  T unpack() const {
    if constexpr (in_place) {
      return detail::fixed_form<T>::unpack(form_);
    } else {
      auto bytes = get(form_.where, form_.size);
      return from_bytes<T>(bytes);
    }
  }

  /// Frees variable-length bytes, from any rank; nothing to do for others.
  void release() const {
    if constexpr (!in_place) dealloc(form_.where);
  }

 private:
  struct elsewhere {
    ptr<std::byte> where;
    std::uint64_t size;
  };
  template <class U, bool InPlace>
  struct form_of {
    using type = elsewhere;
  };
  template <class U>
  struct form_of<U, true> {
    using type = typename detail::fixed_form<U>::type;
  };

  using form = typename form_of<T, in_place>::type;
  explicit box(const form& packed) : form_(packed) {}

  form form_;
};

}  // namespace far::inline FARSIDE_BACKEND
