// The values of a collective's members: as bytes that travel, back from those, and folded by a
// user's operator. Where that fails on one member, it throws on all.
#pragma once

#include <farside/core/detail/attempt.hpp>
#include <farside/core/serialization.hpp>

#include <bit>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

template <class T>
T from_memory(const void* at) {
  struct alignas(T) bytes {
    std::byte data[sizeof(T)];
  } copy;
  std::memcpy(&copy, at, sizeof(T));
  return std::bit_cast<T>(copy);
}

/// A serialized object; or what its serializer threw, and the text of that. Others have to hear of
/// it: they would wait for a member that has left.
struct blob {
  std::vector<std::byte> bytes;
  std::exception_ptr thrown{};
};
template <class T>
blob to_blob(const T& value) {
  auto failed = [](std::string_view why) -> blob {
    auto* text = reinterpret_cast<const std::byte*>(why.data());
    return {{text, text + why.size()}, std::current_exception()};
  };
  try {
    return {to_bytes(value)};
  } catch (const std::exception& e) {
    return failed(e.what());
  } catch (...) {
    return failed("an exception that is no std::exception");
  }
}
[[noreturn]] inline void raise_blob(const char* name, rank_t rank, std::span<const std::byte> why) {
  raise(name, ": rank ", rank, " could not serialize its value: ",
        std::string_view(reinterpret_cast<const char*>(why.data()), why.size()));
}

/// Serialized objects of all members, in order; only where `receive`. Lengths travel with a mark of
/// the collective: a member that is in another one must not be believed. All throw if one member
/// has no object.
inline std::vector<std::vector<std::byte>> gather_blobs(context& c, team_members& t,
                                                        const char* name, const blob& object,
                                                        bool receive) {
  const std::vector<std::byte>& mine = object.bytes;
  constexpr unsigned bits = 44;  // of a length, more than a segment has, below a bit for failures
  constexpr std::uint64_t failed = std::uint64_t{1} << (bits - 1);
  std::uint64_t mark = 0;
  for (const char* at = name; *at != '\0'; ++at)
    mark = (mark * 31 + static_cast<unsigned char>(*at)) & 0xfffff;
  std::uint64_t size = mine.size() | (object.thrown ? failed : 0) | mark << bits;
  std::vector<std::uint64_t> sizes(t.size());
  all_gather_bytes(c, t, &size, sizes.data(), sizeof size);
  for (rank_t i = 0; i < t.size(); ++i) {
    if (sizes[i] >> bits != mark) raise_other_collective(c, name, text("rank ", t.ranks[i]));
    sizes[i] &= (std::uint64_t{1} << bits) - 1;
  }
  rank_t bad = 0;
  while (bad < t.size() && (sizes[bad] & failed) == 0) ++bad;
  receive = receive || bad < t.size();
  for (std::uint64_t& length : sizes) length &= failed - 1;
  std::vector<std::vector<std::byte>> blobs(receive ? t.size() : 0);
  std::vector<std::byte*> to(t.size());
  for (rank_t i = 0; receive && i < t.size(); ++i) {
    blobs[i].resize(sizes[i]);
    to[i] = blobs[i].data();
  }
  gather_bytes(c, t, mine.data(), sizes, to, receive);
  if (object.thrown) std::rethrow_exception(object.thrown);
  if (bad < t.size()) raise_blob(name, t.ranks[bad], blobs[bad]);
  return blobs;
}

inline constexpr const char* could_not_load = "values could not be loaded";
inline constexpr const char* operator_threw = "the operator threw";

/// Collective: what all members have sent, where `blobs` has it. All throw if one cannot read it.
template <class T>
std::vector<T> unpack_all(context& c, team_members& t, const char* name,
                          const std::vector<std::vector<std::byte>>& blobs) {
  std::vector<T> result;
  attempt tried;
  tried([&] {
    result.reserve(blobs.size());
    for (const auto& blob : blobs) result.push_back(from_bytes<T>(blob));
  });
  tried.agree(c, t, name, could_not_load);
  return result;
}

/// Collective: folds all members' serialized values, or those up to this member's.
template <class T, class Op>
T fold_all(context& c, team_members& t, const char* name, const T& value, Op& op,
           bool up_to_me = false) {
  auto blobs = gather_blobs(c, t, name, to_blob(value), true);
  if (up_to_me) blobs.resize(t.me + 1);
  auto all = unpack_all<T>(c, t, name, blobs);
  attempt tried;
  tried([&] {
    for (std::size_t i = 1; i < all.size(); ++i) all[0] = op(std::move(all[0]), all[i]);
  });
  if constexpr (may_throw<Op, T>) tried.agree(c, t, name, operator_threw);
  return std::move(all[0]);
}

/// An operator on T as one on bytes. The bytes need not be aligned for T.
template <class T, class Op>
auto fold_with(Op& op) {
  return [&op](void* left, const void* right, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      auto* to = static_cast<std::byte*>(left) + i * sizeof(T);
      T a = from_memory<T>(to);
      a = op(a, from_memory<T>(static_cast<const std::byte*>(right) + i * sizeof(T)));
      std::memcpy(to, &a, sizeof(T));
    }
  };
}

/// all_reduce in place. Where one wave carries the values it carries, too, who has failed.
template <class T, class Op>
void reduce_values(context& c, team_members& t, T* values, std::size_t n, Op& op) {
  auto fold = fold_with<T>(op);
  if constexpr (!may_throw<Op, T>) {
    all_reduce_bytes(c, t, values, n, sizeof(T), fold);
  } else {
    attempt tried;
    auto guarded = tried.guarded(fold);
    const std::size_t bytes = n * sizeof(T);
    std::uint32_t first = attempt::nobody;
    std::vector<std::byte> folded(bytes + sizeof first);
    std::memcpy(folded.data(), values, bytes);
    std::memcpy(folded.data() + bytes, &first, sizeof first);
    if (folded.size() <= slot_bytes) {
      all_reduce_bytes(c, t, folded.data(), 1, folded.size(),
                       [&](void* left, const void* right, std::size_t) {
                         guarded(left, right, n);
                         auto* who = static_cast<std::byte*>(left) + bytes;
                         attempt::keep_first(who, static_cast<const std::byte*>(right) + bytes);
                         std::uint32_t mine = tried.failed(t);
                         attempt::keep_first(who, &mine);
                       });
      std::memcpy(&first, folded.data() + bytes, sizeof first);
      tried.settle(c, t, first, "all_reduce", operator_threw);
    } else {
      all_reduce_bytes(c, t, folded.data(), n, sizeof(T), guarded);
      tried.agree(c, t, "all_reduce", operator_threw);
    }
    std::memcpy(values, folded.data(), bytes);
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail
