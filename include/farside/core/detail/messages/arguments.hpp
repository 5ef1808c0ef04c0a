// Arguments of messages: values travel as bytes, containers by name.
//
// A container that is given to far::rpc arrives as the target's own handle of the same container.
// It was constructed there before the sender's constructor returned (shared_state::enlist), so that
// a message which does not find it comes late, or from a program whose members construct containers
// in different orders.
#pragma once

#include <farside/core/detail/container.hpp>
#include <farside/core/serialization.hpp>

#include <algorithm>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail {

/// What containers, which name this a friend, let messages see: the handle `state_`, a constructor
/// of another handle of the same state.
struct handle_access {
  template <class C>
  static auto handle(const C& c) -> decltype((c.state_)) {
    return c.state_;
  }
  template <class C, class Handle>
  static C make(Handle of) {
    return C(std::move(of));
  }
};

template <class T>
inline constexpr bool is_container_handle = false;
template <class State>
inline constexpr bool is_container_handle<container_handle<State>> = true;

/// A container, or another object that the members of a team have constructed together.
template <class C>
concept sent_by_name = requires(const C& c) {
  requires is_container_handle<std::remove_cvref_t<decltype(handle_access::handle(c))>>;
};

/// How the function of a message gets an argument: a value of its own, or its rank's own container.
template <class A>
struct passed_type : std::type_identity<A> {};
template <sent_by_name A>
struct passed_type<A> : std::type_identity<A&> {};
template <class A>
using passed_as = typename passed_type<A>::type;

/// "far::hash_map<int, int>" and the like, as compilers write it, without the name of the back end.
template <class C>
std::string type_name() {
  std::string name = __PRETTY_FUNCTION__;
  name.erase(0, std::min(name.find("C = ") + 4, name.size()));
  name.erase(std::min(name.find_first_of(";]"), name.size()));
  constexpr std::string_view backend = FARSIDE_TEXT(FARSIDE_BACKEND) "::";
  for (std::size_t at; (at = name.find(backend)) != name.npos;) name.erase(at, backend.size());
  return name;
}

/// Before anything is sent: is the target a member of the team of each container among these?
template <class... A>
void require_members(const char* what, rank_t to, const A&... args) {
  [[maybe_unused]] auto check = [&]<class C>(const C& c) {
    if constexpr (sent_by_name<C>) {
      const shared_state& s = *handle_access::handle(c);
      const auto& ranks = s.members.members().ranks;
      if (ranks.size() == s.where->link.nprocs()) return;
      if (std::find(ranks.begin(), ranks.end(), to) == ranks.end())
        raise(what, " to rank ", to, " with ", s.kind_name, " '", s.label,
              "', but that rank is no member of its team and has no part of it. Send to members "
              "only: their ranks are team::world_rank(0) to world_rank(",
              ranks.size() - 1, ").");
    }
  };
  (check(args), ...);
}

template <class A>
void write_argument(writer& out, const A& value) {
  if constexpr (sent_by_name<A>)
    out << static_cast<const shared_state&>(*handle_access::handle(value)).id;
  else
    out << value;
}

/// This rank's state of that name.
template <class C, class State>
State& find_object(const object_name& name) {
  context& c = here();
  container_state* found = c.objects.find(name);
  if (found == nullptr && !c.objects.was_constructed(name))
    raise(
        "rank ", c.link.rank(), ": a message names a ", type_name<C>(),
        " that this rank has not constructed yet (number ", name.number,
        " of its team). All members of a team construct its containers, in the same order: is one "
        "constructed inside an 'if' that only some of them enter?");
  if (found == nullptr)
    raise("rank ", c.link.rank(), ": a message names a ", type_name<C>(),
          " that this rank has destroyed already (number ", name.number,
          " of its team). Call far::quiesce(), or wait for the futures of all rpcs that name it, "
          "before it goes out of scope.");
  auto* state = dynamic_cast<State*>(found);
  if (state == nullptr)
    raise("rank ", c.link.rank(), ": a message names a ", type_name<C>(), ", but number ",
          name.number, " of that team is ", static_cast<shared_state*>(found)->kind_name, " '",
          static_cast<shared_state*>(found)->label,
          "' here. All members of a team construct its containers in the same order.");
  return *state;
}

template <class A>
A read_argument(reader& in) {
  if constexpr (sent_by_name<A>) {
    using handle = std::remove_cvref_t<decltype(handle_access::handle(std::declval<const A&>()))>;
    auto& state = find_object<A, typename handle::state_type>(in.read<object_name>());
    return handle_access::make<A>(handle::borrowed(state));
  } else {
    return in.read<A>();
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail
