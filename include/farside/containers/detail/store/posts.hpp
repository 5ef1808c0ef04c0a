// Posts: puts that their owners do. docs/protocols/store.md draws what becomes of one.
//
//   kept <--- the owner's slots are taken ---- post ---- a slot is free ---> at the owner
//    |        (only where it may not wait)                                        |
//    +--- an answer frees a slot -------------------------------------------> activated, or
//                                                                             declined: then the
//   stuck <--- no room at the owner ---------------------------------------- poster puts it
//    +--- the next fence tries again, and throws if there is none still
//
// A poster puts what was declined in a continuation, one after another: another answer that comes
// while it waits only adds to the list, so that no stack grows with the posts under way.
#pragma once

#include <farside/containers/detail/store/traffic.hpp>

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::stores {

/// What an owner says of a post.
struct post_answer {
  bool done;
  bool duplicate;
  map::counted count;  ///< for the poster to account for
};

template <class Core>
class posting {
 public:
  posting(rank_t members, const store_options& with)
      : pending_slots_(std::max<std::uint32_t>(with.pending_slots, 1)),
        outstanding_(members),
        kept_(members) {}

  template <class K, class Value>
  void post(Core& m, const K& key, const Value& value) {
    const rank_t to = m.place_of(key).member;
    const bool waits = may_wait(m, *m.shared);
    if (to == m.members.rank() && waits) {
      m.shared->counts.count_sent();
      put_here(m, key, value);
      return m.shared->counts.count_handled();
    }
    if (!take_slot(to)) {
      held_back_.fetch_add(1, std::memory_order_relaxed);
      if (!waits) {
        m.shared->counts.count_sent();
        {
          std::lock_guard lock(mutex_);
          kept_[to].emplace_back(key, value);
        }
        return send_kept(m, to);  // all answers may have come before it was kept
      }
      for (unsigned rounds = 0; !take_slot(to);) m.c.wait_round(rounds);
    }
    m.shared->counts.count_sent();
    try {
      send(m, to, key, value);
    } catch (...) {
      outstanding_[to].fetch_sub(1);
      m.shared->counts.count_handled();
      throw;
    }
  }

  /// Until nothing that this rank has posted is under way.
  void settle(Core& m) {
    for (unsigned rounds = 0; is_under_way();) {
      for (rank_t to = 0; to < outstanding_.size(); ++to) send_kept(m, to);
      if (is_under_way()) m.c.wait_round(rounds);
    }
  }

  /// What had no room at its owner, once more.
  void retry(Core& m) {
    std::vector<stuck> again;
    {
      std::lock_guard lock(mutex_);
      again.swap(stuck_);
    }
    for (stuck& one : again) put_here(m, one.key, one.value);
  }
  /// Why the first of those is stuck that are; empty if none is.
  std::string trouble() {
    std::lock_guard lock(mutex_);
    return stuck_.empty() ? std::string() : stuck_.front().why;
  }
  std::string first_duplicate() {
    std::lock_guard lock(mutex_);
    return first_duplicate_;
  }
  fence_report report() const { return {activated_, duplicates_, held_back_}; }
  /// That has been told.
  void forget(const fence_report& told) {
    activated_ -= told.activated, duplicates_ -= told.duplicates, held_back_ -= told.held_back;
    std::lock_guard lock(mutex_);
    first_duplicate_.clear();
  }

  /// What runs at the owner.
  template <class K, class Value>
  static post_answer activate(named<Core>& to, const K& key, const Value& value) {
    Core& m = *to;
    typename Core::outcome counts;
    try {
      const changed what = m.template put_value<if_blocked::give_up>(key, value, counts);
      if (what == changed::yes) return {true, false, counts.count};
      if (what == changed::blocked) return {};
      if (m.options.on_duplicate != on_duplicate::replace) return {true, true, {}};
      if (m.template replace_value<if_blocked::give_up>(key, value) == changed::yes)
        return {true, true, {}};
    } catch (const rank_failure&) {
      throw;
    } catch (const std::exception&) {  // the poster sees for itself
    }
    return {};
  }

 private:
  using K = typename Core::K;
  using Value = typename Core::value_type;
  struct stuck {
    K key;
    Value value;
    std::string why;
  };

  bool take_slot(rank_t to) {
    std::uint32_t n = outstanding_[to].load(std::memory_order_relaxed);
    while (n < pending_slots_)
      if (outstanding_[to].compare_exchange_weak(n, n + 1)) return true;
    return false;
  }
  bool is_under_way() {
    for (const auto& n : outstanding_)
      if (n.load(std::memory_order_acquire) != 0) return true;
    std::lock_guard lock(mutex_);
    for (const auto& some : kept_)
      if (!some.empty()) return true;
    return false;
  }

  /// A slot of the owner has been taken for it, and it has been counted as sent.
  void send(Core& m, rank_t to, const K& key, const Value& value) {
    rpc(m.members.world_rank(to), &posting::activate<K, Value>, named<Core>(m), key, value)
        .finally([&m, this, to, item = std::pair(key, value), all = m.shared](auto answer) {
          if (all->of.load() == nullptr) return;
          ++all->continuing;
          if (is_activated(m, to, item.first, std::move(answer)))
            end_of_post(m, to);
          else
            put_declined(m, {to, item.first, item.second});
          --all->continuing;
        });
  }
  void end_of_post(Core& m, rank_t to) {
    outstanding_[to].fetch_sub(1, std::memory_order_release);
    send_kept(m, to);
    m.shared->counts.count_handled();
  }

  /// Whether the owner has done it. This rank counts what it has.
  bool is_activated(Core& m, rank_t to, const K& key, future<post_answer> from) {
    post_answer answer{};
    try {
      answer = from.get();
    } catch (const rpc_error&) {  // then this rank meets the same error
    }
    if (!answer.done && !FARSIDE_MUTANT(store_declined_post_dropped)) return false;
    typename Core::outcome done;
    done.count = answer.count;
    m.account_for(to, done);
    if (answer.duplicate)
      count_duplicate(key);
    else
      activated_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  struct declined {
    rank_t to;
    K key;
    Value value;
  };
  void put_declined(Core& m, declined one) {
    {
      std::lock_guard lock(mutex_);
      declined_.push_back(std::move(one));
      if (std::exchange(putting_, true)) return;  // whoever is at it comes to this one
    }
    while (true) {
      std::optional<declined> next;
      {
        std::lock_guard lock(mutex_);
        if (declined_.empty()) {
          putting_ = false;
          return;
        }
        next = std::move(declined_.front());
        declined_.pop_front();
      }
      put_here(m, next->key, next->value);
      end_of_post(m, next->to);
    }
  }

  void send_kept(Core& m, rank_t to) {
    while (true) {
      std::optional<std::pair<K, Value>> next;
      {
        std::lock_guard lock(mutex_);
        if (kept_[to].empty() || !take_slot(to)) return;
        next = std::move(kept_[to].front());
        kept_[to].pop_front();
      }
      try {
        send(m, to, next->first, next->second);
      } catch (const allocation_error& e) {
        outstanding_[to].fetch_sub(1);
        keep_stuck(next->first, next->second, e.what());
        m.shared->counts.count_handled();
      }
    }
  }

  /// A put by this rank, which waits.
  void put_here(Core& m, const K& key, const Value& value) {
    typename Core::outcome counts;
    try {
      while (true) {
        if (m.template put_value<if_blocked::wait>(key, value, counts) == changed::yes) {
          activated_.fetch_add(1, std::memory_order_relaxed);
          return;
        }
        if (m.options.on_duplicate != on_duplicate::replace ||
            m.template replace_value<if_blocked::wait>(key, value) == changed::yes)
          return count_duplicate(key);
      }
    } catch (const rank_failure&) {
      throw;
    } catch (const std::exception& e) {
      keep_stuck(key, value, e.what());
    }
  }
  void keep_stuck(const K& key, const Value& value, const char* why) {
    std::lock_guard lock(mutex_);
    stuck_.push_back({key, value, why});
  }
  void count_duplicate(const K& key) {
    duplicates_.fetch_add(1, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    if (first_duplicate_.empty()) first_duplicate_ = describe(key);
  }

  std::uint32_t pending_slots_;
  std::vector<std::atomic<std::uint32_t>> outstanding_;  ///< slots taken at each member
  std::mutex mutex_;                                     ///< not held while anything else may run
  std::vector<std::deque<std::pair<K, Value>>> kept_;    ///< for each member
  std::deque<declined> declined_;
  bool putting_ = false;  ///< somebody puts what was declined
  std::vector<stuck> stuck_;
  std::string first_duplicate_;
  std::atomic<std::uint64_t> activated_{0}, duplicates_{0}, held_back_{0};
};

}  // namespace far::inline FARSIDE_BACKEND::detail::stores
