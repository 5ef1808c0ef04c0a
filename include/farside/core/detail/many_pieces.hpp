// Operations on many pieces of memory at once: what is under the strided and the vector forms.
//
// `each(visit)` calls visit(far pointer, local pointer, elements) for every piece. Where memory is
// coherent a piece is a copy, or additions in place. Elsewhere short pieces share an operation where
// the transport can do that (run_batches.hpp), and all others are operations of their own. Up to 64
// of either are in flight together: a longer list waits for its first ones as it goes on.
#pragma once

#include <farside/backend/shared/shared_memory.hpp>
#include <farside/core/access.hpp>
#include <farside/core/accumulate.hpp>
#include <farside/core/detail/run_batches.hpp>
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
  /// Futures of those that are not complete.
  void hand_over(context& c, std::vector<future<void>>& left) {
    for (std::size_t i = 0; i < std::min(count_, most); ++i)
      if (!ring_[i].test()) left.push_back(in_flight(c, std::move(ring_[i])));
  }

 private:
  std::array<transport::request, most> ring_;
  std::size_t count_ = 0;
};

/// Begins one piece, where memory is not coherent.
struct begins_put {
  static constexpr operation kind = operation::put;
  static constexpr bool reads = false, adds = false;
  static constexpr const char* name = "put";
  template <class T>
  static transport::request begin(context& c, ptr<T> to, const T* from, std::size_t n) {
    return perform(kind, to.rank(), n * sizeof(T), [&](context&) {
      return c.link.async_put(to.rank(), to.offset(), from, n * sizeof(T));
    });
  }
  template <class T, class Link>
  static transport::request begin_runs(Link& link, rank_t rank, std::span<const run> where,
                                       void* data, std::size_t bytes) {
    return perform(kind, rank, bytes,
                   [&](context&) { return link.async_put_runs(rank, where, data, bytes); });
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
  static constexpr bool reads = true, adds = false;
  static constexpr const char* name = "get";
  template <class T, class Target>
  static transport::request begin(context& c, ptr<T> from, Target* to, std::size_t n) {
    return perform(kind, from.rank(), n * sizeof(T), [&](context&) {
      return c.link.async_get(from.rank(), from.offset(), to, n * sizeof(T));
    });
  }
  template <class T, class Link>
  static transport::request begin_runs(Link& link, rank_t rank, std::span<const run> where,
                                       void* data, std::size_t bytes) {
    return perform(kind, rank, bytes,
                   [&](context&) { return link.async_get_runs(rank, where, data, bytes); });
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
  static constexpr bool reads = false, adds = true;
  static constexpr const char* name = "accumulate";
  template <class T>
  static transport::request begin(context& c, ptr<T> to, const T* from, std::size_t n) {
    return begin_accumulate(c, to, from, n);
  }
  template <class T, class Link>
  static transport::request begin_runs(Link& link, rank_t rank, std::span<const run> where,
                                       void* data, std::size_t bytes) {
    using C = component_of<T>;
    return perform(operation::put, rank, bytes, [&](context&) {
      return link.async_accumulate_runs(rank, where, static_cast<const C*>(data),
                                        bytes / sizeof(C));
    });
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

/// All pieces of a call, begun.
template <class Form, class T>
class begun_pieces {
 public:
  template <class Each>
  begun_pieces(context& c, const Each& each) : batches_(c) {
    each([&](auto there, auto* here, std::size_t n) {
      check_access(c.link, Form::name, there, n);
      if constexpr (moves_runs<transport>)
        if (batches_.take(there, here, n)) return;
      requests_.add(Form::begin(c, there, here, n));
    });
    if constexpr (moves_runs<transport>) batches_.begin_rest();
  }
  void wait() {
    requests_.wait();
    batches_.wait();
  }
  future<void> remaining(context& c) {
    std::vector<future<void>> left;
    requests_.hand_over(c, left);
    batches_.hand_over(left);
    return left.empty() ? future<void>::ready() : when_all(std::move(left));
  }

 private:
  requests_in_flight requests_;
  run_batches<Form, T> batches_;
};

/// Complete here on return. T: what the far pointers point to.
template <class Form, class T, class Each>
void all_pieces(const Each& each) {
  no_communication::check();
  context& c = here();
  if (c.link.coherent()) return copy_pieces<Form>(c, each);
  begun_pieces<Form, T>(c, each).wait();
  Form::end(c);
}

template <class Form, class T, class Each>
future<void> async_all_pieces(const Each& each) {
  no_communication::check();
  context& c = here();
  if (c.link.coherent()) {
    copy_pieces<Form>(c, each);
    return future<void>::ready();
  }
  return begun_pieces<Form, T>(c, each).remaining(c);
}

}  // namespace far::inline FARSIDE_BACKEND::detail
