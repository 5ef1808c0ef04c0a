// Operations on many pieces of memory at once: what is under the strided and the vector forms.
//
// `each(visit)` calls visit(far pointer, local pointer, elements) for every piece. Where memory is
// coherent a piece is a copy, or additions in place. Elsewhere every piece is an operation of its
// own, and up to 64 are in flight together: a longer list waits for its first ones as it goes on.
#pragma once

#include <farside/backend/shared/shared_memory.hpp>
#include <farside/core/access.hpp>
#include <farside/core/accumulate.hpp>
#include <farside/core/future.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// Requests of one operation that are under way. Bounded.
class requests_in_flight {
 public:
  static constexpr std::size_t most = 64;

  void add(transport::request begun) {
    transport::request& place = ring_[count_++ % most];
    place.wait();
    place = std::move(begun);
  }
  void wait() {
    for (auto& request : ring_) request.wait();
  }
  /// A future of all that is left.
  future<void> remaining(context& c) {
    std::vector<future<void>> left;
    for (std::size_t i = 0; i < std::min(count_, most); ++i)
      if (!ring_[i].test()) left.push_back(in_flight(c, std::move(ring_[i])));
    return left.empty() ? future<void>::ready() : when_all(std::move(left));
  }

 private:
  std::array<transport::request, most> ring_;
  std::size_t count_ = 0;
};

/// Begins one piece, where memory is not coherent.
struct begins_put {
  static constexpr operation kind = operation::put;
  static constexpr const char* name = "put";
  template <class T>
  static transport::request begin(context& c, ptr<T> to, const T* from, std::size_t n) {
    return perform(kind, to.rank(), n * sizeof(T), [&](context&) {
      return c.link.async_put(to.rank(), to.offset(), from, n * sizeof(T));
    });
  }
  template <class T>
  static void copy(context& c, ptr<T> to, const T* from, std::size_t n) {
    copy_words<false>(c.link.address(to.rank(), to.offset()), from, to.offset(), n * sizeof(T));
    note(c, kind, to.rank(), n * sizeof(T), false);
  }
  static void end(context&) {}
};

struct begins_get {
  static constexpr operation kind = operation::get;
  static constexpr const char* name = "get";
  template <class T, class Target>
  static transport::request begin(context& c, ptr<T> from, Target* to, std::size_t n) {
    return perform(kind, from.rank(), n * sizeof(T), [&](context&) {
      return c.link.async_get(from.rank(), from.offset(), to, n * sizeof(T));
    });
  }
  template <class T, class Target>
  static void copy(context& c, ptr<T> from, Target* to, std::size_t n) {
    copy_words<true>(to, c.link.address(from.rank(), from.offset()), from.offset(), n * sizeof(T));
    note(c, kind, from.rank(), n * sizeof(T), false);
  }
  /// One fence for all pieces: nothing that follows runs ahead of them.
  static void end(context& c) {
    acquire_fence();
    count_wait(c);
  }
};

struct begins_accumulate {
  static constexpr const char* name = "accumulate";
  template <class T>
  static transport::request begin(context& c, ptr<T> to, const T* from, std::size_t n) {
    return begin_accumulate(c, to, from, n);
  }
  template <class T>
  static void copy(context& c, ptr<T> to, const T* from, std::size_t n) {
    using C = component_of<T>;
    add_natively(c.link, to.rank(), to.offset(), reinterpret_cast<const C*>(from),
                 n * (sizeof(T) / sizeof(C)));
    note(c, operation::put, to.rank(), n * sizeof(T), false);
  }
  static void end(context&) {}
};

template <class Form, class Each>
void copy_pieces(context& c, const Each& each) {
  each([&](auto there, auto* here, std::size_t n) {
    check_access(c.link, Form::name, there, n);
    Form::copy(c, there, here, n);
  });
  Form::end(c);
}

template <class Form, class Each>
void begin_pieces(context& c, requests_in_flight& requests, const Each& each) {
  each([&](auto there, auto* here, std::size_t n) {
    check_access(c.link, Form::name, there, n);
    requests.add(Form::begin(c, there, here, n));
  });
}

/// Complete here on return.
template <class Form, class Each>
void all_pieces(const Each& each) {
  no_communication::check();
  context& c = here();
  if (c.link.coherent()) return copy_pieces<Form>(c, each);
  requests_in_flight requests;
  begin_pieces<Form>(c, requests, each);
  requests.wait();
  Form::end(c);
}

template <class Form, class Each>
future<void> async_all_pieces(const Each& each) {
  no_communication::check();
  context& c = here();
  if (c.link.coherent()) {
    copy_pieces<Form>(c, each);
    return future<void>::ready();
  }
  requests_in_flight requests;
  begin_pieces<Form>(c, requests, each);
  return requests.remaining(c);
}

}  // namespace far::inline FARSIDE_BACKEND::detail
