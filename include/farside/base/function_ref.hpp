// A reference to something callable, for functions that would otherwise be templates compiled
// again for every lambda. What it refers to must outlive the call.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <memory>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND::detail {

template <class Signature>
class function_ref;

template <class R, class... Args>
class function_ref<R(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, function_ref>)
  function_ref(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(args...);
        }) {}

  R operator()(Args... args) const { return call_(object_, args...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

}  // namespace far::inline FARSIDE_BACKEND::detail
