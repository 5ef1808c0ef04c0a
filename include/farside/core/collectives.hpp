// Collectives over a team: all members call the same one, in the same order, with the same sizes
// and root (checked builds verify that). Each returns when this member has its result; only
// far::barrier completes puts.
//
// Types: anything serializable. What is trivially copyable travels as bytes, of any size.
// Failure: where a serializer or an operator throws on one member, the collective throws on all:
// there what was thrown, elsewhere far::error with its text. No span has changed then, and the team
// can be used on.
// Cost: up to 1 KiB, one wave up and one down a tree of radix 8; above, pieces of at least 64 KiB
// through the members' segments, with one such double wave each. One more where values are
// serialized, and where an operator that is not noexcept folds more than fits a wave, or a scan.
#pragma once

#include <farside/core/detail/member_values.hpp>
#include <farside/core/serialization.hpp>
#include <farside/core/team.hpp>

#include <algorithm>
#include <bit>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string_view>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// Reduction operators beside std::plus<> and its kin.
struct minimum {
  template <class T>
  T operator()(const T& a, const T& b) const noexcept(noexcept(T(b < a ? b : a))) {
    return b < a ? b : a;
  }
};
struct maximum {
  template <class T>
  T operator()(const T& a, const T& b) const noexcept(noexcept(T(a < b ? b : a))) {
    return a < b ? b : a;
  }
};

namespace detail {

/// Whether `op` folds two values of a T: what is wrong is said here, and not deep inside.
template <class Op, class T>
constexpr void require_operator() {
  static_assert(!std::is_same_v<Op, team>,
                "a team stands where an operator is expected: name the operator before it, as in "
                "far::all_reduce(x, std::plus<>(), team).");
  static_assert(std::is_same_v<Op, team> || std::is_invocable_v<Op&, const T&, const T&>,
                "the operator cannot be called as op(a, b) with two values of the type that is "
                "reduced: give std::plus<>(), far::minimum(), far::maximum() or a function of your "
                "own for that type.");
}

inline void require_root(const team& over, const char* name, rank_t root) {
  if (root >= over.members().size())
    raise(name, ": root ", root, " is not in a team of ", over.size(), " members.");
}

/// Every collective goes through here: counted, named for the board, agreement checked.
template <call_name Name, class Work>
auto collectively(const team& over, std::size_t element, std::size_t count, rank_t root,
                  std::source_location at, Work work) {
  team_members& t = over.members();
  timed until_return(operation::collective, 0, element * count);
  context& c = until_return.where();
  calls note(c, t, Name, at);
  t.phase = detail::job::waiting::collective;
  check_agreement(c, t, Name.text, element, count, root);
  return work(c, t);
}

}  // namespace detail

/// The root's value, everywhere.
template <class T>
T broadcast(T value, rank_t root, const team& over = world(),
            std::source_location at = std::source_location::current()) {
  detail::require_serializable<T>();
  detail::require_root(over, "broadcast", root);
  if constexpr (detail::plain<T>) {
    return detail::collectively<"broadcast">(over, sizeof(T), 1, root, at, [&](auto& c, auto& t) {
      detail::broadcast_bytes(c, t, &value, sizeof(T), root);
      return value;
    });
  } else {
    return detail::collectively<"broadcast">(over, 0, 1, root, at, [&](auto& c, auto& t) {
      detail::blob object;
      if (t.me == root) object = detail::to_blob(value);
      std::uint64_t size = object.bytes.size() << 1 | (object.thrown ? 1 : 0);
      detail::broadcast_bytes(c, t, &size, sizeof size, root);
      object.bytes.resize(size >> 1);
      detail::broadcast_bytes(c, t, object.bytes.data(), size >> 1, root);
      if (object.thrown) std::rethrow_exception(object.thrown);
      if (size & 1) detail::raise_blob("broadcast", t.ranks[root], object.bytes);
      detail::attempt tried;
      std::optional<T> result;
      tried([&] { result.emplace(t.me == root ? std::move(value) : from_bytes<T>(object.bytes)); });
      tried.agree(c, t, "broadcast", detail::could_not_load);
      return std::move(*result);
    });
  }
}

/// The root's elements, into everybody's span, which all have the same length.
template <class T>
void broadcast(std::span<T> values, rank_t root, const team& over = world(),
               std::source_location at = std::source_location::current()) {
  detail::require_transferable<T>();
  detail::require_root(over, "broadcast", root);
  detail::collectively<"broadcast">(
      over, sizeof(T), values.size(), root, at, [&](auto& c, auto& t) {
        detail::broadcast_bytes(c, t, values.data(), values.size_bytes(), root);
      });
}

/// op(op(value of member 0, of member 1), ...), everywhere. `op` is associative; if it throws on one
/// member, all_reduce throws on all. The order of the members is kept.
template <class T, class Op = std::plus<>>
T all_reduce(T value, Op op = {}, const team& over = world(),
             std::source_location at = std::source_location::current()) {
  detail::require_serializable<T>();
  detail::require_operator<Op, T>();
  if constexpr (detail::plain<T>) {
    return detail::collectively<"all_reduce">(over, sizeof(T), 1, detail::job::no_rank, at,
                                              [&](auto& c, auto& t) {
                                                detail::reduce_values(c, t, &value, 1, op);
                                                return value;
                                              });
  } else {
    return detail::collectively<"all_reduce">(
        over, 0, 1, detail::job::no_rank, at,
        [&](auto& c, auto& t) { return detail::fold_all(c, t, "all_reduce", value, op); });
  }
}

/// Element by element, in place.
template <class T, class Op = std::plus<>>
void all_reduce(std::span<T> values, Op op = {}, const team& over = world(),
                std::source_location at = std::source_location::current()) {
  detail::require_transferable<T>();
  detail::require_operator<Op, T>();
  detail::collectively<"all_reduce">(
      over, sizeof(T), values.size(), detail::job::no_rank, at,
      [&](auto& c, auto& t) { detail::reduce_values(c, t, values.data(), values.size(), op); });
}

/// Like all_reduce; the result is the root's alone, others get a value-initialised T.
template <class T, class Op = std::plus<>>
T reduce(T value, rank_t root, Op op = {}, const team& over = world(),
         std::source_location at = std::source_location::current()) {
  detail::require_operator<Op, T>();
  detail::require_root(over, "reduce", root);
  detail::calls note(detail::here(), over.members(), detail::named<"reduce">, at);
  T result = all_reduce(std::move(value), op, over);
  return over.rank() == root ? result : T();
}

/// Every member's value in order, everywhere.
template <class T>
std::vector<T> all_gather(const T& value, const team& over = world(),
                          std::source_location at = std::source_location::current()) {
  detail::require_serializable<T>();
  if constexpr (detail::plain<T> && !std::same_as<T, bool>) {
    return detail::collectively<"all_gather">(
        over, sizeof(T), 1, detail::job::no_rank, at, [&](auto& c, auto& t) {
          std::vector<T> all(t.size());
          detail::all_gather_bytes(c, t, &value, all.data(), sizeof(T));
          return all;
        });
  } else {
    return detail::collectively<"all_gather">(
        over, 0, 1, detail::job::no_rank, at, [&](auto& c, auto& t) {
          return detail::unpack_all<T>(
              c, t, "all_gather",
              detail::gather_blobs(c, t, "all_gather", detail::to_blob(value), true));
        });
  }
}

/// Every member's elements, one member after another; all spans have the same length.
template <class T>
std::vector<std::remove_const_t<T>> all_gather(
    std::span<T> values, const team& over = world(),
    std::source_location at = std::source_location::current()) {
  detail::require_transferable<T>();
  return detail::collectively<"all_gather">(
      over, sizeof(T), values.size(), detail::job::no_rank, at, [&](auto& c, auto& t) {
        std::vector<std::remove_const_t<T>> all(values.size() * t.size());
        detail::all_gather_bytes(c, t, values.data(), all.data(), values.size_bytes());
        return all;
      });
}

/// Every member's value in order, at the root; elsewhere an empty vector.
template <class T>
std::vector<T> gather(const T& value, rank_t root, const team& over = world(),
                      std::source_location at = std::source_location::current()) {
  detail::require_serializable<T>();
  detail::require_root(over, "gather", root);
  if constexpr (detail::plain<T> && !std::same_as<T, bool>) {
    return detail::collectively<"gather">(over, sizeof(T), 1, root, at, [&](auto& c, auto& t) {
      std::vector<T> all(t.me == root ? t.size() : 0);
      detail::all_gather_bytes(c, t, &value, all.data(), sizeof(T), t.me == root);
      return all;
    });
  } else {
    return detail::collectively<"gather">(over, 0, 1, root, at, [&](auto& c, auto& t) {
      auto blobs = detail::gather_blobs(c, t, "gather", detail::to_blob(value), t.me == root);
      return detail::unpack_all<T>(c, t, "gather", blobs);
    });
  }
}

/// Inclusive scan: op over the values of members 0 to this one, in order.
template <class T, class Op = std::plus<>>
T scan(T value, Op op = {}, const team& over = world(),
       std::source_location at = std::source_location::current()) {
  detail::require_serializable<T>();
  detail::require_operator<Op, T>();
  if constexpr (detail::plain<T> && sizeof(T) < detail::slot_bytes) {
    return detail::collectively<"scan">(
        over, sizeof(T), 1, detail::job::no_rank, at, [&](auto& c, auto& t) {
          if (t.size() == 1) return value;
          T before = value;
          T result = value;
          detail::attempt tried;
          bool any = detail::scan_small(c, t, &value, &before, sizeof(T),
                                        tried.guarded(detail::fold_with<T>(op)));
          if (any) tried([&] { result = op(before, value); });
          if constexpr (detail::may_throw<Op, T>) tried.agree(c, t, "scan", detail::operator_threw);
          return result;
        });
  } else {
    return detail::collectively<"scan">(
        over, 0, 1, detail::job::no_rank, at,
        [&](auto& c, auto& t) { return detail::fold_all(c, t, "scan", value, op, true); });
  }
}

/// Exclusive scan: op over the values of the members before this one; `first` at member 0.
template <class T, class Op = std::plus<>>
T exclusive_scan(T value, T first = T(), Op op = {}, const team& over = world(),
                 std::source_location at = std::source_location::current()) {
  detail::require_operator<Op, T>();
  if constexpr (detail::plain<T> && sizeof(T) < detail::slot_bytes) {
    return detail::collectively<"exclusive_scan">(
        over, sizeof(T), 1, detail::job::no_rank, at, [&](auto& c, auto& t) {
          T before = value;
          detail::attempt tried;
          bool any = t.size() > 1 && detail::scan_small(c, t, &value, &before, sizeof(T),
                                                        tried.guarded(detail::fold_with<T>(op)));
          if constexpr (detail::may_throw<Op, T>)
            tried.agree(c, t, "exclusive_scan", detail::operator_threw);
          return any ? before : first;
        });
  } else {
    detail::calls note(detail::here(), over.members(), detail::named<"exclusive_scan">, at);
    auto inclusive = all_gather(scan(std::move(value), op, over), over);
    return over.rank() == 0 ? first : inclusive[over.rank() - 1];
  }
}

/// Member i's j-th element becomes member j's i-th; `values` has one for each member, in order.
template <class T>
std::vector<T> all_to_all(const std::vector<T>& values, const team& over = world(),
                          std::source_location at = std::source_location::current()) {
  detail::require_serializable<T>();
  if (values.size() != over.size())
    detail::raise("all_to_all needs one value for each of the ", over.size(), " members, not ",
                  values.size(), ".");
  return detail::collectively<"all_to_all">(
      over, sizeof(T), 1, detail::job::no_rank, at, [&](auto& c, auto& t) {
        auto exchange_words = [&](std::span<const std::uint64_t> out) {
          std::vector<std::uint64_t> in(t.size()), sizes(t.size(), 8);
          std::vector<const std::byte*> from(t.size());
          std::vector<std::byte*> to(t.size());
          for (rank_t i = 0; i < t.size(); ++i) {
            from[i] = reinterpret_cast<const std::byte*>(&out[i]);
            to[i] = reinterpret_cast<std::byte*>(&in[i]);
          }
          detail::all_to_all_bytes(c, t, from, sizes, to, sizes, 8);
          return in;
        };
        std::vector<std::vector<std::byte>> out(t.size()), in(t.size());
        std::vector<std::uint64_t> out_sizes(t.size());
        detail::attempt tried;
        tried([&] {
          for (rank_t i = 0; i < t.size(); ++i) out[i] = to_bytes(values[i]);
        });
        if constexpr (!detail::plain<T>)
          tried.agree(c, t, "all_to_all", "values could not be serialized");
        for (rank_t i = 0; i < t.size(); ++i) out_sizes[i] = out[i].size();
        std::vector<std::uint64_t> in_sizes = out_sizes;
        std::uint64_t longest = *std::max_element(out_sizes.begin(), out_sizes.end());
        if constexpr (!fixed_length<T>) {
          in_sizes = exchange_words(out_sizes);
          maximum op;
          detail::reduce_values(c, t, &longest, 1, op);
        }
        std::vector<const std::byte*> from(t.size());
        std::vector<std::byte*> to(t.size());
        for (rank_t i = 0; i < t.size(); ++i) {
          in[i].resize(in_sizes[i]);
          from[i] = out[i].data();
          to[i] = in[i].data();
        }
        detail::all_to_all_bytes(c, t, from, out_sizes, to, in_sizes, longest);
        return detail::unpack_all<T>(c, t, "all_to_all", in);
      });
}

}  // namespace far::inline FARSIDE_BACKEND
