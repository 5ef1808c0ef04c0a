// engine: operations that are sent to the owner of a key (far::engine::rpc).
//
//   caller                                           owner, in a handler
//   what, items (keys, or keys and values) ------->  the same operation on its own table, item by
//                                                    item, until one would have to wait
//   counts what was taken or erased, and grows <---  an answer for each that is done
//   the rest one-sided
//
// The owner's protocol is that of every rank (changes.hpp), on its own table, so that operations
// sent and one-sided ones may meet. It never grows a table, and helps nobody who does: entries that
// have moved it follows into the next table. What it has taken is counted by the caller: sizes are
// those of who asked, and are complete when that rank comes to a barrier. Where the owner would
// have begun to grow a table, the caller does.
#pragma once

#include <farside/containers/detail/map/engine.hpp>

#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// What became of one item. `value`: of find what was found, of accumulate what there was before,
/// of modify what there is now.
template <class V>
struct answer {
  bool created = false;  ///< of erase: whether it was there
  counted count = counted::nothing;
  bool strained = false;
  std::optional<V> value{};

  /// Of one that is saved.
  static constexpr std::size_t longest = 1 + (fixed_length<V> ? sizeof(V) : std::size_t{1} << 32);

  void save(writer& out) const {
    out << static_cast<std::uint8_t>(created | strained << 1 | value.has_value() << 2 |
                                     static_cast<int>(count) << 3);
    if (value) out << *value;
  }
  static answer load(reader& in) {
    int bits = in.read<std::uint8_t>();
    answer a{(bits & 1) != 0, static_cast<counted>(bits >> 3), (bits & 2) != 0};
    if ((bits & 4) != 0) a.value.emplace(in.read<V>());
    return a;
  }
};

/// The key of what is sent: a key, or an entry. Told apart by their types alone: a key may well
/// have a member `first`, as pairs have.
template <class K>
const K& key_of(const K& key) {
  return key;
}
template <class K, class V>
const K& key_of(const std::pair<K, V>& entry) {
  return entry.first;
}

/// What runs at the owner: an answer for each item, until one cannot be done at once.
template <class Engine, class What, class Item>
void serve_map(void* state, reader& in, writer& answers) {
  auto& e = *static_cast<Engine*>(state);
  auto with = in.read<concurrency>();
  auto what = in.read<What>();
  auto left = in.read<std::uint32_t>();
  e.choice.prepare_answer(left * std::uint64_t{Engine::answer_type::longest});
  for (; left != 0; --left) e.serve(what, in.read<Item>(), with).save(answers);
}

/// Does one operation for another rank.
template <class K, class V, class Hash, class Probing>
template <class What, class Item>
auto engine<K, V, Hash, Probing>::serve(What& what, const Item& item, concurrency with)
    -> answer_type {
  const K& key = map::key_of<K>(item);
  place p = place_of(key);
  on_behalf_ = {};
  answer_type result;
  auto change = [&](const auto& update) {
    outcome done = update_slowly<std::remove_cvref_t<decltype(update)>>(
        key, update, with, static_cast<prefetched<engine>*>(nullptr));
    result.created = done.created;
    return std::move(done.old);
  };
  if constexpr (std::is_same_v<What, find_there>) {
    result.value = find(key, p, with);
  } else if constexpr (std::is_same_v<What, erase_there>) {
    result.created = erase(key, p, with);
  } else if constexpr (std::is_same_v<What, insert_there>) {
    change(keep<V>{item.second});
  } else if constexpr (std::is_same_v<What, assign_there>) {
    change(replace<V>{item.second});
  } else if constexpr (requires { what.op; }) {
    result.value = change(combine<V, std::remove_cvref_t<decltype(what.op)>>{item.second, what.op});
  } else {
    auto remember = [&](V& value) {
      what.change(value);
      result.value = value;
    };
    change(transform<V, decltype(remember)>{remember});
  }
  result.count = on_behalf_.count;
  result.strained = on_behalf_.strained;
  return result;
}

/// The caller's part of what the owner has done.
template <class K, class V, class Hash, class Probing>
auto engine<K, V, Hash, Probing>::accept(rank_t member, reader& from) -> answer_type {
  auto a = answer_type::load(from);
  switch (a.count) {
    case counted::nothing:
      break;
    case counted::at_home:
      count_taken(member, tables.of(member), 0);
      break;
    case counted::away:
      count_taken(member, tables.of(member), 1);
      break;
    case counted::erased:
      count_erased(member);
      break;
    case counted::revived:
      count_revived(member);
      break;
  }
  if (a.strained) widen_if_there_is_room(member, tables.of(member));
  return a;
}

/// A message that asks for `count` items, which come next.
template <class K, class V, class Hash, class Probing>
template <class Item, class What>
writer engine<K, V, Hash, Probing>::question(const What& what, concurrency with,
                                             std::size_t count) {
  writer out = choice.message(&serve_map<engine, What, Item>);
  out << with << what << static_cast<std::uint32_t>(count);
  return out;
}

/// Asks for one item and waits. Nothing if the owner could not.
template <class K, class V, class Hash, class Probing>
template <class What, class Item>
[[gnu::noinline]] auto engine<K, V, Hash, Probing>::ask(rank_t member, const What& what,
                                                        const Item& item, concurrency with)
    -> std::optional<answer_type> {
  writer message = question<Item>(what, with, 1);
  message << item;
  owner_wait_marker note(c, this->label.c_str());
  return answer_to(member, choice.send(member, 1, std::move(message)).get());
}
template <class K, class V, class Hash, class Probing>
auto engine<K, V, Hash, Probing>::answer_to(rank_t member, const std::vector<std::byte>& bytes)
    -> std::optional<answer_type> {
  reader in(bytes);
  if (in.left() != 0) return accept(member, in);
  choice.count_declined(1);
  return std::nullopt;
}

/// The same for an update; nothing, too, if its function cannot leave this rank.
template <class K, class V, class Hash, class Probing>
template <class Update>
auto engine<K, V, Hash, Probing>::ask_update(rank_t member, const K& key, const Update& with,
                                             concurrency promised) -> std::optional<outcome> {
  std::optional<answer_type> a;
  auto send = [&](const auto& what, const V& value) {
    a = ask(member, what, std::pair<K, V>(key, value), promised);
  };
  if constexpr (std::is_same_v<Update, keep<V>>) {
    send(insert_there{}, with.value);
  } else if constexpr (std::is_same_v<Update, replace<V>>) {
    send(assign_there{}, with.value);
  } else if constexpr (requires { with.op; }) {
    using Op = std::remove_cvref_t<decltype(with.op)>;
    if constexpr (travels<Op>) send(accumulate_there<Op>{with.op}, with.value);
  }
  if (!a) return std::nullopt;
  return outcome{a->created, std::move(a->value)};
}

/// The same without waiting: a future of `result(answer)`, or of `alone()` if the owner could not.
template <class K, class V, class Hash, class Probing>
template <class What, class Item, class Result, class Alone>
auto engine<K, V, Hash, Probing>::ask_later(rank_t member, const What& what, const Item& item,
                                            concurrency with, Result result, Alone alone) {
  writer message = question<Item>(what, with, 1);
  message << item;
  return choice.send_later(member, std::move(message),
                           [this, member, result, alone](std::vector<std::byte> bytes) mutable {
                             if (auto answer = answer_to(member, bytes))
                               return result(*std::move(answer));
                             return alone(*this);
                           });
}

/// For many: calls `take(i, answer)` for each item that its owner has done, and `alone(i)` for the
/// others, this rank's own among them. Items of one member are done in their order: a message for
/// each member that has any, with up to 256 of them, then the next ones.
template <class K, class V, class Hash, class Probing>
template <class What, class Item, class Take, class Alone>
void engine<K, V, Hash, Probing>::ask_many(const What& what, std::span<const Item> items,
                                           concurrency with, Take take, Alone alone) {
  constexpr std::size_t most = 256;
  std::vector<std::vector<std::size_t>> of(members.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    of[place_of(map::key_of<K>(items[i])).member].push_back(i);
  for (std::size_t i : std::exchange(of[members.rank()], {})) alone(i);
  struct asked {
    rank_t member;
    std::span<const std::size_t> which;
    future<std::vector<std::byte>> answers;
  };
  bool more = true;
  for (std::size_t begin = 0; std::exchange(more, false); begin += most) {
    std::vector<asked> round;
    for (rank_t m = 0; m < of.size(); ++m) {
      if (of[m].size() <= begin) continue;
      auto which =
          std::span<const std::size_t>(of[m]).subspan(begin, std::min(most, of[m].size() - begin));
      writer message = question<Item>(what, with, which.size());
      for (std::size_t i : which) message << items[i];
      round.push_back({m, which, choice.send(m, which.size(), std::move(message))});
      more = more || begin + most < of[m].size();
    }
    owner_wait_marker note(c, this->label.c_str());
    for (asked& one : round) {
      auto bytes = one.answers.get();
      reader in(bytes);
      while (in.left() != 0) {
        take(one.which.front(), accept(one.member, in));
        one.which = one.which.subspan(1);
      }
      choice.count_declined(one.which.size());
      for (std::size_t i : one.which) alone(i);
    }
  }
}

/// Asks owners for many, and does what is left by `alone(i)`: how many were added, or erased.
template <class Engine, class What, class Item, class Alone>
std::size_t count_asked(Engine& e, const What& what, std::span<const Item> items, concurrency with,
                        Alone alone) {
  std::size_t count = 0;
  e.ask_many(
      what, items, with, [&](std::size_t, const auto& answer) { count += answer.created; },
      [&](std::size_t i) { count += alone(i); });
  return count;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map
