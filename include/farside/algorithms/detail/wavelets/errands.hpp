// How wavelet trees are worked on: pieces of work that travel to the owners of boxes.
//
//   rank's own pieces:  a stack, so that it follows a subtree to its end before the next one begins
//   others' pieces:     a message puts them into the owner's inbox; the owner takes them when its stack is empty
//
//   round:   work until stack, inbox and seeds are empty; far::quiesce(): all messages are in inboxes; and once more if
//            any rank has found some
//
// There is no barrier for a level. A round ends when no rank has anything to do, and what makes
// another one is a chain of boxes whose owner changes: one or two where subtrees stay together.
// Work that begins at the root has a round for each of the first levels, though: the rank of the
// first subtree would follow it to its end before others had heard of theirs, as a rank that has
// nothing to do waits for the end of the round.
//
// Handlers only put a piece into the inbox, under a lock, so that they may run at any time, on any
// thread. What is thrown in a piece stops the work of this rank alone: it goes on taking part in
// rounds, and all throw at their end.
#pragma once

#include <farside/algorithms/wavelets/tree_node.hpp>
#include <farside/base/mutants.hpp>
#include <farside/core/detail/together.hpp>
#include <farside/core/distributed.hpp>
#include <farside/core/rpc.hpp>

#include <chrono>
#include <exception>
#include <mutex>
#include <unordered_map>

namespace far::inline FARSIDE_BACKEND::wavelets::detail {

/// A piece of work for the owner of a box.
template <std::size_t D>
struct errand {
  tree_box<D> to;
  std::uint32_t word = 0;  // what it means is the operation's
  std::vector<double> values{};
};

/// Which subtrees have cost how much time on this rank.
template <std::size_t D>
class cost_meter {
 public:
  void enter(const tree_box<D>& box) {
    const std::uint32_t level = box_placement<D>::usual_level;
    if (box.level < level) return;
    const std::uint64_t now = box.ancestor(level).number();
    if (now == current_) return;
    stop();
    current_ = now;
    since_ = clock::now();
  }
  void stop() {
    if (current_ == none) return;
    costs_[current_] += std::chrono::duration<double>(clock::now() - since_).count();
    current_ = none;
  }
  /// By number() of the boxes of usual_level.
  const std::unordered_map<std::uint64_t, double>& costs() const { return costs_; }
  void clear() { costs_.clear(); }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  std::uint64_t current_ = none;
  clock::time_point since_{};
  std::unordered_map<std::uint64_t, double> costs_;
};

/// Where the work of an operation begins: at boxes of all ranks, or at the root alone.
enum class begins { anywhere, at_the_root };

template <std::size_t D>
class errands {
  struct inbox {
    std::mutex lock;
    std::vector<errand<D>> arrived;
  };

 public:
  /// Collective. `place` outlives it.
  errands(const box_placement<D>& place, std::string name)
      : place_(&place), inbox_(std::make_unique<inbox>(), {.name = std::move(name)}) {}

  bool is_mine(const tree_box<D>& box) const { return owner(box) == far::rank(); }
  rank_t owner(const tree_box<D>& box) const { return (*place_)(box, far::nprocs()); }

  /// Hands a piece to the owner of its box, this rank or another one.
  void send(errand<D>&& work) {
    const rank_t to = owner(work.to);
    if (to == far::rank())
      stack_.push_back(std::move(work));
    else
      far::rpc_ff(
          to,
          [](far::distributed<std::unique_ptr<inbox>>& there, errand<D> one) {
            const std::lock_guard guard((*there)->lock);
            (*there)->arrived.push_back(std::move(one));
          },
          inbox_, work);
  }

  /// Collective: calls do_one(errand&) for all pieces of this rank, and seed() whenever it has
  /// none: which sends some, or returns false if there will be no more.
  template <class One, class Seed>
  void run(const std::string& what, cost_meter<D>& meter, begins where, One do_one, Seed seed) {
    std::exception_ptr thrown;
    bool seeds = true;
    std::uint64_t waiting = 1;
    std::vector<errand<D>> deeper;  // than this round goes
    for (std::uint32_t round = 0; far::all_reduce(waiting) != 0; ++round) {
      const bool by_level = where == begins::at_the_root &&
                            round <= box_placement<D>::usual_level &&
                            !FARSIDE_MUTANT(tree_levels_not_kept_apart);
      for (;;) {
        if (stack_.empty()) take_arrived();
        if (thrown) stack_.clear();
        try {
          if (!stack_.empty()) {
            errand<D> one = std::move(stack_.back());
            stack_.pop_back();
            if (by_level && one.to.level > round) {
              deeper.push_back(std::move(one));
              continue;
            }
            meter.enter(one.to);
            do_one(one);
          } else if (seeds && !thrown) {
            seeds = seed();
          } else {
            meter.stop();
            break;
          }
        } catch (const rank_failure&) {
          throw;
        } catch (const std::exception&) {
          thrown = std::current_exception();
        }
      }
      far::quiesce();
      for (; !deeper.empty(); deeper.pop_back()) stack_.push_back(std::move(deeper.back()));
      if (thrown) stack_.clear();
      const std::lock_guard guard((*inbox_)->lock);
      waiting = (*inbox_)->arrived.size() + stack_.size();
    }
    far::detail::do_together(
        far::world(), what,
        [&] {
          if (thrown) std::rethrow_exception(thrown);
        },
        [] {});
  }

 private:
  void take_arrived() {
    far::progress();
    std::vector<errand<D>> some;
    {
      const std::lock_guard guard((*inbox_)->lock);
      some.swap((*inbox_)->arrived);
    }
    for (auto& one : some) stack_.push_back(std::move(one));
  }

  const box_placement<D>* place_;
  far::distributed<std::unique_ptr<inbox>> inbox_;
  std::vector<errand<D>> stack_;
};

}  // namespace far::inline FARSIDE_BACKEND::wavelets::detail

namespace far::inline FARSIDE_BACKEND {

template <std::size_t D>
struct serializer<wavelets::detail::errand<D>> {
  static void save(writer& out, const wavelets::detail::errand<D>& e) {
    out << e.to << e.word << e.values;
  }
  static wavelets::detail::errand<D> load(reader& in) {
    wavelets::detail::errand<D> e;
    in >> e.to >> e.word >> e.values;
    return e;
  }
};

}  // namespace far::inline FARSIDE_BACKEND
