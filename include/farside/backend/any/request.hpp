// A handle of something begun by a carrier, whose own kind of handle lies inside it.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::any_backend {

/// One that was default-constructed is complete. One that is dropped does what its carrier's does:
/// waits.
class request {
 public:
  request() = default;

  /// Takes over a carrier's own handle.
  template <class Own>
    requires(!std::is_same_v<Own, request>)
  explicit request(Own&& own) : methods_(&methods_of<Own>) {
    static_assert(std::is_rvalue_reference_v<Own&&>, "a request is moved into another");
    static_assert(sizeof(Own) <= room && alignof(Own) <= alignof(std::max_align_t),
                  "raise any_backend::request::room: a carrier has a larger request");
    static_assert(std::is_nothrow_move_constructible_v<Own>);
    new (own_) Own(std::forward<Own>(own));
  }

  request(request&& other) noexcept { take(other); }
  request& operator=(request&& other) noexcept {
    if (this != &other) {
      drop();
      take(other);
    }
    return *this;
  }
  ~request() { drop(); }

  bool test() {
    if (methods_ == nullptr) return true;
    if (!methods_->test(own_)) return false;
    drop();
    return true;
  }
  void wait() {
    if (methods_ == nullptr) return;
    methods_->wait(own_);
    drop();
  }

 private:
  static constexpr std::size_t room = 64;

  struct methods {
    bool (*test)(void*);
    void (*wait)(void*);
    void (*move)(void* to, void* from) noexcept;  ///< and ends what lay there
    void (*end)(void*) noexcept;
  };
  template <class Own>
  static constexpr methods methods_of = {
      [](void* at) { return static_cast<Own*>(at)->test(); },
      [](void* at) { static_cast<Own*>(at)->wait(); },
      [](void* to, void* from) noexcept {
        new (to) Own(std::move(*static_cast<Own*>(from)));
        std::destroy_at(static_cast<Own*>(from));
      },
      [](void* at) noexcept { std::destroy_at(static_cast<Own*>(at)); }};

  void take(request& other) noexcept {
    methods_ = std::exchange(other.methods_, nullptr);
    if (methods_ != nullptr) methods_->move(own_, other.own_);
  }
  void drop() noexcept {
    if (const methods* had = std::exchange(methods_, nullptr)) had->end(own_);
  }

  const methods* methods_ = nullptr;
  alignas(std::max_align_t) std::byte own_[room];
};

}  // namespace far::inline FARSIDE_BACKEND::detail::any_backend
