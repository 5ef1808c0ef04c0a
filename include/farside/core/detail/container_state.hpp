// What the core knows of a container: that it wants to hear of the barriers of its team, and of the
// end of the runtime.
#pragma once

#include <farside/core/context.hpp>

namespace far::inline FARSIDE_BACKEND::detail {

struct container_state {
  virtual ~container_state() = default;

  /// Called on each member at the beginning of each barrier of the container's team: what it puts
  /// is complete when the barrier ends.
  virtual void before_barrier() {}

  /// Called on each member at the end of each barrier of the container's team, before it returns:
  /// no member is inside an operation, and what it did before the barrier is complete.
  virtual void after_barrier() {}

  /// Called when this rank has begun to count its operations, or has stopped; not where several
  /// threads share it, as they would be in the middle of something.
  virtual void counting_changed() {}

  /// Called when the runtime ends before the container: its far memory is no more.
  virtual void runtime_ended() {}

  context* where = nullptr;             ///< null when its runtime has ended
  team_members* barriers_of = nullptr;  ///< its team
};

inline void before_barrier(context& c, team_members& t) {
  for (std::size_t i = 0; i < c.containers.size(); ++i)
    if (c.containers[i]->barriers_of == &t) c.containers[i]->before_barrier();
}

inline void after_barrier(context& c, team_members& t) {
  // By index: what is called may not add containers, but a thread of this rank might.
  for (std::size_t i = 0; i < c.containers.size(); ++i)
    if (c.containers[i]->barriers_of == &t) c.containers[i]->after_barrier();
}

inline void counting_changed(context& c) {
  if (c.threads != thread_level::single) return;
  for (std::size_t i = 0; i < c.containers.size(); ++i) c.containers[i]->counting_changed();
}

inline void end_containers(context& c) {
  c.ended = true;
  for (container_state* container : c.containers) {
    container->runtime_ended();
    container->where = nullptr;
  }
  c.containers.clear();
}

}  // namespace far::inline FARSIDE_BACKEND::detail
