// Saving pairs of keys and values to a file, and loading them (the format: format.hpp).
#pragma once

#include <farside/containers/detail/pair_file/format.hpp>
#include <farside/core/collectives.hpp>
#include <farside/core/detail/together.hpp>
#include <farside/core/serialization.hpp>

#include <algorithm>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::pair_file {

/// Collective: writes the pairs of all members, of this one those from `first_pair()` to the end of
/// such iterators, one made of nothing. `what` is what errors begin with.
template <class FirstPair>
void save(const team& over, const std::string& what, const std::string& path,
          FirstPair first_pair) {
  using iterator = std::invoke_result_t<FirstPair>;
  constexpr std::size_t block_bytes = std::size_t{1} << 20;
  constexpr const char* unchanged = "A file of that name is as it was.";
  const bool first = over.rank() == 0;

  std::vector<std::vector<std::byte>> bytes;
  std::vector<file_block> blocks;
  std::uint64_t entries = 0, mine = 0;
  std::string problem = problem_of([&] {
    writer out;
    std::uint64_t pending = 0;
    auto end_block = [&] {
      bytes.push_back(out.take());
      out = writer();
      const auto& block = bytes.back();
      blocks.push_back({mine, block.size(), pending, hash_bytes(block.data(), block.size())});
      mine += block.size();
      pending = 0;
    };
    for (iterator at = first_pair(); at != iterator(); ++at) {
      const auto& [key, value] = *at;
      out << key << value;
      ++entries, ++pending;
      if (out.size() >= block_bytes) end_block();
    }
    if (pending != 0) end_block();
    return first ? objection_to_writing(path) : std::string();
  });
  agree(over, what, problem, unchanged);

  using entry = typename iterator::value_type;
  const std::string kinds = kinds_of<typename entry::first_type, typename entry::second_type>();
  pair_file::header header;
  header.kinds = kinds.size();
  header.entries = all_reduce(entries, std::plus<>(), over);
  const std::uint64_t begin = sizeof header + kinds.size();
  const std::uint64_t before = begin + exclusive_scan(mine, std::uint64_t{0}, std::plus<>(), over);
  header.index = begin + all_reduce(mine, std::plus<>(), over);
  for (auto& block : blocks) block.offset += before;

  far::draft draft(over);
  problem = draft.create(path);
  if (!problem.empty()) raise<error>(what, ": cannot write ", path, ": ", problem, ". ", unchanged);
  auto all_blocks = gather(blocks, 0, over);
  problem = problem_of([&] {
    open_file file(path, draft.descriptor());
    for (std::size_t i = 0; i < blocks.size(); ++i)
      file.write_at(blocks[i].offset, bytes[i].data(), bytes[i].size());
    if (first) {
      std::vector<file_block> index;
      for (const auto& some : all_blocks) index.insert(index.end(), some.begin(), some.end());
      const std::size_t index_bytes = index.size() * sizeof(file_block);
      header.blocks = index.size();
      header.file_bytes = header.index + index_bytes;
      header.index_checksum = hash_bytes(index.data(), index_bytes);
      header.checksum = header.checksum_with(kinds);
      file.write_at(header.index, index.data(), index_bytes);
      file.write_at(sizeof header, kinds.data(), kinds.size());
      file.write_at(0, &header, sizeof header);
    }
    file.sync();
    return file.problem;
  });
  agree(over, what, problem, unchanged);
  problem = draft.publish();
  if (!problem.empty()) raise<error>(what, ": cannot write ", path, ": ", problem, ". ", unchanged);
}

/// Collective: reads a file, of which each member gets some blocks. `make_room(n, mine)`, which is
/// collective, is called before the first of `n` pairs is added: it throws on all members if one of
/// them has no room for its own. `add` adds a span of them.
template <class K, class V, class MakeRoom, class Add>
void load(const team& over, const std::string& what, const std::string& path, MakeRoom make_room,
          Add add) {
  using entry = std::pair<K, V>;
  constexpr const char* unchanged = "The map is as it was before.";

  // All of it is read, checked and unpacked before the map changes.
  std::uint64_t identity = 0, all_entries = 0;
  std::vector<std::vector<entry>> mine;
  std::string problem = problem_of([&] {
    open_file file(path);
    pair_file::contents contents(file, kinds_of<K, V>());
    identity = contents.header.checksum;
    all_entries = contents.header.entries;
    for (std::size_t i = over.rank(); i < contents.blocks.size() && file.problem.empty();
         i += over.size()) {
      const file_block& block = contents.blocks[i];
      std::vector<std::byte> bytes(block.bytes);
      file.read_at(block.offset, bytes.data(), bytes.size());
      if (!file.problem.empty()) break;
      if (hash_bytes(bytes.data(), bytes.size()) != block.checksum)
        return text(path, " is damaged: the checksum of block ", i, " is wrong");
      reader in(bytes);
      auto& entries = mine.emplace_back();
      entries.reserve(std::min(block.entries, block.bytes));
      std::string unreadable = problem_of([&] {
        while (entries.size() < block.entries) {
          auto key = in.read<K>();
          entries.emplace_back(std::move(key), in.read<V>());
        }
        return in.left() == 0 ? std::string() : text(in.left(), " bytes are left of it");
      });
      if (!unreadable.empty())
        return text(path, ": block ", i, " does not hold entries of this map: ", unreadable);
    }
    return file.problem;
  });
  agree(over, what, problem, unchanged);
  if (broadcast(identity, 0, over) != identity)
    problem = path + " is another file than the one that rank " +
              std::to_string(over.world_rank(0)) +
              " has read: it was replaced meanwhile, or lies in a folder of this machine only";
  agree(over, what, problem, unchanged);

  make_room(all_entries, mine);
  do_together(
      over, what + " of some of the file's entries",
      [&] {
        for (const auto& entries : mine) add(std::span<const entry>(entries));
      },
      [] {});
  barrier(over);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::pair_file
