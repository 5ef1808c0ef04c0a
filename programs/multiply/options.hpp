// What `farside multiply` is asked to do.
#pragma once

#include <farside/algorithms/matrix_files/format.hpp>
#include <farside/algorithms/multiply_options.hpp>
#include <farside/base/types.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace multiply_program {

enum class product_kind { none, gemm, spmm, spgemm };

struct request {
  bool help = false;
  product_kind kind = product_kind::none;
  std::vector<std::string> factors;  ///< files, or generators: rmat:scale=10
  std::vector<far::stationary> algorithms{far::stationary::automatic};
  bool all_algorithms = false;  ///< that there are
  std::vector<far::stealing> stealing{far::stealing::none};
  bool ordered = false;
  bool device = false;                    ///< in device memory
  std::vector<std::size_t> grid;          ///< of ranks: rows and columns
  std::vector<std::size_t> tiles;         ///< of C in rows and columns, and of A in columns
  std::vector<std::size_t> columns{128};  ///< of B, for products of a sparse matrix and a dense one
  std::string semiring = "plus_times";
  std::size_t repeats = 1;
  bool verify = false, json = false, study = false, by_cpu_time = false;
  std::string output, heat_map, roofline;
  std::optional<far::rank_t> slow_rank;
  double slow_factor = 1;
  std::size_t update_memory = 0;
  far::duplicate_entries duplicates = far::duplicate_entries::refuse;
  std::uint64_t seed = 1;  ///< of a dense factor that is made

  bool steals() const { return stealing != std::vector{far::stealing::none}; }
};

/// Throws toolkit::wrong_option if it makes no sense.
request parse_request(const std::vector<std::string>& words);

/// "C = A B, sparse by dense"
const char* words_of(product_kind kind);
/// "spmm"
const char* name_of(product_kind kind);

}  // namespace multiply_program
