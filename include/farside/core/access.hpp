// How an operation reaches the transport, and what is counted and checked on its way.
//
//   access()
//     | a fast link of this thread is true          the fast link               inline
//     | nobody counts or checks                     the back end                a call
//     | else                                        perform(): checks, counts,  a call
//     v                                             then the back end
//
// A thread has fast links as long as nobody counts its operations and its rank has one thread
// (each of several might begin to count). So an operation that finds one has nothing else to ask.
#pragma once

#include <farside/core/wait_marker.hpp>

#include <mutex>
#include <tuple>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail {

/// What a thread keeps at hand for its operations.
template <class B>
struct fast_access {
  /// Null: there is no runtime, or operations have to go through perform().
  template <class Context>
  void set(Context* c) {
    *this = {};
    if (c == nullptr) return;
    if constexpr (has_fast_links<B>) links = c->link.fast_links();
    marks = c->call_marks;
    uncounted = c;
  }
  typename fast_links_of<B>::type links{};
  std::atomic<job::wait>* marks = nullptr;  ///< for call_marker
  context* uncounted = nullptr;             ///< the back end may be called directly
};

inline constinit thread_local fast_access<transport> fast{};

inline constexpr std::size_t fast_link_count =
    FARSIDE_CHECKED ? 0 : std::tuple_size_v<decltype(fast.links)>;

/// Makes `c` the context of this thread, and gives the thread its fast links.
inline void set_current(context* c) {
  current = c;
  bool nobody_counts = c != nullptr && !c->counts && c->threads == thread_level::single;
  fast.set(nobody_counts ? c : nullptr);
}

/// Finds the context; counts and times one operation as long as it lives, if somebody counts.
class timed {
 public:
  [[gnu::noinline]] timed(operation kind, rank_t target, std::size_t bytes)
      : c_(here()),
        bytes_(bytes),
        begin_(c_.counts ? job::monotonic_ns() : 0),
        kind_(kind),
        target_(target) {}
  [[gnu::noinline]] ~timed() {
    if (!c_.counts) return;
    std::lock_guard lock(c_.mutex);
    if (c_.counts) c_.counts->add(kind_, target_, bytes_, job::monotonic_ns() - begin_);
  }
  timed(const timed&) = delete;
  context& where() const { return c_; }

 private:
  context& c_;
  std::size_t bytes_;
  std::uint64_t begin_;
  operation kind_;
  rank_t target_;
};

/// Counts a round trip that is waited for, if somebody counts.
inline void count_wait(context& c) {
  if (!c.counts) return;
  std::lock_guard lock(c.mutex);
  if (c.counts) ++c.counts->totals.waits;
}

/// Counts an operation that was made by other means than put, get and atomics: containers load and
/// store directly where memory is coherent, and say what that stood for.
inline void note(context& c, operation kind, rank_t target, std::size_t bytes, bool waited) {
  if (!c.counts) [[likely]]
    return;
  std::lock_guard lock(c.mutex);
  if (!c.counts) return;
  c.counts->add(kind, target, bytes, 0);
  c.counts->totals.waits += waited;
}

/// Checked builds: as long as it lives, this thread may not communicate. It surrounds the calls of
/// functions that users have given to `inside`, which may be called several times.
class no_communication {
 public:
  explicit no_communication([[maybe_unused]] const char* inside) {
    if constexpr (FARSIDE_CHECKED) outer_ = std::exchange(where_, inside);
  }
  ~no_communication() {
    if constexpr (FARSIDE_CHECKED) where_ = outer_;
  }
  no_communication(const no_communication&) = delete;

  static void check() {
    if constexpr (FARSIDE_CHECKED)
      if (where_ != nullptr) [[unlikely]]
        raise("the function given to ", where_,
              " communicates. It may be called several times, and others wait for it meanwhile: "
              "read what it needs before, and let it compute only.");
  }

 private:
  inline static constinit thread_local const char* where_ = nullptr;
  const char* outer_ = nullptr;
};

/// Does `work(context)`, and counts it if somebody counts. Everything that is counted goes through
/// here. Forced inline, so that what `work` captures stays in registers.
template <class Work>
[[gnu::always_inline]] inline auto perform(operation kind, rank_t target, std::size_t bytes,
                                           Work&& work) {
  no_communication::check();
  timed until_return(kind, target, bytes);
  context& c = until_return.where();
  if constexpr (!never_waits<transport>) {
    if (c.call_marks != &c.unseen) {  // which several threads of a rank would all write
      call_marker while_waiting(c.call_marks, kind, target);
      return work(c);
    }
  }
  return work(c);
}

/// Gives `work` the back end, out of line.
template <class Work>
[[gnu::noinline]] auto access_by_back_end(operation kind, rank_t target, std::size_t bytes,
                                          Work work) {
  if constexpr (!FARSIDE_CHECKED) {
    if (context* c = fast.uncounted) [[likely]] {
      call_marker while_waiting(fast.marks, kind, target);
      return work(c->link);
    }
  }
  return perform(kind, target, bytes, [&](context& c) {
    if (kind != operation::put) count_wait(c);
    return work(c.link);
  });
}

/// One put, get, atomic or flush, which `work(link)` does. `work` is small, captures by value what
/// is one and is forced inline, so that all of it stays in registers.
template <std::size_t First = 0, class Work>
[[gnu::always_inline]] inline auto access(operation kind, rank_t target, std::size_t bytes,
                                          Work work) {
  if constexpr (First < fast_link_count) {
    auto& link = std::get<First>(fast.links);
    if (link) [[likely]] {
      if constexpr (std::remove_cvref_t<decltype(link)>::waits_for_nobody) {
        return work(link);
      } else {
        call_marker while_waiting(fast.marks, kind, target);
        return work(link);
      }
    }
    return access<First + 1>(kind, target, bytes, work);
  } else {
    return access_by_back_end(kind, target, bytes, work);
  }
}

/// Calls `use(link)` with the fast link of this thread, if it has one. Whether `use` was called and
/// gave true.
template <std::size_t First = 0, class Use>
[[gnu::always_inline]] inline bool with_fast_link(Use use) {
  if constexpr (First < fast_link_count) {
    auto& link = std::get<First>(fast.links);
    if (link) [[likely]]
      return use(link);
    return with_fast_link<First + 1>(use);
  } else {
    return false;
  }
}

template <class Link, class T>
[[gnu::cold, gnu::noinline]] void refuse_access(const Link& link, const char* what, ptr<T> p,
                                                std::size_t n, const char* why) {
  context& c = here();
  static_cast<void>(link);
  raise("rank ", c.link.rank(), ": ", what, " of ", n, " x ", sizeof(T), " bytes at ", p, " of ",
        c.link.nprocs(), " ranks with segments of ", c.link.segment_size(), " bytes: ", why,
        ". Use pointers from far::alloc, far::make or far::alloc_on, within what was allocated.");
}

/// The pointer must name memory that exists. Checked builds look closely. Others compare, unless
/// the CPU does (bad_address.hpp).
template <class Link, class T>
[[gnu::always_inline]] inline void check_access([[maybe_unused]] const Link& link,
                                                [[maybe_unused]] const char* what,
                                                [[maybe_unused]] ptr<T> p,
                                                [[maybe_unused]] std::size_t n) {
  if constexpr (!FARSIDE_CHECKED && !guarded_by_pages<Link>) {
    const std::size_t end = link.segment_size();
    if (p.offset() < null_guard || n > (end - p.offset()) / sizeof(T) || p.offset() > end ||
        p.rank() >= link.nprocs()) [[unlikely]] {
      if (n == 0) return;
      refuse_access(link, what, p, n,
                    !p                          ? "the pointer is null"
                    : p.rank() >= link.nprocs() ? "there is no such rank"
                    : p.offset() < null_guard   ? "nothing lies there: the pointer was never set"
                                              : "it reaches beyond the end of that rank's segment");
    }
  }
  if constexpr (FARSIDE_CHECKED) {
    const char* why = nullptr;
    if (!p)
      why = "the pointer is null";
    else if (p.raw() >> 63)
      why = "the pointer names device memory, which this back end does not have";
    else if (p.rank() >= link.nprocs())
      why = "there is no such rank";
    else if (n > link.segment_size() / sizeof(T) ||
             p.offset() + n * sizeof(T) > link.segment_size())
      why = "it reaches beyond the end of that rank's segment";
    else if (p.offset() < null_guard)
      why = "nothing lies there: the pointer was never set";
    else if (p.offset() % alignof(T) != 0)
      why = "the pointer is not aligned for its type";
    if (why != nullptr) [[unlikely]]
      refuse_access(link, what, p, n, why);
  }
}

/// A far::ptr<T> is aligned for T: of what is computed so a compiler knows that, too.
template <class T>
constexpr std::size_t aligned_offset(ptr<T> p) {
  return p.offset() & ~(alignof(T) - 1);
}

}  // namespace far::inline FARSIDE_BACKEND::detail
