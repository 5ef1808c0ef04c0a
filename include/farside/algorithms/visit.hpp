// far::visits: many small messages, gathered by target and sent as few large ones.
//
//   far::visits visits;                              // or visits({.route = far::route::node})
//   for (auto& word : words) visits.visit(owner(word), count, word);
//   far::quiesce();                                  // all of them have been handled
//
// What is visited is a function on a rank, as with far::rpc_ff: it may visit and send in turn.
// Typed values that go to one handler are cheaper by far::exchange.
//
// Routes. directly: a batch for each target. by node: ranks of one node are visited directly; a
// visit to another node goes with all others to that node, to the rank there that has the same
// place in its node as this one has here, and from there to its target. With n nodes of c ranks a
// rank then has c + n batches instead of c * n, so that they fill sooner and are larger on the
// wire, for a second hop within the node (as YGM does).
//
// Order: visits of one object to one rank are handled in the order in which they were made, on both
// routes. Nothing orders them with other messages.
#pragma once

#include <farside/core/rpc.hpp>

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

enum class route { direct, node };

struct visit_options {
  far::route route = far::route::direct;
  std::size_t batch_bytes = 16384;  ///< a batch is sent when it has reached this
  rank_t node_ranks =
      0;  ///< ranks that follow each other and count as a node; 0: those of one host
};

namespace detail {

/// How the ranks are spread over nodes.
struct node_map {
  std::vector<std::vector<rank_t>> nodes;
  std::vector<std::uint32_t> node_of, place_of;  ///< of each rank

  /// Collective unless `together` is given.
  explicit node_map(rank_t together) {
    rank_t n = nprocs();
    std::vector<std::uint64_t> hosts(n);
    if (together != 0) {
      for (rank_t r = 0; r < n; ++r) hosts[r] = r / together;
    } else {
      char name[256] = {};
      gethostname(name, sizeof name - 1);
      hosts = all_gather(hash_bytes(name, std::char_traits<char>::length(name)));
    }
    node_of.resize(n);
    place_of.resize(n);
    std::vector<std::uint64_t> seen;
    for (rank_t r = 0; r < n; ++r) {
      std::size_t node = 0;
      while (node < seen.size() && seen[node] != hosts[r]) ++node;
      if (node == seen.size()) {
        seen.push_back(hosts[r]);
        nodes.emplace_back();
      }
      node_of[r] = static_cast<std::uint32_t>(node);
      place_of[r] = static_cast<std::uint32_t>(nodes[node].size());
      nodes[node].push_back(r);
    }
  }

  /// Where a visit of `me` to `to` goes first. Always the same: so a pair's visits keep their
  /// order.
  rank_t next_hop(rank_t me, rank_t to) const {
    if (node_of[me] == node_of[to]) return to;
    const auto& there = nodes[node_of[to]];
    return there[place_of[me] % there.size()];
  }
};

}  // namespace detail

/// Any thread of its rank may use it, one at a time where the runtime was made for one.
class visits : detail::gathering {
 public:
  /// Not collective, unless it is routed by node and finds the nodes itself (1 all_gather).
  template <class Late = void>  // programs that make none compile no messages
  explicit visits(visit_options with = {}) : with_(with), batches_(nprocs()) {
    static_cast<void>(&detail::sends_messages<Late>::announced);
    if (with.route == route::node) nodes_ = std::make_unique<detail::node_map>(with.node_ranks);
    messages_ = &detail::messenger::of(detail::here());
    messages_->enlist(this);
  }
  visits(const visits&) = delete;
  /// One-sided. Ships what is left, unless the runtime has ended or an exception is on its way.
  /// Costs what ship() does.
  ~visits() override {
    detail::context* now =
        detail::current != nullptr ? detail::current : detail::process_context.load();
    if (now == nullptr || now->ended) return;
    if (std::uncaught_exceptions() == unwinding_) ship();
    messages_->forget(this);
  }

  /// Calls f(args...) on rank `to` some time later, at the latest by quiesce() if ship() was not
  /// called before. One-sided; arguments have been copied on return. Nothing, or what an rpc_ff
  /// costs if a batch is full. In a handler it never waits.
  template <class F, class... Args>
  void visit(rank_t to, F&& f, Args&&... args) {
    using Function = std::decay_t<F>;
    detail::require_call<Function, std::decay_t<Args>...>();
    detail::context& c = detail::here();
    if (to >= batches_.size())
      detail::raise("a visit to rank ", to, ": there are only ", batches_.size(), " ranks, 0 to ",
                    batches_.size() - 1, ".");
    writer out;
    detail::write_function<Function>(*messages_, out, f);
    detail::require_members("a visit", to, args...);
    (detail::write_argument<std::decay_t<Args>>(out, args), ...);
    auto bytes = out.take();
    auto code = messages_->name_of(&detail::run_only<Function, std::decay_t<Args>...>);
    rank_t hop = nodes_ ? nodes_->next_hop(c.link.rank(), to) : to;
    messages_->prepare(hop);
    messages_->count_sent();
    std::vector<std::byte> full;
    {
      std::lock_guard lock(messages_->lock());
      batches_[hop].add(code, to, c.link.rank(), bytes);
      if (batches_[hop].size() < with_.batch_bytes) return;
      full = batches_[hop].take();
    }
    messages_->send_batch(hop, std::move(full));
  }

  /// Sends what has been gathered. One-sided; costs an rpc_ff for each rank that gets something, and
  /// waits for room as that does.
  void ship() override {
    for (rank_t hop = 0; hop < batches_.size(); ++hop) {
      std::vector<std::byte> some;
      {
        std::lock_guard lock(messages_->lock());
        if (batches_[hop].empty()) continue;
        some = batches_[hop].take();
      }
      messages_->send_batch(hop, std::move(some));
    }
  }

 private:
  visit_options with_;
  std::vector<detail::batch> batches_;  ///< by next hop
  std::unique_ptr<detail::node_map> nodes_;
  detail::messenger* messages_ = nullptr;
  int unwinding_ = std::uncaught_exceptions();
};

}  // namespace far::inline FARSIDE_BACKEND
