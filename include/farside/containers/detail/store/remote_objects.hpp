// Operations on objects that are sent to the owner of their key (far::engine::rpc). The owner runs
// the protocol of every rank on its own memory, and gives up where it would wait; then the caller
// does it one-sided. Counting is the caller's, and so is what the owner could not finish.
#pragma once

#include <farside/containers/detail/store/index.hpp>

#include <optional>

namespace far::inline FARSIDE_BACKEND::detail::stores {

/// What the owner says. Of an erasure `unlink` is the object that its index still names.
template <class Value>
struct object_answer {
  changed what = changed::blocked;
  map::counted count = map::counted::nothing;
  word unlink = 0, words = 0;
  std::optional<versioned<Value>> value{};
};

struct nothing {};

// What is asked for: `kind`, and what the owner does.
struct find_object {
  static constexpr auto kind = container_operation::find;
  template <class Core, class Answer>
  void run(Core& m, const typename Core::K& key, nothing, Answer& a) {
    a.what = m.template find_value<if_blocked::give_up>(key, a.value);
  }
};
struct put_object {
  static constexpr auto kind = container_operation::insert;
  template <class Core, class Answer>
  void run(Core& m, const typename Core::K& key, const typename Core::value_type& value,
           Answer& a) {
    typename Core::outcome counts;
    a.what = m.template put_value<if_blocked::give_up>(key, value, counts);
    a.count = counts.count;
  }
};
struct replace_object {
  static constexpr auto kind = container_operation::modify;
  template <class Core, class Answer>
  void run(Core& m, const typename Core::K& key, const typename Core::value_type& value,
           Answer& a) {
    a.what = m.template replace_value<if_blocked::give_up>(key, value, only);
  }
  std::int64_t only;
};
template <class F>
struct modify_object {
  static constexpr auto kind = container_operation::modify;
  template <class Core, class Answer>
  void run(Core& m, const typename Core::K& key, nothing, Answer& a) {
    a.what = m.template modify_value<if_blocked::give_up>(key, f);
  }
  F f;
};
struct erase_there {
  static constexpr auto kind = container_operation::erase;
  template <class Core, class Answer>
  void run(Core& m, const typename Core::K& key, nothing, Answer& a) {
    typename Core::outcome counts;
    auto rest = m.no_place();
    a.what = m.template erase_value<if_blocked::give_up>(key, counts, rest);
    a.count = counts.count;
    a.unlink = rest.at.raw(), a.words = rest.words;
  }
};

/// What runs at the owner.
template <class Core, class Op, class Item>
void serve_object(void* state, reader& in, writer& out) {
  Core& m = *static_cast<Core*>(state);
  Op op = in.read<Op>();
  const auto key = in.read<typename Core::K>();
  const Item item = in.read<Item>();
  using Value = typename Core::value_type;
  m.choice.prepare_answer(fixed_length<Value> ? sizeof(Value) + 64 : std::uint64_t{1} << 32);
  object_answer<Value> a;
  op.run(m, key, item, a);
  if (a.what == changed::blocked) return;
  out << static_cast<std::uint8_t>(a.what) << static_cast<std::uint8_t>(a.count) << a.unlink
      << a.words << static_cast<std::uint8_t>(a.value.has_value());
  if (a.value) out << a.value->version << a.value->value;
}

template <class Core, class Op, class Item>
writer question_of_object(Core& m, const Op& op, const typename Core::K& key, const Item& item) {
  writer message = m.choice.message(&serve_object<Core, Op, Item>);
  message << op << key << item;
  return message;
}

/// The caller's part of what the owner has done. Nothing: it has declined.
template <class Core>
std::optional<object_answer<typename Core::value_type>> answer_in(
    Core& m, rank_t member, const typename Core::K& key, const std::vector<std::byte>& bytes) {
  using Value = typename Core::value_type;
  reader in(bytes);
  if (in.left() == 0) return std::nullopt;
  object_answer<Value> a;
  a.what = static_cast<changed>(in.read<std::uint8_t>());
  a.count = static_cast<map::counted>(in.read<std::uint8_t>());
  a.unlink = in.read<word>();
  a.words = in.read<word>();
  if (in.read<std::uint8_t>() != 0) {
    const auto version = in.read<std::uint32_t>();
    a.value.emplace(versioned<Value>{in.read<Value>(), version});
  }
  typename Core::outcome done;
  done.count = a.count;
  m.account_for(member, done);
  if (a.unlink != 0) m.unlink(key, {ptr<word>::from_raw(a.unlink), a.words});
  return a;
}

/// Sends an operation to the owner of its key, if that is how it travels. Nothing: it is to be done
/// one-sided.
template <class Core, class Op, class Item>
std::optional<object_answer<typename Core::value_type>> ask_owner(Core& m, const Op& op,
                                                                  const typename Core::K& key,
                                                                  const Item& item) {
  if (!m.choice.any()) return std::nullopt;
  const rank_t member = m.place_of(key).member;
  if (!m.sends_to_owner(Op::kind, member, concurrency::everything)) return std::nullopt;
  writer message = question_of_object(m, op, key, item);
  return answer_in(m, member, key, m.choice.ask(member, 1, std::move(message)));
}

}  // namespace far::inline FARSIDE_BACKEND::detail::stores
