// Who waits for keys that nobody has put yet.
//
//   waiter                     the key's owner, in a handler        who puts the key
//   asks ------------------->  parks the key's bucket, unless the
//                              key is there; notes who waits
//                                                                   wins the bucket, sees that it was
//                                                                   parked
//                              answers all who wait  <------------- sends the value
//   is ready <---------------
//
// A note is made with the bucket parked, and only who puts the key ends that, after which it calls.
// So each note is answered. The value travels along: the key may be erased before anybody looks.
#pragma once

#include <farside/containers/detail/store/traffic.hpp>

#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::stores {

template <class Core>
class waiters {
 public:
  /// A future of the value of a key: see store::when.
  template <class K, class Value>
  future<Value> when(Core& m, const K& key, std::type_identity<Value>) {
    if (!is_in_handler(m.c)) {  // which may not look, as that may wait
      std::optional<versioned<Value>> there;
      m.template find_value<if_blocked::wait>(key, there);
      if (there) return future<Value>::ready(std::move(there->value));
    }
    auto state = std::make_shared<future_state<Value>>();
    ask(m, key, state);
    return future<Value>(std::move(state));
  }

  /// The key was put where somebody had parked: calls its owner.
  template <class K, class Value>
  void wake(Core& m, const K& key, const Value& value) {
    const rank_t owner = m.members.world_rank(m.place_of(key).member);
    if (owner == m.c.link.rank()) return answer(m, key, value);
    m.shared->counts.count_sent();
    try {
      rpc_ff(owner, &waiters::called<K, Value>, named<Core>(m), key, value);
    } catch (const allocation_error&) {  // no room for messages to that rank: tried again later
      m.shared->counts.count_handled();
      std::lock_guard lock(mutex_);
      uncalled_.emplace_back(key, value);
    }
  }
  void wake_uncalled(Core& m) {
    std::vector<std::pair<typename Core::K, typename Core::value_type>> again;
    {
      std::lock_guard lock(mutex_);
      again.swap(uncalled_);
    }
    for (auto& [key, value] : again) wake(m, key, value);
  }

  /// The store ends: those who wait here are told so.
  void end(const std::string& store) {
    std::vector<wanted<typename Core::value_type>> all;
    {
      std::lock_guard lock(mutex_);
      for (auto& [hash, one] : notes_) all.push_back(std::move(one.who));
      notes_.clear();
    }
    for (auto& one : all)
      one->fail(std::make_exception_ptr(usage_error(
          store + " has ended, and nobody had put the key for which this future waits.")));
  }

  /// How many wait at this owner.
  std::size_t noted() {
    std::lock_guard lock(mutex_);
    return notes_.size();
  }
  /// The keys for which somebody waits at this owner.
  std::vector<typename Core::K> keys() {
    std::lock_guard lock(mutex_);
    std::vector<typename Core::K> all;
    for (const auto& [hash, one] : notes_) all.push_back(one.key);
    return all;
  }

  /// Collective: keys have other owners. Where somebody waits at the old one, that waits at the new.
  void move_notes(Core& m) {
    for (const Key& key : keys()) {
      if (m.place_of(key).member == m.members.rank()) continue;
      std::vector<wanted<typename Core::value_type>> mine = take_notes(key);
      if (mine.empty()) continue;
      auto all = m.shared;
      when(m, key, std::type_identity<typename Core::value_type>())
          .finally([mine, all](future<typename Core::value_type> from) {
            try {
              const auto value = from.get();
              for (const auto& one : mine) {
                all->counts.count_sent();
                one->set(value);
              }
            } catch (...) {  // the store has ended
              for (const auto& one : mine)
                if (!one->ready) one->fail(std::current_exception());
            }
          });
    }
  }

  /// This rank parks the bucket of a key, unless the key is there: then its value.
  template <if_blocked B, class K, class Value>
  static changed park(Core& m, const K& key, std::optional<Value>& there) {
    while (true) {
      typename Core::outcome done = m.template change_index<B>(key, park_slot<typename Core::V>());
      if (done.what != result::done) return changed::blocked;
      if (done.changed) {
        account_for_parked(m, key, done, B == if_blocked::give_up);
        return changed::yes;
      }
      if (done.value->is_parked()) return changed::yes;
      std::optional<versioned<Value>> found;
      const changed what = m.template find_value<B>(key, found);
      if (found) {
        there.emplace(std::move(found->value));
        return changed::no;
      }
      // It is being erased, and its bucket says so in a moment.
      if (B == if_blocked::give_up || what == changed::blocked) return changed::blocked;
      m.c.wait_round();
    }
  }

 private:
  using Key = typename Core::K;
  template <class Value>
  using wanted = std::shared_ptr<future_state<std::optional<Value>>>;
  struct note_of {
    Key key;
    wanted<typename Core::value_type> who;
  };

  /// A parked bucket is a bucket taken, and no entry: as if it had been erased.
  static void account_for_parked(Core& m, const Key& key, typename Core::outcome done, bool taken) {
    const rank_t member = m.place_of(key).member;
    if (done.count != map::counted::at_home && done.count != map::counted::displaced) return;
    done.value.reset();
    done.count = map::counted::at_home;  // this does not wait, as growing would
    if (taken) m.account_for(member, done);
    done.count = map::counted::erased;
    m.account_for(member, done);
  }

  template <class K, class Value>
  void ask(Core& m, const K& key, std::shared_ptr<future_state<Value>> state) {
    m.shared->counts.count_sent();
    future<std::optional<Value>> answer;
    try {
      answer = rpc(m.members.world_rank(m.place_of(key).member), &waiters::asked<K, Value>,
                   named<Core>(m), key);
    } catch (...) {  // nothing was sent
      m.shared->counts.count_handled();
      throw;
    }
    std::move(answer).finally(
        [&m, this, key, state, all = m.shared](future<std::optional<Value>> from) {
          if (all->of.load() == nullptr) return hand_on_end(std::move(from), *state);
          ++all->continuing;
          try {
            if (std::optional<Value> value = from.get()) {
              state->set(*std::move(value));
            } else {  // the owner would have had to wait, and this rank may
              std::optional<Value> there;
              if (park<if_blocked::wait>(m, key, there) == changed::no)
                state->set(*std::move(there));
              else
                ask(m, key, state);
            }
          } catch (...) {
            if (!state->ready) state->fail(std::current_exception());
          }
          --all->continuing;
          all->counts.count_handled();
        });
  }

  /// The store has ended here, too: there is nothing but what the answer says.
  template <class Value>
  static void hand_on_end(future<std::optional<Value>> from, future_state<Value>& to) {
    try {
      if (std::optional<Value> value = from.get()) return to.set(*std::move(value));
      raise("a store ended while a future of when() waited for one of its keys.");
    } catch (...) {
      to.fail(std::current_exception());
    }
  }

  /// At the owner: the value, nothing if it would have to wait, or an answer later.
  template <class K, class Value>
  static future<std::optional<Value>> asked(named<Core>& to, const K& key) {
    Core& m = *to;
    waiters& mine = m.waiting;
    auto state = std::make_shared<future_state<std::optional<Value>>>();
    const word hash = Core::hash_of(key);
    auto note = [&] {
      std::lock_guard lock(mine.mutex_);
      mine.notes_.emplace(hash, note_of{key, state});
    };
    // First: whoever finds the bucket parked may call before this has returned.
    if (!FARSIDE_MUTANT(store_noted_too_late)) note();
    std::optional<Value> there;
    changed what = changed::blocked;
    try {
      what = park<if_blocked::give_up>(m, key, there);
    } catch (const rank_failure&) {
      throw;
    } catch (const std::exception&) {
    }
    if (what == changed::yes) {
      if (FARSIDE_MUTANT(store_noted_too_late)) note();
      m.shared->counts.count_handled();
      return future<std::optional<Value>>(state);
    }
    {
      std::lock_guard lock(mine.mutex_);
      auto [at, end] = mine.notes_.equal_range(hash);
      while (at != end && at->second.who != state) ++at;
      if (at == end) {  // somebody was faster, and has called already
        m.shared->counts.count_handled();
        return future<std::optional<Value>>(state);
      }
      mine.notes_.erase(at);
    }
    // The answer counts as handled by whoever asked, for the question.
    return future<std::optional<Value>>::ready(std::move(there));
  }

  template <class K, class Value>
  static void called(named<Core>& to, const K& key, const Value& value) {
    (*to).waiting.answer(*to, key, value);
    (*to).shared->counts.count_handled();
  }

  template <class K, class Value>
  void answer(Core& m, const K& key, const Value& value) {
    std::vector<wanted<Value>> all = take_notes(key);
    for (auto& one : all) {
      m.shared->counts.count_sent();  // until its continuations have run
      one->set(std::optional<Value>(value));
    }
  }

  std::vector<wanted<typename Core::value_type>> take_notes(const Key& key) {
    std::vector<wanted<typename Core::value_type>> all;
    std::lock_guard lock(mutex_);
    auto [at, end] = notes_.equal_range(Core::hash_of(key));
    while (at != end) {
      if (at->second.key == key) {
        all.push_back(at->second.who);
        at = notes_.erase(at);
      } else {
        ++at;
      }
    }
    return all;
  }

  std::mutex mutex_;  ///< not held while anything else may run
  std::unordered_multimap<word, note_of> notes_;
  std::vector<std::pair<Key, typename Core::value_type>> uncalled_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::stores
