// What all queues of the library can do, and the pushes and pops of those that allow any mix of
// them.
#pragma once

#include <farside/containers/detail/ring/remote_calls.hpp>

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// An iterator over a copy of all elements, which all its copies share.
template <class T>
class snapshot_iterator {
 public:
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using reference = const T&;
  using pointer = const T*;
  using iterator_category = std::forward_iterator_tag;

  snapshot_iterator() = default;
  explicit snapshot_iterator(std::shared_ptr<const std::vector<T>> all) : all_(std::move(all)) {}

  reference operator*() const { return (*all_)[at_]; }
  pointer operator->() const { return &(*all_)[at_]; }
  snapshot_iterator& operator++() {
    ++at_;
    return *this;
  }
  snapshot_iterator operator++(int) {
    snapshot_iterator old = *this;
    ++at_;
    return old;
  }
  friend bool operator==(const snapshot_iterator& a, const snapshot_iterator& b) {
    return a.at_ == b.at_ && a.all_ == b.all_;
  }
  friend bool operator==(const snapshot_iterator& a, std::default_sentinel_t) {
    return !a.all_ || a.at_ == a.all_->size();
  }

 private:
  std::shared_ptr<const std::vector<T>> all_;
  std::size_t at_ = 0;
};

/// The form of many elements, one after another. Those that are their own bytes are not copied.
template <class T>
class packed_forms {
 public:
  using form = box<T>;

  explicit packed_forms(std::span<const T> values) {
    if constexpr (plain<T>) {
      static_assert(sizeof(form) == sizeof(T));
      data_ = reinterpret_cast<const std::byte*>(values.data());
    } else {
      copy_.reserve(values.size() * sizeof(form));
      for (const T& value : values) {
        form packed = form::pack(value);
        auto* begin = reinterpret_cast<const std::byte*>(&packed);
        copy_.insert(copy_.end(), begin, begin + sizeof packed);
      }
      data_ = copy_.data();
    }
  }
  const std::byte* data() const { return data_; }

 private:
  std::vector<std::byte> copy_;
  const std::byte* data_ = nullptr;
};

/// The parts that do not depend on when pushes and pops may overlap.
template <class T, class Slots>
class queue_base {
 public:
  using value_type = T;
  using iterator = snapshot_iterator<T>;

  /// Elements at most. Local.
  std::uint64_t capacity() const { return state_->tickets.shape().capacity; }
  /// The member of the team that it lies on. Local.
  rank_t host() const { return state_->host; }
  /// How operations of a kind (concurrency::push or pop) reach the host. Local.
  engine engine_of(container_operation kind) const { return state_->choice.of(kind); }
  /// What this rank has sent to the host. Local.
  far::engine_use engine_use() const { return state_->choice.use(); }
  const std::string& name() const { return state_->label; }
  const team& members() const { return state_->members; }

  /// How many elements there are. One-sided; may be out of date on return, as others push and pop.
  /// 2 atomics, 2 waits.
  std::uint64_t size() const { return state_->size(); }
  bool empty() const { return size() == 0; }

  /// A copy of all elements, oldest first. One-sided; nobody may push or pop meanwhile.
  /// 1 get (2 where the ring wraps) and 3 atomics; and 1 get for each element of variable length.
  std::vector<T> as_vector() const {
    auto forms = state_->snapshot();
    return unpacked(forms.data(), forms.size() / sizeof(box<T>), false);
  }

  /// Iterates over such a copy, which begin() makes.
  iterator begin() const { return iterator(std::make_shared<const std::vector<T>>(as_vector())); }
  std::default_sentinel_t end() const { return {}; }

  /// Another capacity; the elements stay, in order. Collective: between two phases, with no push or
  /// pop of any member under way. A barrier, and a copy of the ring by its host.
  void resize(std::uint64_t new_capacity) {
    state_->require(state_->host, new_capacity, "resize");
    auto note = calling<"resize of a queue">(*state_);
    state_->rebuild(state_->host, new_capacity, true);
  }
  /// Another host, by its position in the team; the elements go along, in order. Collective like
  /// resize. The new host reads all: 1 get (2 where the ring wraps).
  void migrate(rank_t new_host) {
    state_->require(new_host, capacity(), "migrate");
    auto note = calling<"migrate of a queue">(*state_);
    state_->rebuild(new_host, capacity(), true);
  }
  /// Drops all elements. Collective like resize.
  void clear() {
    auto note = calling<"clear of a queue">(*state_);
    state_->rebuild(state_->host, capacity(), false);
  }

  /// Collective, the same for all members; in quiescence the numbers are exact. 1 broadcast.
  queue_statistics statistics() const {
    queue_statistics all;
    const auto& s = *state_;
    auto note = calling<"statistics of a queue">(s);
    if (s.members.rank() == s.host) {
      std::uint64_t head = s.tickets.look(ring_word::head), tail = s.tickets.look(ring_word::tail);
      all.size = s.size();
      all.capacity = s.tickets.shape().capacity;
      all.pushes = s.pushes_before + tail;
      all.pops = s.pops_before + head;
      all.bytes = s.tickets.shape().lines() * sizeof(ring_line);
    }
    return broadcast(all, s.host, s.members);
  }

 protected:
  using state = queue_state<T, Slots>;
  using form = box<T>;

  friend handle_access;
  explicit queue_base(container_handle<state> of) : state_(std::move(of)) {}
  queue_base(const char* kind, rank_t host, std::uint64_t capacity, const container_options& with)
      : state_(new state(kind, host, capacity, with)) {}

  /// Elements that are their own bytes can be read to where they shall be.
  static constexpr bool own_bytes =
      plain<T> && std::is_default_constructible_v<T> && !std::is_same_v<T, bool>;

  /// Objects of `n` forms that `read` writes to where it is told.
  template <class Read>
  static std::vector<T> unpacked(std::size_t n, bool taken, Read read) {
    if constexpr (own_bytes) {
      std::vector<T> values(n);
      if (n != 0) read(reinterpret_cast<std::byte*>(values.data()));
      return values;
    } else {
      std::vector<std::byte> forms(n * sizeof(form));
      if (n != 0) read(forms.data());
      return unpacked(forms.data(), n, taken);
    }
  }
  /// Objects of `n` forms in memory; their boxes are released if they are `taken`.
  static std::vector<T> unpacked(const std::byte* forms, std::size_t n, bool taken) {
    std::vector<T> values;
    if constexpr (own_bytes) {
      values.resize(n);
      if (n != 0) std::memcpy(static_cast<void*>(values.data()), forms, n * sizeof(T));
      return values;
    }
    values.reserve(n);
    for (std::size_t i = 0; i < n; ++i) values.push_back(unpack(forms + i * sizeof(form), taken));
    return values;
  }
  static T unpack(const std::byte* at, bool taken) {
    auto packed = from_memory<form>(at);
    if constexpr (form::in_place) {
      return packed.unpack();
    } else {
      T value = packed.unpack();
      if (taken) packed.release();
      return value;
    }
  }

  void require_bulk(const state& s, const char* what, std::uint64_t n) const {
    if (n > s.tickets.shape().capacity)
      raise(what, " of ", n, " elements to ", s.kind_name, " '", s.label, "', which holds ",
            s.tickets.shape().capacity, " at most: push them in several parts, or resize() it.");
  }

  [[noreturn]] static void raise_full(const state& s, std::uint64_t wanted, std::uint64_t done) {
    raise(s.kind_name, " '", s.label, "' is full: ", done, " of ", wanted,
          " elements were pushed, and nobody may pop before the next barrier. Ask for a larger "
          "capacity (it is ",
          s.tickets.shape().capacity, "), or use try_push.");
  }
  [[noreturn]] static void raise_empty(const state& s) {
    raise(s.kind_name, " '", s.label,
          "' is empty, and nobody may push before the next barrier: pop would wait for ever. Use "
          "try_pop.");
  }

  container_handle<state> state_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
