// What clients and servers say to each other.
//
// A request is one message: a header, and the bytes of a put that is small enough. Requests of a
// client travel on one communicator with one tag, so that its server receives them in the order in
// which they were sent (MPI's non-overtaking rule), and it executes them in that order. Answers
// travel on a second communicator; the tag is the client's slot (client.hpp), whose receive was
// posted before the request went out. The bytes of a long put follow its header with a tag of their
// own, and land in the segment without a copy.
//
//   client                                    server
//   put, small    header + bytes  ---------->  copied to the segment
//   put, long     header, bytes   ---------->  received in the segment;   <-- empty answer
//   get           header          ---------->  copied, or sent from the segment  <-- bytes
//   atomic        header          ---------->  CPU atomic                 <-- old value
//   signal        header          ---------->  CPU atomic, wakes
//   accumulate    header + bytes  ---------->  added to the segment, as ranks of its node do
//   put_runs      header + bytes + runs  --->  copied to the segment, piece by piece
//   get_runs      header + runs   ---------->  gathered from the segment  <-- bytes
//   accumulate_runs   as put_runs  --------->  added to the segment, piece by piece
//   fence         header          ---------->                             <-- empty answer
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/backend/shared/add_in_place.hpp>
#include <farside/backend/shared/runs.hpp>

#include <cstddef>
#include <cstdint>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served {

enum class kind : std::uint8_t {
  put,
  long_put,
  get,
  atomic,
  compare_swap,
  load,
  signal,
  fence,
  accumulate,
  put_runs,
  get_runs,
  accumulate_runs
};

/// What an accumulate adds.
enum class addend : std::uint8_t { uint32, uint64, float32, float64 };
template <component C>
inline constexpr addend addend_of = std::same_as<C, float>    ? addend::float32
                                    : std::same_as<C, double> ? addend::float64
                                    : sizeof(C) == 4          ? addend::uint32
                                                              : addend::uint64;

struct header {
  kind what;
  std::uint8_t op;         ///< atomic_op, or addend
  std::uint8_t width;      ///< of an atomic: 4 or 8
  std::uint8_t is_signed;  ///< min and max differ
  std::uint32_t local;     ///< whose segment, counted within the server's group
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t value;  ///< of an atomic; compare_swap: desired; how many runs there are
  std::uint64_t expected;
  std::uint32_t slot;      ///< of the client: tag of the answer
  std::uint32_t answered;  ///< 1: the client waits for an answer
};
static_assert(sizeof(header) == 48);

inline constexpr int request_tag = 0;
inline constexpr int data_tag = 1;  ///< and the slot

/// Requests of one process that are under way at one time. A process with more of them waits.
inline constexpr std::uint32_t slots = 256;

/// Runs follow the bytes of their pieces, on the next boundary of a word.
constexpr std::size_t place_of_runs(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

/// Lengths above which the way of a message changes. Measured, see docs/mpi_progress.md.
struct limits {
  std::size_t inline_put;                          ///< longer puts go straight into the segment
  std::size_t copied_get = std::size_t{64} << 10;  ///< longer gets come straight out of it
};

inline constexpr std::size_t chunk = std::size_t{1} << 30;  ///< MPI counts are ints

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served
