// A file of pairs of keys and values, which a hash map or a store has saved and can be loaded on
// another number of ranks.
//
//   | header | kinds of keys and values, in words | block 0 | block 1 | ... | index |
//
// Blocks hold serialized pairs; the index has {offset, bytes, entries, checksum} of each. Blocks
// and index leave no gap and nothing behind them. The header has a checksum of itself and of the
// words, one of the index, and the length of all, so that every byte is covered: a file that was
// damaged or cut off anywhere is told from the one that was saved. Checksums find accidents, not
// forgeries.
#pragma once

#include <farside/core/detail/checked_file.hpp>
#include <farside/core/detail/type_words.hpp>
#include <farside/core/draft.hpp>
#include <farside/core/hash.hpp>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::pair_file {

struct header {
  char magic[8] = {'\n', 'F', 'A', 'R', 'M', 'A', 'P', '2'};  ///< the last one: of the format
  std::uint64_t kinds = 0;                                    ///< bytes of words behind the header
  std::uint64_t file_bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t blocks = 0;
  std::uint64_t index = 0;  ///< where it begins
  std::uint64_t index_checksum = 0;
  std::uint64_t checksum = 0;  ///< of all above, and of the words

  std::uint64_t checksum_with(const std::string& words) const {
    return hash_append(hash_bytes(this, offsetof(header, checksum)),
                       hash_bytes(words.data(), words.size()));
  }
};

/// What a file says of itself. Empty if it has a problem.
struct contents {
  pair_file::header header{};
  std::vector<file_block> blocks;

  /// Reads all but the blocks, and believes nothing that does not fit the length of the file.
  contents(open_file& from, const std::string& wanted_kinds) {
    if (from.problem.empty()) from.problem = read(from, wanted_kinds);
    if (!from.problem.empty()) blocks.clear();
  }

 private:
  std::string read(open_file& from, const std::string& wanted_kinds) {
    const std::string& path = from.path();
    const std::uint64_t size = from.size();
    const pair_file::header known;
    if (size < sizeof header) return path + " is not a saved hash_map: it is too short";
    from.read_at(0, &header, sizeof header);
    if (!from.problem.empty()) return from.problem;
    if (std::memcmp(header.magic, known.magic, sizeof known.magic - 1) != 0)
      return path + " is not a saved hash_map";
    if (char format = header.magic[7]; format == '1')
      return path +
             " has format 1, of an earlier version of farside, and this one reads format 2. Save "
             "the map again by a program that is built with this version";
    else if (format != known.magic[7])
      return path + " has another format than 2, the one that this version of farside reads";

    if (header.kinds > size - sizeof header) return path + " is damaged: its header is not whole";
    std::string kinds(header.kinds, ' ');
    from.read_at(sizeof header, kinds.data(), kinds.size());
    if (!from.problem.empty()) return from.problem;
    if (header.checksum != header.checksum_with(kinds))
      return path + " is damaged: the checksum of its header is wrong";
    if (size < header.file_bytes)
      return text(path, " was cut off: it has ", size, " of ", header.file_bytes, " bytes");
    if (size > header.file_bytes)
      return text(path, " is damaged: it has ", size - header.file_bytes,
                  " bytes more than were saved");
    for (char letter : kinds)
      if (letter < ' ' || letter > '~') return path + " is damaged: its header is not whole";
    if (kinds != wanted_kinds)
      return text(path, " holds keys and values of other types: ", kinds, ", not ", wanted_kinds);

    const std::uint64_t begin = sizeof header + kinds.size();
    if (header.index < begin || header.index > size ||
        (size - header.index) % sizeof(file_block) != 0 ||
        (size - header.index) / sizeof(file_block) != header.blocks)
      return path + " is damaged: its index is not where it should be";
    blocks.resize(header.blocks);
    from.read_at(header.index, blocks.data(), blocks.size() * sizeof(file_block));
    if (!from.problem.empty()) return from.problem;
    if (hash_bytes(blocks.data(), blocks.size() * sizeof(file_block)) != header.index_checksum)
      return path + " is damaged: the checksum of its index is wrong";
    std::uint64_t end = begin, entries = 0;
    for (const file_block& block : blocks) {
      if (block.offset != end || block.bytes > header.index - end)
        return path + " is damaged: its blocks do not lie where its index says";
      end += block.bytes;
      entries += block.entries;
    }
    if (end != header.index || entries != header.entries)
      return path + " is damaged: its blocks are not all that was saved";
    return {};
  }
};

}  // namespace far::inline FARSIDE_BACKEND::detail::pair_file
