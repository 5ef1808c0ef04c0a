// Calls as bytes: how a function and its arguments travel, and what runs at the other end.
#pragma once

#include <farside/core/detail/messages/arguments.hpp>
#include <farside/core/detail/messages/messenger.hpp>
#include <farside/core/future.hpp>
#include <farside/core/serialization.hpp>

#include <functional>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND::detail {

template <class F>
inline constexpr bool is_code =
    std::is_pointer_v<F> && std::is_function_v<std::remove_pointer_t<F>>;

/// Whether F is the type of a lambda expression, by what compilers call those: g++ writes
/// "...<lambda(int)>", clang++ "...(lambda at file.cpp:3:4)".
template <class F>
consteval bool is_lambda() {
  std::string_view name = __PRETTY_FUNCTION__;
  name = name.substr(0, name.rfind(']'));
  if (auto more = name.find("; "); more != name.npos && name.find("<lambda(", more) == name.npos)
    name = name.substr(0, more);
  if (auto clang = name.rfind("(lambda at "); clang != name.npos)
    return name.find(')', clang) == name.size() - 1;
  auto at = name.rfind("<lambda(");
  if (at == name.npos) return false;
  int depth = 0;
  for (at += 7; at < name.size(); ++at) {
    depth += name[at] == '(';
    depth -= name[at] == ')';
    if (depth == 0) break;
  }
  return name.substr(at + 1) == ">" || name.substr(at + 1) == "> mutable";
}

template <class F, class... A>
constexpr void require_call() {
  static_assert(!std::is_member_pointer_v<F>,
                "a message cannot call a member function: there is no object on the other rank. "
                "Send a lambda without captures that finds its object there.");
  static_assert(std::is_empty_v<F> || !is_lambda<F>(),
                "a message cannot carry a lambda that captures: references and pointers would mean "
                "nothing on the other rank. Give what it needs as arguments of the call.");
  if constexpr (!is_code<F>) require_serializable<F>();
  [[maybe_unused]] auto require = []<class Argument>(std::type_identity<Argument>) {
    if constexpr (!sent_by_name<Argument>) require_serializable<Argument>();
  };
  (require(std::type_identity<A>()), ...);
  static_assert(std::is_invocable_v<F&, passed_as<A>...>,
                "the function of a message cannot be called with its arguments as they arrive: "
                "copies, of which it may have a value, a const& or a &&, but no &; and containers, "
                "which it has by & or const&.");
}

/// What the caller gets: of a handler that returns a future, what that will hold.
template <class F, class... A>
using call_result =
    typename unwrapped<std::decay_t<std::invoke_result_t<F&, passed_as<A>...>>>::type;

template <class F>
void write_function(messenger& messages, writer& out, const F& f) {
  if constexpr (is_code<F>)
    out << messages.name_of(reinterpret_cast<const void*>(f));
  else if constexpr (!std::is_empty_v<F> || !std::is_default_constructible_v<F>)
    out << f;
}

template <class F>
F read_function(messenger& messages, reader& in) {
  if constexpr (is_code<F>)
    return reinterpret_cast<F>(const_cast<void*>(messages.find(in.read<code_address>())));
  else if constexpr (!std::is_empty_v<F> || !std::is_default_constructible_v<F>)
    return in.read<F>();
  else
    return F();
}

/// Calls with the arguments of a message.
template <class F, class... A>
decltype(auto) call(incoming& m) {
  reader in(m.arguments);
  F f = read_function<F>(m.messages, in);
  std::tuple<A...> arguments{read_argument<A>(in)...};  // in this order: those of a call have none
  return std::apply(
      [&](A&... a) -> decltype(auto) {
        return std::invoke(f, static_cast<passed_as<A>&&>(a)...);  // A&& or, of containers, A&
      },
      arguments);
}

template <class R>
std::vector<std::byte> result_bytes(const R& value) {
  require_serializable<R>();
  return to_bytes(value);
}

/// Answers with the value of a future that is ready, or with why it failed.
template <class R>
void answer_with(messenger& messages, rank_t to, reply_place place, future<R> ready) {
  std::vector<std::byte> bytes;
  answer_kind kind = answer_kind::result;
  try {
    if constexpr (std::is_void_v<R>)
      ready.get();
    else
      bytes = result_bytes(ready.get());
  } catch (const std::exception& e) {
    kind = answer_kind::thrown;
    std::string_view why = e.what();
    auto* begin = reinterpret_cast<const std::byte*>(why.data());
    bytes.assign(begin, begin + why.size());
  }
  messages.answer(to, place, kind, std::move(bytes));
  messages.count_handled();
}

/// The trampoline of far::rpc.
template <class F, class... A>
void run_rpc(incoming& m) {
  using Returned = std::decay_t<std::invoke_result_t<F&, passed_as<A>...>>;
  if constexpr (is_future<Returned>::value) {  // answered when that is ready
    call<F, A...>(m).finally([&messages = m.messages, to = m.from, place = m.reply](auto ready) {
      answer_with(messages, to, place, std::move(ready));
    });
  } else if constexpr (std::is_void_v<Returned>) {
    call<F, A...>(m);
    m.messages.answer(m.from, m.reply, answer_kind::result, {});
    m.messages.count_handled();
  } else {
    m.messages.answer(m.from, m.reply, answer_kind::result,
                      result_bytes<Returned>(call<F, A...>(m)));
    m.messages.count_handled();
  }
}

/// The trampoline of far::rpc_ff and far::visits.
template <class F, class... A>
void run_only(incoming& m) {
  static_cast<void>(call<F, A...>(m));
  m.messages.count_handled();
}

/// What the future of an rpc waits for.
template <class R>
struct rpc_state final : future_state<R>, awaiting {
  rank_t target;
  explicit rpc_state(rank_t to) : target(to) {}

  void take(answer_kind kind, std::span<const std::byte> bytes) override {
    try {
      if (kind != answer_kind::result)
        raise<rpc_error>(why_no_result(target, "an rpc", kind, bytes));
      if constexpr (std::is_void_v<R>)
        this->value.emplace();
      else
        this->value.emplace(from_bytes<R>(bytes));
    } catch (...) {
      this->failure = std::current_exception();
    }
  }
  void make_ready() override { future_state<R>::finish(); }
};

/// A program that names this has messages to serve: see make_message_service. Only templates name
/// it, so that a program which includes them, and uses none, has no messages.
template <class = void>
struct sends_messages {
  static std::unique_ptr<message_service> make(context& c) {
    return std::make_unique<messenger>(c);
  }
  inline static const bool announced = [] {
    make_message_service.store(&make, std::memory_order_release);
    program_sends.store(true, std::memory_order_release);
    return true;
  }();
};

/// void, but known only when F is: std::void_t<F> is void at once for some compilers.
template <class F>
struct void_of : std::type_identity<void> {};
template <class F>
using late_void = typename void_of<F>::type;

/// The messenger of a rank whose containers send messages, though its program may not.
inline messenger& open_messenger(context& c) {
  make_message_service.store(&sends_messages<>::make, std::memory_order_release);
  return messenger::of(c);
}

/// The messenger of this rank.
inline messenger& messenger_here(const char* what, rank_t to) {
  context& c = here();
  if (to >= c.link.nprocs())
    raise(what, " to rank ", to, ": there are only ", c.link.nprocs(), " ranks, 0 to ",
          c.link.nprocs() - 1, ".");
  return messenger::of(c);
}

/// The bytes of a call, after room for a header.
template <class F, class... A>
std::vector<std::byte> call_bytes(messenger& messages, const F& f, const A&... args) {
  writer out;
  out << message_header{};
  write_function<F>(messages, out, f);
  (write_argument(out, args), ...);
  return out.take();
}

/// Sends a call, by `send(to, header, bytes)`, and gives the future of its result.
template <class Send, class F, class... A>
auto begin_call(messenger& messages, rank_t to, Send send, const F& f, const A&... args) {
  using R = call_result<F, A...>;
  auto bytes = call_bytes<F, A...>(messages, f, args...);
  auto state = std::make_shared<rpc_state<R>>(to);
  messages.prepare_call(to);
  message_header as{.code = messages.name_of(&run_rpc<F, A...>), .reply = messages.reserve(state)};
  messages.count_sent();
  send(to, as, std::move(bytes));
  return future<R>(std::move(state));
}

}  // namespace far::inline FARSIDE_BACKEND::detail
