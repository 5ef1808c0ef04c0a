// A distributed multiplication while it is done: what all algorithms have in common.
//
//   every member:   begin (collective)  step ... step  finish (collective)
//
// A step is one piece: the tiles of the next piece are on their way while this one is multiplied.
// Steps wait for no other member, but for room for partial tiles (update_box.hpp).
#pragma once

#include <farside/algorithms/detail/multiply/model.hpp>
#include <farside/algorithms/detail/multiply/target.hpp>
#include <farside/algorithms/detail/multiply/work_grid.hpp>

#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>

namespace far::inline FARSIDE_BACKEND::detail {

/// What a handle of a multiplication holds.
struct multiply_work {
  virtual ~multiply_work() = default;
  virtual bool step() = 0;
  virtual void finish() = 0;
  virtual multiply_report report() = 0;
  virtual bool finished() const = 0;
};

template <class A, class B, class C, class Over>
class product : public multiply_work {
 protected:
  using target_type = typename target_of<C, Over>::type;
  using tile_a = typename A::tile_type;
  using tile_b = typename B::tile_type;

 public:
  /// Collective. What the members have done to A and B before is complete when it returns.
  product(const A& a, const B& b, C& c, const Over& over, const multiply_options& how,
          stationary chosen)
      : a_(a),
        b_(b),
        c_(c),
        how_(how),
        chosen_(chosen),
        members_(c.members()),
        box_(members_,
             how.update_memory != 0 ? how.update_memory : target_of<C, Over>::update_memory(c)),
        drain_([this] { drain(); }),
        target_({c_, over, how_, box_, times_, drain_}) {
    begin_ = job::monotonic_ns();
  }

  /// Multiplies a piece. False: there is none left for this member.
  bool step() override {
    if (given_up_) return false;
    try {
      drain();
      if (!failure_) {
        fill_pipeline();
        if (pipeline_.empty()) return false;
        fetched next = std::move(pipeline_.front());
        pipeline_.pop_front();
        multiply(next);
        return true;
      }
    } catch (const rank_failure&) {
      throw;
    } catch (...) {
      failure_ = std::current_exception();
    }
    // The others do not know: this member goes on as one that has nothing left to do, and all throw
    // at the end.
    given_up_ = true;
    pipeline_.clear();
    target_.give_up();
    after_failure();
    return false;
  }

  void finish() override {
    if (finished_) return;
    while (step()) {
    }
    {
      const double before = times_.accumulate;
      double waited = 0;
      {
        stopwatch until_rest(waited);
        wait_marker note(here(), job::waiting::collective, job::no_rank, "multiply");
        while (!FARSIDE_MUTANT(product_ends_before_rest) && !box_.at_rest(true)) {
          drain();
          here().wait_round();
        }
      }
      times_.imbalance += waited - (times_.accumulate - before);
    }
    finished_ = true;
    std::exception_ptr thrown;
    try {
      do_together(
          members_,
          "multiply of '" + a_.name() + "' and '" + b_.name() + "' into '" + c_.name() + "'",
          [&] {
            if (failure_) std::rethrow_exception(failure_);
            stopwatch until_done(times_.accumulate);
            target_.finish();
          },
          [] {});
    } catch (const rank_failure&) {
      throw;
    } catch (...) {
      thrown = std::current_exception();
    }
    if constexpr (is_sparse_matrix<C>) {
      if (thrown)
        c_.forget_set_tiles();  // of members that had room
      else
        c_.publish();
    }
    barrier(members_);
    box_.release();
    release();
    barrier(members_);
    times_.total = static_cast<double>(job::monotonic_ns() - begin_) * 1e-9;
    if (thrown) std::rethrow_exception(thrown);
  }

  bool finished() const override { return finished_; }

  multiply_report report() override {
    return {name_of(chosen_) + text(", ", to_text(how_.stealing)), all_gather(times_, members_)};
  }

 protected:
  struct fetched {
    std::shared_ptr<const multiply_task> task;
    std::size_t k;
    bool first, last, empty;
    future<tile_a> a;
    future<tile_b> b;
  };

  /// The next task, and its tiles. What algorithms differ in.
  virtual std::optional<multiply_task> next_task() = 0;
  virtual bool is_empty(const multiply_task& task, std::size_t k) const {
    return a_.is_empty({task.c.row, k}) || b_.is_empty({k, task.c.column});
  }
  virtual void fetch(fetched& piece) {
    const matrix_index at_a{piece.task->c.row, piece.k}, at_b{piece.k, piece.task->c.column};
    count_fetch(a_, at_a);
    count_fetch(b_, at_b);
    piece.a = a_.async_tile(at_a);
    piece.b = b_.async_tile(at_b);
  }
  virtual void release() {}
  /// Collective: work() of a constructor. Where it throws, on all members, what is there is given back.
  template <class Work>
  void or_abandon(Work work) {
    try {
      work();
    } catch (const rank_failure&) {
      throw;
    } catch (...) {
      box_.release();
      throw;
    }
  }
  /// What others wait for although this member multiplies no more.
  virtual void after_failure() {}

  template <class Operand>
  void count_fetch(const Operand& of, matrix_index tile) {
    if (of.owner(tile) != members_.rank()) times_.bytes_fetched += of.bytes(tile);
  }

  A a_;
  B b_;
  C& c_;
  const multiply_options how_;
  const stationary chosen_;
  const team members_;
  multiply_times times_;

 private:
  void drain() {
    box_.drain([&](const update_box::header& of, const std::byte* data) {
      stopwatch until_added(times_.accumulate);
      if (failure_) return;  // taken all the same, as its sender waits for that
      try {
        target_.take(of, data);
      } catch (const rank_failure&) {
        throw;
      } catch (...) {  // what the semiring has thrown; step() sees it
        failure_ = std::current_exception();
      }
    });
  }
  /// Two pieces: the one that is multiplied next, and the one after it.
  void fill_pipeline() {
    while (pipeline_.size() < 2) {
      if (!task_) {
        auto task = next_task();
        if (!task) return;
        task_ = std::make_shared<const multiply_task>(std::move(*task));
        done_ = 0;
      }
      const std::size_t last = task_->ks.size() - 1;
      fetched next{task_, task_->ks[done_], done_ == 0, done_ == last, false, {}, {}};
      next.empty = is_empty(*task_, next.k);
      if (!next.empty) {
        stopwatch until_begun(times_.communicate);
        fetch(next);
      }
      if (++done_ > last) task_.reset();
      pipeline_.push_back(std::move(next));
    }
  }
  void multiply(fetched& piece) {
    const multiply_task& task = *piece.task;
    if (piece.first) target_.start(task);
    if (!piece.empty) {
      std::optional<tile_a> a;
      std::optional<tile_b> b;
      {
        stopwatch until_here(times_.communicate);
        a = piece.a.get();
        b = piece.b.get();
      }
      compute(task, [&]() -> std::vector<std::size_t> {
        if constexpr (holds_pieces) {
          if (target_.piece(task, std::move(*a), std::move(*b))) {
            held_.push_back(piece.k);
            return {};
          }
        } else {
          target_.piece(task, std::move(*a), std::move(*b));
        }
        return {piece.k};
      });
    }
    if constexpr (holds_pieces)
      if (piece.last && !held_.empty())
        compute(task, [&] {
          target_.multiply_held(task);
          return std::exchange(held_, {});
        });
    ++times_.pieces;
    times_.stolen += task.stolen;
    if (piece.last) target_.end(task);
  }

  /// Whether pieces of a task may be multiplied together, at its end.
  static constexpr bool holds_pieces =
      requires(target_type& to, const multiply_task& task) { to.multiply_held(task); };

  /// Local kernels. work() returns the k of pieces that have been multiplied.
  template <class Work>
  void compute(const multiply_task& task, Work work) {
    const double before = times_.accumulate;
    double multiplied = 0;
    {
      stopwatch until_done(multiplied);
      const std::vector<std::size_t> done = work();
      const double seconds = until_done.seconds() - (times_.accumulate - before);
      if (how_.after_piece)
        for (std::size_t k : done)
          how_.after_piece({task.c, k, task.stolen, seconds / static_cast<double>(done.size())});
    }
    times_.compute += multiplied - (times_.accumulate - before);  // it may drain in between
  }

  update_box box_;
  std::function<void()> drain_;
  target_type target_;
  std::deque<fetched> pipeline_;
  std::shared_ptr<const multiply_task> task_;  ///< whose pieces are being fetched
  std::size_t done_ = 0;                       ///< how many of them
  std::vector<std::size_t> held_;              ///< the k of pieces that were not multiplied yet
  std::exception_ptr failure_;
  bool given_up_ = false;  ///< after a failure
  std::uint64_t begin_ = 0;
  bool finished_ = false;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
