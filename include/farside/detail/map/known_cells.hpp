// Where cells of keys were found, so that adding to one costs no look for it: where memory is
// coherent the look is cheap, elsewhere it is a get.
#pragma once

#include <farside/detail/map/table.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// Of one thread. `epoch` is directory::epoch: tables from before may be gone.
template <class K>
class known_cells {
 public:
  struct cell_place {
    word epoch = ~word{0};
    table* in = nullptr;
    word index = 0;
    std::optional<K> key{};

    void forget() { epoch = ~word{0}; }
  };

  void remember(const place& p, word epoch, table& in, word index, const K& key) {
    if (cells_.empty()) cells_.resize(most);
    cells_[p.fingerprint % most] = {epoch, &in, index, key};
  }
  /// Null if it is not known.
  cell_place* find(const place& p, word epoch, const K& key) {
    if (cells_.empty()) return nullptr;
    cell_place& found = cells_[p.fingerprint % most];
    return found.epoch == epoch && found.key && *found.key == key ? &found : nullptr;
  }
  void clear() { cells_.clear(); }

 private:
  static constexpr std::size_t most = 1024;

  std::vector<cell_place> cells_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::map
