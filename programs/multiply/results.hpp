// What `farside multiply` has found out, for tables, drawings and JSON.
#pragma once

#include "options.hpp"

#include <farside/algorithms/multiply_model.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace multiply_program {

/// How many products each piece C(i, j) += A(i, k) B(k, j) takes.
struct piece_counts {
  std::size_t m = 0, n = 0, k = 0;  ///< tiles
  std::vector<std::uint64_t> products;

  std::uint64_t& at(std::size_t i, std::size_t j, std::size_t l) {
    return products[(i * n + j) * k + l];
  }
  std::uint64_t at(std::size_t i, std::size_t j, std::size_t l) const {
    return products[(i * n + j) * k + l];
  }
  std::uint64_t total() const;
  /// Of a tile of C, over all k.
  std::uint64_t of_tile(std::size_t i, std::size_t j) const;
  /// The most of a tile by the mean of all, over all stages, and of one stage. 0: there is nothing.
  double imbalance() const;
  double imbalance(std::size_t stage) const;
  /// What all take if they wait for each other after each stage, by the mean.
  double imbalance_in_step() const;
};

struct run_result {
  double seconds = 0;      ///< from the first member that begins to the last that ends
  double cpu_seconds = 0;  ///< of all ranks together
  far::multiply_report report;
};

/// One product by one algorithm, with one kind of stealing.
struct outcome {
  far::stationary algorithm;
  far::stealing stealing = far::stealing::none;
  std::vector<run_result> runs;
  double model_bytes = 0, model_seconds = 0;
  std::string verified;  ///< "" if nobody asked

  /// The run of median time.
  const run_result& median() const;
  /// By all ranks.
  std::uint64_t bytes_moved() const;
};

/// One product, by all algorithms that were asked for.
struct problem {
  product_kind kind = product_kind::none;
  std::string a, b;
  std::string device;  ///< what multiplied: "cuda", "stand-in", or "" for CPUs
  double seconds_to_device = 0, seconds_from_device = 0;  ///< copies of the factors, and of C
  far::matrix_shape shape_a, shape_b;
  std::uint64_t entries_a = 0, entries_b = 0, entries_c = 0;
  far::matrix_shape grid;
  piece_counts pieces;
  double local_bytes = 0;  ///< that kernels read and write, if caches are perfect
  std::vector<outcome> outcomes;

  double flops() const { return 2 * static_cast<double>(pieces.total()); }
  /// Flops for each byte of memory, and of the network.
  double local_intensity() const;
  double network_intensity(const outcome& by) const;
};

/// Bandwidths, of one rank while all of them do the same, in bytes a second.
struct bandwidths {
  double memory = 0;      ///< of reads and writes
  double network = 0;     ///< of gets from the next rank; 0 if there is no other
  double arithmetic = 0;  ///< flops a second of a dense product that fits the caches
};

/// Collective.
bandwidths measure_bandwidths();

/// How many flops a second a rank can do at most.
double local_roof(const problem& of, const bandwidths& with);

void print(const problem& of, const request& asked);
std::string json_of(const std::vector<problem>& all, const bandwidths& with, const request& asked);
std::string heat_map_svg(const problem& of);
std::string roofline_svg(const std::vector<problem>& all, const bandwidths& with);

}  // namespace multiply_program
