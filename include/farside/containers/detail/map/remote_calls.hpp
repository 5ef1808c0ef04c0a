// Operations that are sent to the owner of a key (far::engine::rpc): docs/protocols/hash_map.md,
// "By messages".
//
//   caller                                           owner, in a handler
//   what, items (keys, or keys and values) ------->  the same operation on its own table, item by
//                                                    item, until one would have to wait
//   counts what was taken or erased, and grows <---  an outcome for each that is done
//   the rest one-sided
//
// Where others wait the owner gives up. It never grows a table, and helps nobody who does: entries
// that have moved it follows into the next table.
#pragma once

#include <farside/containers/detail/map/map_core.hpp>

#include <span>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// Does one operation on one item: at its owner for another rank, which gives up, or one-sided.
template <if_blocked B, class Core, class Op, class Item>
outcome<typename Core::V> perform(Core& m, Op& op, const Item& item, concurrency with,
                                  bucket_window<typename Core::traits>* have = nullptr) {
  using update = decltype(op.update(item));
  return m.template update<B, update>(key_of<typename Core::K>(item), op.update(item), with, have);
}

/// What runs at the owner: an outcome for each item, until one cannot be done at once.
template <class Core, class Op, class Item>
void serve_map(void* state, reader& in, writer& answers) {
  auto& m = *static_cast<Core*>(state);
  auto with = in.read<concurrency>();
  auto op = in.read<Op>();
  auto left = in.read<std::uint32_t>();
  m.choice.prepare_answer(left * std::uint64_t{Core::outcome_type::longest});
  for (; left != 0; --left) {
    const auto done = perform<if_blocked::give_up>(m, op, in.read<Item>(), with);
    if (done.what == result::blocked) return;
    done.save(answers);
  }
}

/// The caller's part of what the owner has done.
template <class Core>
auto accept(Core& m, rank_t member, reader& from) {
  auto done = Core::outcome_type::load(from);
  m.account_for(member, done);
  return done;
}

/// A message that asks for `count` items, which come next.
template <class Item, class Core, class Op>
writer question(Core& m, const Op& op, concurrency with, std::size_t count) {
  writer out = m.choice.message(&serve_map<Core, Op, Item>);
  out << with << op << static_cast<std::uint32_t>(count);
  return out;
}
template <class Core>
auto outcome_in(Core& m, rank_t member, const std::vector<std::byte>& answer)
    -> std::optional<typename Core::outcome_type> {
  reader in(answer);
  if (in.left() == 0) return std::nullopt;
  return accept(m, member, in);
}

/// Asks for one item and waits. Nothing if the owner could not.
template <class Core, class Op, class Item>
[[gnu::noinline]] auto call_owner(Core& m, rank_t member, const Op& op, const Item& item,
                                  concurrency with) -> std::optional<typename Core::outcome_type> {
  writer message = question<Item>(m, op, with, 1);
  message << item;
  return outcome_in(m, member, m.choice.ask(member, 1, std::move(message)));
}

/// The same without waiting: a future of `finish(outcome)`. What the owner declines is done here.
template <class Core, class Op, class Item, class Finish>
auto async_call_owner(Core& m, rank_t member, const Op& op, const Item& item, concurrency with,
                      Finish finish) {
  writer message = question<Item>(m, op, with, 1);
  message << item;
  return m.choice.send_later(
      member, std::move(message),
      [&m, member, op = op, item, with, finish](std::vector<std::byte> bytes) mutable {
        if (auto done = outcome_in(m, member, bytes)) return finish(*std::move(done));
        return finish(perform<if_blocked::wait>(m, op, item, with));
      });
}

/// For many: calls `take(i, outcome)` for each item. Items of one member are done in their order: a
/// message for each member that has any, with up to 256 of them, then the next ones. What owners
/// decline, and this rank's own, is done one-sided.
template <class Core, class Op, class Item, class Take>
void call_owners(Core& m, Op& op, std::span<const Item> items, concurrency with, Take take) {
  constexpr std::size_t most = 256;
  std::vector<std::vector<std::size_t>> of(m.members.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    of[m.place_of(key_of<typename Core::K>(items[i])).member].push_back(i);
  auto alone = [&](std::size_t i) { take(i, perform<if_blocked::wait>(m, op, items[i], with)); };
  for (std::size_t i : std::exchange(of[m.members.rank()], {})) alone(i);
  struct asked {
    rank_t member;
    std::span<const std::size_t> which;
    future<std::vector<std::byte>> answers;
  };
  bool more = true;
  for (std::size_t begin = 0; std::exchange(more, false); begin += most) {
    std::vector<asked> round;
    for (rank_t to = 0; to < of.size(); ++to) {
      if (of[to].size() <= begin) continue;
      auto which = std::span<const std::size_t>(of[to]).subspan(
          begin, std::min(most, of[to].size() - begin));
      writer message = question<Item>(m, op, with, which.size());
      for (std::size_t i : which) message << items[i];
      round.push_back({to, which, m.choice.send(to, which.size(), std::move(message))});
      more = more || begin + most < of[to].size();
    }
    owner_wait_marker note(m.c, m.label.c_str());
    for (asked& one : round) {
      auto bytes = one.answers.get();
      reader in(bytes);
      while (in.left() != 0) {
        take(one.which.front(), accept(m, one.member, in));
        one.which = one.which.subspan(1);
      }
      m.choice.count_declined(one.which.size());
      for (std::size_t i : one.which) alone(i);
    }
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map
