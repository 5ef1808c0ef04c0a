// hash_map: save and load (the format: file.hpp).
#pragma once

#include <farside/containers/hash_map.hpp>

namespace far::inline FARSIDE_BACKEND {

template <class K, class V, class Hash, class Probing>
void hash_map<K, V, Hash, Probing>::save(const std::string& path) const {
  using namespace detail::map;
  engine& e = *state_;
  auto note = detail::calling<"hash_map::save">(e);
  barrier(e.members);
  constexpr std::size_t block_bytes = std::size_t{1} << 20;
  const std::string what = "hash_map '" + e.label + "' save(" + path + ")";
  constexpr const char* unchanged = "A file of that name is as it was.";
  const bool first = e.members.rank() == 0;

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
      blocks.push_back(
          {mine, block.size(), pending, detail::hash_bytes(block.data(), block.size())});
      mine += block.size();
      pending = 0;
    };
    for (const auto& [key, value] : *this) {
      out << key << value;
      ++entries, ++pending;
      if (out.size() >= block_bytes) end_block();
    }
    if (pending != 0) end_block();
    return first ? objection_to_writing(path) : std::string();
  });
  agree(e.members, what, problem, unchanged);

  const std::string kinds = kinds_of<K, V>();
  file_header header;
  header.kinds = kinds.size();
  header.entries = all_reduce(entries, std::plus<>(), e.members);
  const std::uint64_t begin = sizeof header + kinds.size();
  const std::uint64_t before =
      begin + exclusive_scan(mine, std::uint64_t{0}, std::plus<>(), e.members);
  header.index = begin + all_reduce(mine, std::plus<>(), e.members);
  for (auto& block : blocks) block.offset += before;

  far::draft draft(e.members);
  problem = draft.create(path);
  if (!problem.empty())
    detail::raise<error>(what, ": cannot write ", path, ": ", problem, ". ", unchanged);
  auto all_blocks = gather(blocks, 0, e.members);
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
      header.index_checksum = detail::hash_bytes(index.data(), index_bytes);
      header.checksum = header.checksum_with(kinds);
      file.write_at(header.index, index.data(), index_bytes);
      file.write_at(sizeof header, kinds.data(), kinds.size());
      file.write_at(0, &header, sizeof header);
    }
    file.sync();
    return file.problem;
  });
  agree(e.members, what, problem, unchanged);
  problem = draft.publish();
  if (!problem.empty())
    detail::raise<error>(what, ": cannot write ", path, ": ", problem, ". ", unchanged);
}

template <class K, class V, class Hash, class Probing>
void hash_map<K, V, Hash, Probing>::load(const std::string& path) {
  using namespace detail::map;
  engine& e = *state_;
  auto note = detail::calling<"hash_map::load">(e);
  const std::string what = "hash_map '" + e.label + "' load(" + path + ")";
  constexpr const char* unchanged = "The map is as it was before.";

  // All of it is read, checked and unpacked before the map changes.
  std::uint64_t identity = 0, all_entries = 0;
  std::vector<std::vector<value_type>> mine;
  std::string problem = problem_of([&] {
    open_file file(path);
    file_contents contents(file, kinds_of<K, V>());
    identity = contents.header.checksum;
    all_entries = contents.header.entries;
    for (std::size_t i = e.members.rank(); i < contents.blocks.size() && file.problem.empty();
         i += e.members.size()) {
      const file_block& block = contents.blocks[i];
      std::vector<std::byte> bytes(block.bytes);
      file.read_at(block.offset, bytes.data(), bytes.size());
      if (!file.problem.empty()) break;
      if (detail::hash_bytes(bytes.data(), bytes.size()) != block.checksum)
        return text(path, " is damaged: the checksum of block ", i, " is wrong");
      reader in(bytes);
      auto& entries = mine.emplace_back();
      entries.reserve(std::min(block.entries, block.bytes));
      std::string unreadable = problem_of([&] {
        while (entries.size() < block.entries) {
          K key = in.read<K>();
          entries.emplace_back(std::move(key), in.read<V>());
        }
        return in.left() == 0 ? std::string() : text(in.left(), " bytes are left of it");
      });
      if (!unreadable.empty())
        return text(path, ": block ", i, " does not hold entries of this map: ", unreadable);
    }
    return file.problem;
  });
  agree(e.members, what, problem, unchanged);
  if (broadcast(identity, 0, e.members) != identity)
    problem = path + " is another file than the one that rank " +
              std::to_string(e.members.world_rank(0)) +
              " has read: it was replaced meanwhile, or lies in a folder of this machine only";
  agree(e.members, what, problem, unchanged);

  reserve(all_entries);
  problem = problem_of([&] {
    for (const auto& entries : mine) insert_or_assign(std::span<const value_type>(entries));
    return std::string();
  });
  agree(e.members, what, problem, "The map has some of the file's entries.");
  barrier(e.members);
}

}  // namespace far::inline FARSIDE_BACKEND
