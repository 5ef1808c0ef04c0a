// How the operations of one container travel: which kinds of them go to their owners as messages,
// and how a message finds the container there.
//
//   caller                                          owner
//   asks(kind)? --ask(member, f, args...)-------->  f(number, args...), a handler:
//                                                   at_owner<State>(number, work): work(state)
//   future of what f returned <-------------------  done, or declined: it would have had to wait
//   declined: the same operation one-sided
//
// A container has a number that is the same on all members: taken by the first of them, and handed
// out with a broadcast. Nobody sends before all have written down which object has that number.
#pragma once

#include <farside/core/environment.hpp>
#include <farside/core/promise.hpp>
#include <farside/detail/container.hpp>
#include <farside/detail/engines/hurry.hpp>
#include <farside/detail/engines/measure.hpp>

#include <atomic>
#include <initializer_list>
#include <memory>
#include <optional>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND::detail {

/// Whether a function of an operation may run at the owner instead of the caller: it has nothing in
/// it, so that it is the same everywhere.
template <class F>
inline constexpr bool travels =
    std::is_class_v<F> && std::is_empty_v<F> && std::is_trivially_copyable_v<F>;

/// What the program wants, unless the environment says otherwise.
inline engine wanted_engine(engine asked) {
  auto name = setting("FARSIDE_ENGINE");
  if (!name) return asked;
  for (engine known : {engine::rma, engine::rpc, engine::automatic})
    if (*name == to_text(known)) return known;
  raise("environment variable FARSIDE_ENGINE='", *name,
        "' names no way to reach a container. Set it to rma, rpc or automatic.");
}

class engine_choice {
 public:
  struct kind {
    promise what;
    operation_cost cost;
  };

  engine_choice() = default;
  engine_choice(const engine_choice&) = delete;
  ~engine_choice() {
    if (office_ != nullptr && of_->where != nullptr) office_->strike(number_);
  }

  /// Collective over the members of `of`, when all else of it has been made. engine::rma: nothing;
  /// others: a broadcast and a synchronisation; automatic: 2 all_reduces more, and the first time
  /// measurements of some hundred operations.
  template <class State>
  void open(State& of, const container_options& with, std::initializer_list<kind> kinds) {
    engine wanted = wanted_engine(with.engine);
    if (wanted == engine::rma) return;
    context& c = *of.where;
    post_office& office = open_office(c);
    if (wanted == engine::automatic) {
      costs_ = agreed_costs(office, of.members);
      auto computes = c.attends == attention::poll ? with.computes : std::chrono::nanoseconds(0);
      for (const kind& k : kinds)
        if (predict_rpc(k.cost, costs_, computes) < predict_rma(k.cost, costs_))
          asked_ = asked_ | k.what;
    } else {
      for (const kind& k : kinds) asked_ = asked_ | k.what;
    }
    if (asked_ == promise::nothing) return;
    of_ = &of;
    office_ = &office;
    number_ = broadcast(office.new_number(), 0, of.members);
    office.enroll(number_, static_cast<void*>(&of));
    synchronize(c, of.members.members());
  }

  bool any() const { return asked_ != promise::nothing; }
  engine of(promise what) const { return includes(asked_, what) ? engine::rpc : engine::rma; }
  /// Whether operations of this kind on what another member holds are sent to it. Not from within
  /// handlers, which may not wait for an answer.
  ///
  /// A member that polls what it holds itself asks nobody and waits for nobody: it serves here, now
  /// and then, as others may wait for just that.
  bool asks(promise what) const {
    if ((asked_ & what) == promise::nothing || office_->inside_handler()) return false;
    constexpr unsigned seldom = 32;
    if (calls_.fetch_add(1, std::memory_order_relaxed) % seldom == seldom - 1) office_->serve();
    return true;
  }

  /// Calls f(number, args...) at a member. `operations` are in it.
  template <class F, class... A>
  auto ask(rank_t member, std::size_t operations, const F& f, const A&... args) {
    return begin(member, operations, f, args...,
                 [this](rank_t to, const message_header& as, std::vector<std::byte> bytes) {
                   office_->send(to, as, std::move(bytes));
                 });
  }
  /// The same, together with other messages to that member: see post_office::send_with_others. The
  /// container does not end before `then(result)` has returned, whose result is in the future.
  template <class Then, class F, class... A>
  auto ask_later(rank_t member, Then then, const F& f, const A&... args) {
    auto send = [this](rank_t to, const message_header& as, std::vector<std::byte> bytes) {
      office_->send_with_others(to, as, std::move(bytes));
    };
    under_way_->fetch_add(1, std::memory_order_relaxed);
    struct leave {
      ~leave() { left->fetch_sub(1, std::memory_order_release); }
      std::shared_ptr<std::atomic<std::size_t>> left;
    };
    auto until_done = std::shared_ptr<leave>(new leave{under_way_});
    return begin(member, 1, f, args..., send)
        .then([then = std::move(then), until_done](auto result) mutable {
          return then(std::move(result));
        });
  }

  /// Until nothing that this rank has begun is under way.
  void settle(context& c) {
    if (FARSIDE_MUTANT(engine_ends_early)) return;
    while (under_way_->load(std::memory_order_acquire) != 0) c.wait_round();
  }

  void count_declined(std::size_t n) { use_.declined.fetch_add(n, std::memory_order_relaxed); }
  engine_use use() const {
    return {use_.messages.load(std::memory_order_relaxed),
            use_.operations.load(std::memory_order_relaxed),
            use_.declined.load(std::memory_order_relaxed), costs_};
  }

 private:
  template <class F, class... More>
  auto begin(rank_t member, std::size_t operations, const F& f, const More&... more) {
    use_.messages.fetch_add(1, std::memory_order_relaxed);
    use_.operations.fetch_add(operations, std::memory_order_relaxed);
    rank_t to = of_->members.world_rank(member);
    auto parts = std::tie(more...);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto& send = std::get<sizeof...(I)>(parts);
      return begin_call<std::decay_t<decltype(send)>, F, std::uint64_t,
                        std::decay_t<decltype(std::get<I>(parts))>...>(
          *office_, to, send, f, number_, std::get<I>(parts)...);
    }(std::make_index_sequence<sizeof...(More) - 1>());
  }

  shared_state* of_ = nullptr;
  post_office* office_ = nullptr;
  promise asked_ = promise::nothing;
  std::uint64_t number_ = 0;
  engine_costs costs_{};
  struct {
    std::atomic<std::uint64_t> messages{0}, operations{0}, declined{0};
  } use_;
  mutable std::atomic<unsigned> calls_{0};
  std::shared_ptr<std::atomic<std::size_t>> under_way_ =
      std::make_shared<std::atomic<std::size_t>>(0);
};

/// In a handler: `work(state)` on the container of a number, in a hurry. Nothing if it had to give
/// up, or threw: the caller will see for itself what was thrown, when it does the same one-sided.
template <class State, class Work>
auto at_owner(std::uint64_t number, Work work)
    -> std::optional<std::decay_t<std::invoke_result_t<Work&, State&>>> {
  post_office& office = post_office::of(here());
  auto* state = static_cast<State*>(office.served(number));
  if (state == nullptr) return std::nullopt;
  post_office::hurry give_up(office);
  try {
    return work(*state);
  } catch (const rank_failure&) {
    throw;
  } catch (const not_at_once&) {
  } catch (const std::exception&) {
  }
  return std::nullopt;
}

}  // namespace far::inline FARSIDE_BACKEND::detail
