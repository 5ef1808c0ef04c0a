// Cells of a store: members of its values that are changed by atomics of their own (far::cells_of).
// Those of types smaller than 64 bits wrap, as the numbers do: their words hold the sum, of which
// the lower bits are the number.
#pragma once

#include <farside/containers/detail/store/async.hpp>

namespace far::inline FARSIDE_BACKEND::detail::stores {

template <class V, class M, class C>
std::size_t required_cell(M C::* which, const char* what) {
  require_cell<M>();
  const std::size_t number = cell_of<V>(which);
  if (number == object<V>::cells)
    raise("store: ", what,
          " of a member that is no cell. Name it in far::cells_of<V>, or use modify().");
  return number;
}

template <class M>
[[noreturn]] void refuse_number(const char* what, M value) {
  raise(
      "store: ", what, " by, or to, ", value,
      ": a cell holds numbers from -2^59 to 2^59 - 1. Keep smaller ones in it, or use modify() on "
      "a member that is no cell.");
}
template <class M>
void require_number(const char* what, M value) {
  if (!cell::fits(value)) refuse_number(what, value);
}

/// What is added to the word of a cell.
template <class M>
word step_of(const char* what, M value) {
  if constexpr (sizeof(M) < 8)
    return static_cast<word>(static_cast<std::int64_t>(static_cast<std::make_signed_t<M>>(value)));
  require_number(what, value);
  return static_cast<word>(value);
}

/// The number of a cell, after `work(its word)` has changed it or not.
template <class M, class Core, class Work>
std::optional<M> number_of(Core& m, const typename Core::K& key, std::size_t number, Work work) {
  if (auto old = m.with_cell(key, number, work)) return cell::decode<M>(*old);
  return std::nullopt;
}

/// After an addition that has made a word too large: it is taken back.
template <class M>
void refuse_sum(ptr<word> at, word old, word step, const char* what, M value) {
  if (!cell::strained(old + step) || (old & cell::absent)) return;
  far::fetch_add(at, 0 - step);
  refuse_number(what, value);
}

template <class M, class Core>
std::optional<M> add_to_cell(Core& m, const typename Core::K& key, std::size_t number, M value,
                             const char* what) {
  const word step = step_of(what, value);
  return number_of<M>(m, key, number, [&](ptr<word> at) {
    const word old = far::fetch_add(at, step);
    refuse_sum(at, old, step, what, value);
    return old;
  });
}

/// The same: where the place of the cell is known, and communication takes time, the atomic is in
/// flight on return.
template <class M, class Core>
future<std::optional<M>> begin_adding(Core& m, const typename Core::K& key, std::size_t number,
                                      M value, const char* what) {
  const word step = step_of(what, value);
  std::optional<place> known;
  if (!m.c.link.coherent()) known = m.known_place(key);
  if (!known) return at_once([&] { return add_to_cell(m, key, number, value, what); });
  const ptr<word> at = known->at + static_cast<std::ptrdiff_t>(1 + number);
  return async_fetch_add(at, step).then(
      [&m, key, number, value, what, step, at, all = *known,
       until_done = m.choice.under_way()](word old) -> std::optional<M> {
        settle(m.c, all);
        if (old & cell::absent) {  // it did not count
          m.forget(key);
          return add_to_cell(m, key, number, value, what);
        }
        refuse_sum(at, old, step, what, value);
        return cell::decode<M>(old);
      });
}

template <class M, class Core>
std::optional<M> swap_cell(Core& m, const typename Core::K& key, std::size_t number, M expected,
                           M desired) {
  require_number("compare_swap", desired);
  return number_of<M>(m, key, number, [&](ptr<word> at) {
    for (word wanted = cell::encode(expected);;) {  // other words may stand for the same number
      const word old = far::compare_swap(at, wanted, cell::encode(desired));
      if (old == wanted || (old & cell::absent) || cell::decode<M>(old) != expected) return old;
      wanted = old;
    }
  });
}

template <class M, class Core>
bool set_cell(Core& m, const typename Core::K& key, std::size_t number, M value) {
  require_number("update", value);
  const auto old = m.with_cell(key, number, [&](ptr<word> at) {
    word now = atomic_load(at);
    while (!(now & cell::absent)) {
      const word was = far::compare_swap(at, now, cell::encode(value));
      if (was == now) break;
      now = was;
    }
    return now;
  });
  return old.has_value();
}

}  // namespace far::inline FARSIDE_BACKEND::detail::stores
