// What users' functions throw in a collective: operators, and those that read and write values. A
// member on which one throws goes on with the waves, since the others wait for it there. Then all
// members agree on whether one has failed, and all throw.
#pragma once

#include <farside/core/detail/tree_collectives.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail {

/// Standard operators do not say that they do not throw on numbers.
template <class Op>
inline constexpr bool is_plain_operator = false;
template <class T>
inline constexpr bool is_plain_operator<std::plus<T>> = std::is_arithmetic_v<T>;
template <class T>
inline constexpr bool is_plain_operator<std::multiplies<T>> = std::is_arithmetic_v<T>;
template <class T>
inline constexpr bool is_plain_operator<std::bit_and<T>> = std::is_arithmetic_v<T>;
template <class T>
inline constexpr bool is_plain_operator<std::bit_or<T>> = std::is_arithmetic_v<T>;
template <class T>
inline constexpr bool is_plain_operator<std::bit_xor<T>> = std::is_arithmetic_v<T>;

/// Whether op(a, b) may throw. Nothing has to be agreed on if not.
template <class Op, class T>
inline constexpr bool may_throw =
    !is_plain_operator<Op> &&
    !noexcept(T(std::declval<Op&>()(std::declval<const T&>(), std::declval<const T&>())));

/// What another member has sent cannot belong to this collective.
[[noreturn]] inline void raise_other_collective(context& c, const char* name,
                                                const std::string& other) {
  raise("rank ", c.link.rank(), " calls ", name, ", but ", other,
        " does not: it calls another collective, or none. All ranks of a team must call the same "
        "collectives in the same order.");
}

class attempt {
 public:
  static constexpr std::uint32_t nobody = ~std::uint32_t{0};
  static constexpr std::uint64_t longest_reason = std::uint64_t{1} << 20;  ///< longer ones are cut

  /// Calls f(), and keeps what it throws. Calls nothing after that.
  template <class F>
  void operator()(F&& f) {
    if (thrown_) return;
    try {
      f();
    } catch (...) {
      thrown_ = std::current_exception();
    }
  }

  /// `f` as a function whose failures are kept.
  template <class F>
  auto guarded(F f) {
    return [this, f](void* left, const void* right, std::size_t n) {
      (*this)([&] { f(left, right, n); });
    };
  }

  bool failed() const { return thrown_ != nullptr; }
  /// This member's position if a call on it has thrown, else nobody.
  std::uint32_t failed(const team_members& t) const { return thrown_ ? t.me : nobody; }

  /// Collective: throws on all members if a call has thrown on one. `doing` is what that was. One
  /// wave.
  void agree(context& c, team_members& t, const char* name, const char* doing) {
    std::uint32_t first = failed(t);
    all_reduce_bytes(c, t, &first, 1, sizeof first,
                     [](void* l, const void* r, std::size_t) { keep_first(l, r); });
    settle(c, t, first, name, doing);
  }

  /// Collective: the same where all know which member is the first that has failed.
  void settle(context& c, team_members& t, std::uint32_t first, const char* name,
              const char* doing) {
    if (first == nobody) [[likely]]
      return;
    if (first >= t.size() || (first == t.me && !thrown_))
      raise_other_collective(c, name, "another rank");
    std::string why = t.me == first ? reason().substr(0, longest_reason) : std::string();
    std::uint64_t length = why.size();
    broadcast_bytes(c, t, &length, sizeof length, first);
    if (length == 0 || length > longest_reason)
      raise_other_collective(c, name, text("rank ", t.ranks[first]));
    why.resize(length);
    broadcast_bytes(c, t, why.data(), length, first);
    if (thrown_) std::rethrow_exception(thrown_);
    raise(name, ": ", doing, " on rank ", t.ranks[first], ": ", why);
  }

  /// Of two positions in memory, the first stays.
  static void keep_first(void* mine, const void* theirs) {
    std::uint32_t a, b;
    std::memcpy(&a, mine, sizeof a);
    std::memcpy(&b, theirs, sizeof b);
    a = std::min(a, b);
    std::memcpy(mine, &a, sizeof a);
  }

 private:
  /// Not empty, which no other member would believe.
  std::string reason() const {
    try {
      std::rethrow_exception(thrown_);
    } catch (const std::exception& e) {
      const std::string why = e.what();
      return why.empty() ? "an exception that says nothing" : why;
    } catch (...) {
      return "an exception that is no std::exception";
    }
  }

  std::exception_ptr thrown_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
