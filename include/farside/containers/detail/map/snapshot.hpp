// Saving and loading a hash map (the format: snapshot_file.hpp).
#pragma once

#include <farside/containers/detail/map/hash_map_impl.hpp>
#include <farside/containers/detail/map/iteration.hpp>
#include <farside/containers/detail/map/snapshot_file.hpp>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// Collective. `Iterator` goes over the entries of a member.
template <class Core, class Iterator = iterator<Core>>
void save(Core& m, const std::string& path) {
  auto note = calling<"hash_map::save">(m);
  barrier(m.members);
  constexpr std::size_t block_bytes = std::size_t{1} << 20;
  const std::string what = m.full_name() + " save(" + path + ")";
  constexpr const char* unchanged = "A file of that name is as it was.";
  const bool first = m.members.rank() == 0;

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
    for (Iterator at(m, m.members.rank(), 1); at != Iterator(); ++at) {
      const auto& [key, value] = *at;
      out << key << value;
      ++entries, ++pending;
      if (out.size() >= block_bytes) end_block();
    }
    if (pending != 0) end_block();
    return first ? objection_to_writing(path) : std::string();
  });
  agree(m.members, what, problem, unchanged);

  using entry = typename Iterator::value_type;
  const std::string kinds = kinds_of<typename entry::first_type, typename entry::second_type>();
  file_header header;
  header.kinds = kinds.size();
  header.entries = all_reduce(entries, std::plus<>(), m.members);
  const std::uint64_t begin = sizeof header + kinds.size();
  const std::uint64_t before =
      begin + exclusive_scan(mine, std::uint64_t{0}, std::plus<>(), m.members);
  header.index = begin + all_reduce(mine, std::plus<>(), m.members);
  for (auto& block : blocks) block.offset += before;

  far::draft draft(m.members);
  problem = draft.create(path);
  if (!problem.empty()) raise<error>(what, ": cannot write ", path, ": ", problem, ". ", unchanged);
  auto all_blocks = gather(blocks, 0, m.members);
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
  agree(m.members, what, problem, unchanged);
  problem = draft.publish();
  if (!problem.empty()) raise<error>(what, ": cannot write ", path, ": ", problem, ". ", unchanged);
}

/// Collective. `add` adds a span of entries.
template <class V, class Core, class Add>
void load(Core& m, const std::string& path, Add add) {
  using entry = std::pair<typename Core::K, V>;
  auto note = calling<"hash_map::load">(m);
  const std::string what = m.full_name() + " load(" + path + ")";
  constexpr const char* unchanged = "The map is as it was before.";

  // All of it is read, checked and unpacked before the map changes.
  std::uint64_t identity = 0, all_entries = 0;
  std::vector<std::vector<entry>> mine;
  std::string problem = problem_of([&] {
    open_file file(path);
    file_contents contents(file, kinds_of<typename Core::K, V>());
    identity = contents.header.checksum;
    all_entries = contents.header.entries;
    for (std::size_t i = m.members.rank(); i < contents.blocks.size() && file.problem.empty();
         i += m.members.size()) {
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
          auto key = in.read<typename Core::K>();
          entries.emplace_back(std::move(key), in.read<V>());
        }
        return in.left() == 0 ? std::string() : text(in.left(), " bytes are left of it");
      });
      if (!unreadable.empty())
        return text(path, ": block ", i, " does not hold entries of this map: ", unreadable);
    }
    return file.problem;
  });
  agree(m.members, what, problem, unchanged);
  if (broadcast(identity, 0, m.members) != identity)
    problem = path + " is another file than the one that rank " +
              std::to_string(m.members.world_rank(0)) +
              " has read: it was replaced meanwhile, or lies in a folder of this machine only";
  agree(m.members, what, problem, unchanged);

  reserve(m, all_entries);
  problem = problem_of([&] {
    for (const auto& entries : mine) add(std::span<const entry>(entries));
    return std::string();
  });
  agree(m.members, what, problem, "The map has some of the file's entries.");
  barrier(m.members);
}

/// Collective: the entries become those of a map.
template <class Core>
void load(const fast_handle& tables, const container_handle<Core>& state, const std::string& path) {
  using V = typename Core::V;
  load<V>(*state, path, [&](std::span<const std::pair<typename Core::K, V>> entries) {
    update_many(tables, state, assign_there(), entries, concurrency::everything);
  });
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map
