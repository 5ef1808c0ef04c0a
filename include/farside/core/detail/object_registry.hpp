// Names by which messages find containers: the same on all members of a team, though addresses
// differ. A team has a name; its members construct containers in the same order, and count them.
#pragma once

#include <farside/backend/concept.hpp>

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>

namespace far::inline FARSIDE_BACKEND::detail {

struct container_state;

/// The rank of the member at position 0, and how many teams had been made there before. No other
/// team of the job has that name, not even one that is no more. The world is {0, 0}.
struct team_name {
  rank_t leader = 0;
  std::uint32_t serial = 0;
  friend auto operator<=>(const team_name&, const team_name&) = default;
};

struct object_name {
  team_name team;
  std::uint64_t number = 0;  ///< among the containers of that team, from 1 on
  friend auto operator<=>(const object_name&, const object_name&) = default;
};

/// The containers of one rank. Any thread of it.
class object_registry {
 public:
  /// The name of the next container of a team.
  object_name next(team_name of) {
    std::lock_guard lock(mutex_);
    return {of, ++constructed_[of]};
  }
  void enlist(const object_name& name, container_state* state) {
    std::lock_guard lock(mutex_);
    living_[name] = state;
  }
  void strike(const object_name& name) {
    std::lock_guard lock(mutex_);
    living_.erase(name);
  }
  /// Null: it is not there yet, or no more.
  container_state* find(const object_name& name) const {
    std::lock_guard lock(mutex_);
    auto found = living_.find(name);
    return found != living_.end() ? found->second : nullptr;
  }
  /// Whether this rank has begun to construct it, ever.
  bool was_constructed(const object_name& name) const {
    std::lock_guard lock(mutex_);
    auto found = constructed_.find(name.team);
    return found != constructed_.end() && name.number <= found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<object_name, container_state*> living_;
  std::map<team_name, std::uint64_t> constructed_;  ///< how many, for each team; never forgotten
};

}  // namespace far::inline FARSIDE_BACKEND::detail
