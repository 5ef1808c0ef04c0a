// How the operations of one container travel: which kinds of them go to their owners as messages,
// and how a message finds the container there.
//
//   caller                                          owner
//   asks(kind)?
//     --- message(code) << what it needs --------->  run_operation: code(state, in, answer),
//                                                    which may not wait
//     <-- the answer, as bytes --------------------  done; or empty, if it would have had to wait
//   empty: the same operation one-sided
//
// A container has a number that is the same on all members: taken by the first of them, and handed
// out with a broadcast. Nobody sends before all have written down which object has that number.
#pragma once

#include <farside/base/environment.hpp>
#include <farside/containers/detail/dispatch/measure.hpp>
#include <farside/core/concurrency.hpp>
#include <farside/core/detail/container.hpp>
#include <farside/core/detail/messages/may_not_wait.hpp>

#include <atomic>
#include <initializer_list>
#include <memory>
#include <optional>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND::detail {

/// Whether a function of an operation may run at the owner instead of the caller: it has nothing in
/// it, so that it is the same everywhere.
template <class F>
inline constexpr bool is_stateless =
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

/// What a message asks of a container: reads what it needs, does it to the container's own part
/// here, and writes the answer. It may not wait. Where it would have to, it throws would_wait, and
/// what it has written by then is the answer.
using operation_code = void (*)(void* state, reader& in, writer& answer);

/// The trampoline of operations, one for all containers. An answer is empty if the container is no
/// more, or if the operation threw: the caller will see for itself what was thrown, when it does
/// the same one-sided.
inline void run_operation(incoming& m) {
  reader in(m.arguments);
  void* state = m.messages.containers.find(in.read<std::uint64_t>());
  const void* code = m.messages.find(in.read<code_address>());
  writer answer;
  if (state != nullptr) {
    messenger::no_waiting inside(m.messages);
    try {
      reinterpret_cast<operation_code>(const_cast<void*>(code))(state, in, answer);
    } catch (const rank_failure&) {
      throw;
    } catch (const would_wait&) {
    } catch (const std::exception&) {
    }
  }
  m.messages.answer(m.from, m.reply, answer_kind::result, answer.take());
  m.messages.count_handled();
}

class engine_choice {
 public:
  using bytes = std::vector<std::byte>;

  struct kind {
    container_operation what;
    operation_cost cost;
  };

  engine_choice() = default;
  engine_choice(const engine_choice&) = delete;
  ~engine_choice() {
    if (messages_ != nullptr && of_->where != nullptr) messages_->containers.remove(number_);
  }

  /// Collective over the members of `of`, when all else of it has been made. engine::rma: nothing;
  /// others: a broadcast and a synchronisation; automatic: 2 all_reduces more, and the first time
  /// measurements of some hundred operations.
  template <class State>
  void open(State& of, const container_options& with, std::initializer_list<kind> kinds) {
    engine wanted = wanted_engine(with.engine);
    if (wanted == engine::rma) return;
    context& c = *of.where;
    messenger& messages = open_messenger(c);
    if (wanted == engine::automatic) {
      costs_ = agreed_costs(messages, of.members);
      auto computes = c.attends == attention::poll ? with.computes : std::chrono::nanoseconds(0);
      for (const kind& k : kinds)
        if (predict_rpc(k.cost, costs_, computes) < predict_rma(k.cost, costs_))
          asked_ = asked_ | static_cast<concurrency>(k.what);
    } else {
      for (const kind& k : kinds) asked_ = asked_ | static_cast<concurrency>(k.what);
    }
    if (asked_ == concurrency::nothing) return;
    of_ = &of;
    messages_ = &messages;
    number_ = broadcast(messages.containers.new_number(), 0, of.members);
    messages.containers.add(number_, static_cast<void*>(&of));
    synchronize(c, of.members.members());
  }

  bool any() const { return asked_ != concurrency::nothing; }
  engine of(container_operation what) const {
    return includes(asked_, what) ? engine::rpc : engine::rma;
  }
  /// Whether operations of this kind on what another member holds are sent to it. Not from within
  /// handlers, which may not wait for an answer.
  bool asks(container_operation what) const {
    if (!includes(asked_, what)) [[likely]]
      return false;
    return asks_now();
  }

  /// The beginning of a message to the same container at another member: what `code` reads comes
  /// next.
  writer message(operation_code code) const {
    writer out;
    out << message_header{} << number_ << messages_->name_of(reinterpret_cast<const void*>(code));
    return out;
  }

  /// See messenger::prepare_long_answer: of operations whose answer is of up to `most` bytes.
  void prepare_answer(std::uint64_t most) const {
    if (most > reply_chunk::body_bytes && !FARSIDE_MUTANT(engine_answer_not_prepared))
      messages_->prepare_long_answer();
  }

  /// Sends it, with `operations` in it. Its answer is empty where there is no room for messages,
  /// too.
  future<bytes> send(rank_t member, std::size_t operations, writer message) {
    return begin(member, operations, std::move(message), &messenger::send);
  }
  /// Sends it, and waits for its answer. An empty one is counted as declined.
  bytes ask(rank_t member, std::size_t operations, writer message) {
    owner_wait_marker note(*of_->where, of_->label.c_str());
    return counted(operations, send(member, operations, std::move(message)).get());
  }
  /// Sends it together with other messages to that member: see messenger::send_with_others. The
  /// container does not end before `then(answer)` has returned, whose result is in the future. An
  /// empty answer is counted as declined.
  template <class Then>
  auto send_later(rank_t member, writer message, Then then) {
    return begin(member, 1, std::move(message), &messenger::send_with_others)
        .then([this, then = std::move(then), until_done = under_way()](bytes answer) mutable {
          return then(counted(1, std::move(answer)));
        });
  }

  /// The container does not end as long as a copy of it lives.
  std::shared_ptr<void> under_way() const {
    struct leave {
      ~leave() { left->fetch_sub(1, std::memory_order_release); }
      std::shared_ptr<std::atomic<std::size_t>> left;
    };
    under_way_->fetch_add(1, std::memory_order_relaxed);
    return std::shared_ptr<leave>(new leave{under_way_});
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
  struct reply final : future_state<bytes>, awaiting {
    explicit reply(rank_t to) : target(to) {}
    void take(answer_kind kind, std::span<const std::byte> from) override {
      if (kind != answer_kind::result)
        this->failure =
            std::make_exception_ptr(rpc_error(why_no_result(target, "an operation", kind, from)));
      else
        this->value.emplace(from.begin(), from.end());
    }
    void make_ready() override { future_state<bytes>::finish(); }
    rank_t target;
  };

  bytes counted(std::size_t operations, bytes answer) {
    if (answer.empty()) count_declined(operations);
    return answer;
  }

  /// A member that polls what it holds itself asks nobody and waits for nobody: it serves here, now
  /// and then, as others may wait for just that.
  [[gnu::noinline, gnu::cold]] bool asks_now() const {
    if (messages_->inside_handler()) return false;
    constexpr unsigned seldom = 32;
    bool now = calls_.fetch_add(1, std::memory_order_relaxed) % seldom == seldom - 1;
    if (now && !FARSIDE_MUTANT(engine_own_part_unserved)) messages_->serve();
    return true;
  }

  using sending = void (messenger::*)(rank_t, const message_header&, bytes);
  [[gnu::noinline, gnu::cold]] future<bytes> begin(rank_t member, std::size_t operations,
                                                   writer message, sending send) {
    rank_t to = of_->members.world_rank(member);
    auto state = std::make_shared<reply>(to);
    message_header as{};
    try {  // all that needs room in a segment comes before anything is sent
      messages_->prepare_call(to);
      as = {.code = messages_->name_of(&run_operation), .reply = messages_->reserve(state)};
    } catch (const allocation_error&) {
      return future<bytes>::ready(bytes());
    }
    use_.messages.fetch_add(1, std::memory_order_relaxed);
    use_.operations.fetch_add(operations, std::memory_order_relaxed);
    messages_->count_sent();
    (messages_->*send)(to, as, message.take());
    return future<bytes>(std::move(state));
  }

  shared_state* of_ = nullptr;
  messenger* messages_ = nullptr;
  concurrency asked_ = concurrency::nothing;  ///< the kinds of operations that are sent
  std::uint64_t number_ = 0;
  engine_costs costs_{};
  struct {
    std::atomic<std::uint64_t> messages{0}, operations{0}, declined{0};
  } use_;
  mutable std::atomic<unsigned> calls_{0};
  std::shared_ptr<std::atomic<std::size_t>> under_way_ =
      std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace far::inline FARSIDE_BACKEND::detail
