// What all containers share: a collective life, a name, and an end in the right order.
//
// A container is a handle around one state on the heap, so that it can be moved, and so that the
// runtime and the barriers of its team find it. Its state is made and destroyed collectively.
#pragma once

#include <farside/core/collectives.hpp>
#include <farside/core/container_options.hpp>
#include <farside/core/detail/container_state.hpp>
#include <farside/core/detail/together.hpp>
#include <farside/core/engine.hpp>
#include <farside/core/team.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

struct handle_access;  // core/detail/messages/arguments.hpp

/// Waits until the far operations are complete that this rank has begun, also those whose futures
/// nobody has kept: they must not touch memory that is about to be freed.
inline void complete_begun(context& c) {
  if (FARSIDE_MUTANT(containers_end_early)) return;
  std::vector<std::shared_ptr<pending>> begun;
  for (bool all = false; !all;) {
    {
      std::lock_guard lock(c.mutex);
      all = c.polling == 0;  // else another thread has some of them
      if (all) begun = c.in_flight;
    }
    if (!all) c.wait_round();
  }
  auto under_way = [](const std::shared_ptr<pending>& p) { return p->is_under_way(); };
  while (std::any_of(begun.begin(), begun.end(), under_way)) c.wait_round();
}

/// The base of every container's state. Derived states free their far memory in `release()`, which
/// is called between two synchronisations of the team, on all members, and not at all when the
/// job is ending by an error: then nobody would answer.
struct shared_state : container_state {
  /// Collective. `kind` is the type's name.
  shared_state(const char* kind, const container_options& with)
      : members(with.over ? with.over : world()),
        kind_name(kind),
        label(with.name),
        call_name_("the constructor of ", kind) {
    context& c = here();
    unwinding = std::uncaught_exceptions();
    where = &c;
    barriers_of = &members.members();
    if (label.empty()) label = text(kind, " ", c.containers.size() + 1);
    bool known =
        std::strcmp(with.made_at.file_name(), container_options().made_at.file_name()) != 0;
    making_.emplace(c, members.members(), call_name_,
                    known ? with.made_at : std::source_location());
    id = c.objects.next(members.members().name);
  }
  shared_state(const shared_state&) = delete;

  ~shared_state() override {
    if (where == nullptr) return;
    where->objects.strike(id);
    std::lock_guard lock(where->mutex);
    std::erase(where->containers, this);
  }

  virtual void release() {}

  /// Called before the first of those: waits for what this rank has begun.
  virtual void before_end() {}

  /// Collective, when all of it has been constructed: from now on it hears of barriers, and
  /// messages find it. A member that returns may send its name at once, so that all have enlisted
  /// theirs by then.
  void enlist() {
    making_.reset();
    {
      std::lock_guard lock(where->mutex);
      where->containers.push_back(this);
    }
    where->objects.enlist(id, this);
    constructed = true;
    synchronize(*where, members.members());
  }

  /// Destroys a state collectively.
  struct ender {
    bool owns = true;  ///< else there is another handle that does
    void operator()(shared_state* state) const {
      if (!owns) return;
      std::unique_ptr<shared_state> owned(state);
      if (state->where == nullptr) return;                        // its memory has gone
      if (std::uncaught_exceptions() > state->unwinding) return;  // nobody may answer any more
      call_name name("the destructor of ", state->kind_name);
      calls note(*state->where, state->members.members(), name, {});
      state->members.members().phase = job::waiting::collective;
      state->before_end();
      complete_begun(*state->where);
      synchronize(*state->where, state->members.members());  // nobody uses it any more
      state->where->objects.strike(state->id);
      state->release();
      synchronize(*state->where, state->members.members());
    }
  };

  team members;
  const char* kind_name;
  std::string label;
  object_name id;  ///< the same on all members
  int unwinding;
  bool constructed = false;  ///< else its parts give back, when they end, what they have taken

  /// How errors call it.
  std::string full_name() const { return text(kind_name, " '", label, "'"); }

 private:
  call_name call_name_;          ///< of its construction
  std::optional<calls> making_;  ///< until all of it has been constructed
};

/// Says, as long as it lives, that this rank is in a collective of a container.
template <call_name Name>
calls calling(const shared_state& of) {
  return calls(*of.where, of.members.members(), Name, {});
}

/// Owns a state; what containers hold. Dereferencing a handle that was moved from, or whose runtime
/// has ended, throws.
template <class State>
class container_handle {
 public:
  using state_type = State;

  container_handle() = default;
  /// Collective.
  explicit container_handle(State* state) : state_(state) { state->enlist(); }
  /// A second handle, which does not end what it names.
  static container_handle borrowed(State& state) {
    container_handle result;
    result.state_ = {&state, shared_state::ender{false}};
    return result;
  }

  State* operator->() const { return &**this; }
  State& operator*() const {
    State* state = static_cast<State*>(state_.get());
    if (state == nullptr || state->where == nullptr) [[unlikely]]
      raise_gone(state);
    return *state;
  }
  /// Without the look at whether it lives: for what a dead state answers by itself.
  State* unchecked() const { return static_cast<State*>(state_.get()); }

 private:
  [[noreturn, gnu::cold, gnu::noinline]] static void raise_gone(const shared_state* state) {
    if (state == nullptr)
      raise("a container was used that holds nothing: it was moved from, or never constructed.");
    raise(
        state->kind_name, " '", state->label,
        "' was used after its far::runtime had ended. Containers live inside the runtime: declare "
        "them after it, in the same or an inner scope.");
  }

  std::unique_ptr<shared_state, shared_state::ender> state_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
