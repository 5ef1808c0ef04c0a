// From sequences to the super-k-mers that each rank shall count: every rank cuts those it has, and
// sends blocks to those who count their partitions.
#pragma once

#include "superkmers.hpp"

#include <farside/algorithms/exchange.hpp>
#include <farside/core/runtime.hpp>

#include <cstdint>
#include <span>
#include <utility>

namespace genome {

/// Made, and finished, by all ranks; what lies between is each rank's own business.
class collector {
 public:
  /// Of partitions [first, end). `memory`: bytes that a rank may use; 0: no limit.
  explicit collector(unsigned k, bool flanks = false, std::uint64_t memory = 0, unsigned first = 0,
                     unsigned end = partitioning::count)
      : memory_(memory), splitter_(partitioning(k), flanks, first, end, sender{this}) {}
  collector(const collector&) = delete;
  collector& operator=(const collector&) = delete;

  /// A sequence; anything but acgtACGT ends a k-mer.
  void add(const char* bases, std::size_t n) { splitter_.add(bases, n); }
  /// Takes what has arrived: to be called once in a while, so that others get on.
  void receive() { mail_.receive(keeper{this}); }
  /// Whether more has come than the memory allowed; what comes then is dropped.
  bool full() const { return full_; }
  /// Collective: everything has arrived.
  void finish() {
    splitter_.finish();
    mail_.finish(keeper{this});
  }
  /// The super-k-mers of the partitions that this rank owns.
  superkmer_store take() { return std::move(store_); }

 private:
  struct sender {
    collector* to;
    void operator()(const superkmer_block& block) const { to->send(block); }
  };
  struct keeper {
    collector* of;
    void operator()(std::span<const superkmer_block> blocks) const {
      for (const superkmer_block& block : blocks) of->keep(block);
    }
  };

  void send(const superkmer_block& block) {
    auto to = partitioning::owner(block.partition, far::nprocs());
    if (to == far::rank())
      keep(block);
    else
      mail_.send(to, block, keeper{this});
  }
  void keep(const superkmer_block& block) {
    if (full_) return;
    store_.add(block);
    full_ = memory_ != 0 && store_.bytes() > memory_;
  }

  std::uint64_t memory_;
  bool full_ = false;
  superkmer_store store_;
  far::exchange<superkmer_block> mail_;
  superkmer_splitter<sender> splitter_;
};

}  // namespace genome
