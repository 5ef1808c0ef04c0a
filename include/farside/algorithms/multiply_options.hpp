// How a distributed multiplication is done: its algorithm, and who helps whom.
#pragma once

#include <farside/containers/matrix_shape.hpp>

#include <cstddef>
#include <functional>

namespace far::inline FARSIDE_BACKEND {

/// What stays where it is while the other tiles travel, or which other way is taken.
///
///   c             owners of C multiply; tiles of A and B are fetched
///   a             owners of A multiply; tiles of B are fetched, partial tiles of C are sent
///   b             owners of B multiply; tiles of A are fetched, partial tiles of C are sent
///   layers        2.5-D: as C, in several layers of members that have a part of the k each; partial
///                 tiles of C are sent. Fetches less, and takes more memory
///   summa         bulk-synchronous: for each k, tiles of A are broadcast along rows of the grid,
///                 tiles of B along columns. The baseline; all three matrices on one grid of members
///   slices        for tiles that do not fit each other: owners of C fetch slices of A and B
///   automatic     whatever the model says takes least time
enum class stationary { automatic, c, a, b, layers, summa, slices };

/// What members do that have nothing left to do.
///
///   none     they wait
///   random   they take pieces of any member, of tiles in random order
///   near     they take pieces of which at least one of the three tiles is their own
///
/// For stationary C and A.
enum class stealing { none, random, near };

/// A product of two tiles that this member has multiplied: C(c) += A(c.row, k) B(k, c.column).
struct multiplied_piece {
  matrix_index c;
  std::size_t k = 0;
  bool stolen = false;  ///< it was another member's to multiply
  /// In local kernels. Pieces that are multiplied together have the same part of it each.
  double seconds = 0;
};

struct multiply_options {
  far::stationary algorithm = far::stationary::automatic;
  far::stealing stealing = far::stealing::none;
  /// C becomes C + A B instead of A B.
  bool accumulate = false;
  /// Sums of floating-point numbers come out the same, to the last bit, whenever the same matrices
  /// are multiplied by the same members. Partial tiles wait for those before them.
  bool ordered = false;
  /// Bytes of partial tiles that a member may have under way at a time. 0: a sixteenth of a segment.
  std::size_t update_memory = 0;
  /// Called on a member after each piece that it has multiplied, if both tiles had entries. Local;
  /// must not communicate. What it takes counts as computing. May be empty.
  std::function<void(const multiplied_piece&)> after_piece{};
};

}  // namespace far::inline FARSIDE_BACKEND
