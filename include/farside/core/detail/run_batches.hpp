// Pieces that go together: the strided and vector forms collect short pieces by rank, and begin one
// operation for as many as a request of the transport holds (backend/shared/runs.hpp).
//
//   collecting --no room for the next piece, or no more pieces--> begun --complete--> bytes of a get
//                                                                                     are in place
#pragma once

#include <farside/core/access.hpp>
#include <farside/core/future.hpp>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// What the transport offers in this job.
template <class Link>
run_limits limits_of_runs(const Link& link) {
  if constexpr (moves_runs<Link>)
    return link.limits_of_runs();
  else
    return {};
}

/// Pieces of one rank, and their bytes. Of a get it also knows where these belong.
struct run_batch {
  struct place {
    std::byte* here;
    std::size_t bytes;
  };
  std::vector<run> runs;
  std::vector<std::uint64_t> words;  ///< the bytes, aligned for any component
  std::vector<place> places;
  std::size_t bytes = 0;

  std::byte* data() { return reinterpret_cast<std::byte*>(words.data()); }
  void make_room(std::size_t more) {
    std::size_t needed = (bytes + more + 7) / 8;
    if (words.size() < needed) words.resize(std::max(needed, 2 * words.size()));
  }
  /// Of a get that is complete.
  void put_in_place() {
    const std::byte* from = data();
    for (const place& p : places) {
      std::memcpy(p.here, from, p.bytes);
      from += p.bytes;
    }
  }
};

/// The batches of one call. `Form` begins them (many_pieces.hpp).
template <class Form, class T>
class run_batches {
 public:
  explicit run_batches(context& c) : c_(c), limits_(limits_of_runs(c.link)) {}

  /// Takes a piece of `n` elements; false: it is to go alone.
  template <class Here>
  bool take(ptr<T> there, Here* here, std::size_t n) {
    std::size_t bytes = n * sizeof(T);
    if (bytes > limits_.piece || bytes == 0) return false;
    if (limits_.whole_words && !Form::adds && (there.offset() | bytes) % 8 != 0) return false;
    auto& batch = open_[there.rank()];
    if (batch && is_full(*batch, bytes)) begin(there.rank(), std::move(batch));
    if (!batch) batch = std::make_unique<run_batch>();
    batch->make_room(bytes);
    append_piece(batch->runs, there.offset(), static_cast<std::uint32_t>(bytes));
    if constexpr (Form::reads)
      batch->places.push_back({reinterpret_cast<std::byte*>(here), bytes});
    else
      std::memcpy(batch->data() + batch->bytes, here, bytes);
    batch->bytes += bytes;
    return true;
  }
  /// There are no more pieces.
  void begin_rest() {
    for (auto& [rank, batch] : open_)
      if (batch) begin(rank, std::move(batch));
  }
  /// Until all are complete.
  void wait() {
    while (!begun_.empty()) finish_first();
  }
  /// Futures of those that are not complete.
  void hand_over(std::vector<future<void>>& left) {
    for (started& s : begun_) {
      if (s.request.test()) {
        s.batch->put_in_place();
        continue;
      }
      std::shared_ptr<run_batch> kept = std::move(s.batch);
      left.push_back(in_flight(c_, std::move(s.request)).then([kept] { kept->put_in_place(); }));
    }
    begun_.clear();
  }

 private:
  static constexpr std::size_t most = 64;  ///< under way together
  struct started {
    std::unique_ptr<run_batch> batch;  // outlives the request
    transport::request request;
  };

  bool is_full(const run_batch& batch, std::size_t next) const {
    std::size_t runs = (batch.runs.size() + 1) * sizeof(run);
    if (Form::reads) return batch.bytes + next > limits_.get || runs > limits_.put;
    return batch.bytes + next + 8 + runs > limits_.put;
  }
  void begin(rank_t rank, std::unique_ptr<run_batch> batch) {
    if (begun_.size() == most) finish_first();
    begun_.push_back({std::move(batch), {}});
    run_batch& b = *begun_.back().batch;
    begun_.back().request = Form::template begin_runs<T>(c_.link, rank, b.runs, b.data(), b.bytes);
  }
  void finish_first() {
    begun_.front().request.wait();
    begun_.front().batch->put_in_place();
    begun_.pop_front();
  }

  context& c_;
  run_limits limits_;
  std::map<rank_t, std::unique_ptr<run_batch>> open_;
  std::deque<started> begun_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
