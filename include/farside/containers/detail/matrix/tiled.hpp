// What dense and sparse distributed matrices tell of themselves: how they are cut, and who has what.
#pragma once

#include <farside/containers/detail/matrix/state.hpp>

#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

template <class State>
class tiled {
 public:
  /// Rows and columns. Local; no communication.
  matrix_shape shape() const { return state_->layout.shape(); }
  /// How it is cut into tiles. Local; no communication.
  const matrix_layout& layout() const { return state_->layout; }
  /// How many tiles there are in each direction. Local; no communication.
  matrix_shape grid_shape() const { return state_->layout.grid_shape(); }
  /// Of all tiles but those at the edges, and of one tile. Local; no communication.
  matrix_shape tile_shape() const { return state_->layout.tile_shape(); }
  matrix_shape tile_shape(matrix_index tile) const {
    state_->require_tile("tile_shape", tile);
    return state_->layout.tile_shape(tile);
  }
  /// The member of the team that has a tile. Local; no communication.
  rank_t owner(matrix_index tile) const {
    state_->require_tile("owner", tile);
    return state_->layout.owner(tile);
  }
  /// The tiles of this member, row by row. Local; no communication.
  std::vector<matrix_index> my_tiles() const {
    std::vector<matrix_index> result;
    state_->layout.for_each_tile(members().rank(),
                                 [&](matrix_index tile) { result.push_back(tile); });
    return result;
  }
  /// What it is called in messages, and the team it is spread over. Local; no communication.
  const std::string& name() const { return state_->label; }
  const team& members() const { return state_->members; }

 protected:
  explicit tiled(container_handle<State> state) : state_(std::move(state)) {}

  void require_shape(const char* what, matrix_shape wanted, matrix_shape given) const {
    if (wanted != given) [[unlikely]]
      raise(state_->full_name(), ": ", what, " of ", wanted, " was given ", given,
            ". Both shapes must be the same.");
  }

  container_handle<State> state_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
