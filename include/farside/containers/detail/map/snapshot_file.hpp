// The file of a saved hash map, which can be loaded on another number of ranks.
//
//   | header | kinds of keys and values, in words | block 0 | block 1 | ... | index |
//
// Blocks hold serialized pairs; the index has {offset, bytes, entries, checksum} of each. Blocks
// and index leave no gap and nothing behind them. The header has a checksum of itself and of the
// words, one of the index, and the length of all, so that every byte is covered: a file that was
// damaged or cut off anywhere is told from the one that was saved. Checksums find accidents, not
// forgeries.
#pragma once

#include <farside/containers/detail/map/kinds.hpp>
#include <farside/core/collectives.hpp>
#include <farside/core/detail/file_size_limit.hpp>
#include <farside/core/draft.hpp>
#include <farside/core/hash.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::map {

struct file_header {
  char magic[8] = {'\n', 'F', 'A', 'R', 'M', 'A', 'P', '2'};  ///< the last one: of the format
  std::uint64_t kinds = 0;                                    ///< bytes of words behind the header
  std::uint64_t file_bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t blocks = 0;
  std::uint64_t index = 0;  ///< where it begins
  std::uint64_t index_checksum = 0;
  std::uint64_t checksum = 0;  ///< of all above, and of the words

  std::uint64_t checksum_with(const std::string& words) const {
    return hash_append(hash_bytes(this, offsetof(file_header, checksum)),
                       hash_bytes(words.data(), words.size()));
  }
};

struct file_block {
  std::uint64_t offset, bytes, entries, checksum;
};

/// A file that is open. Calls that fail leave a message in `problem`, and do nothing if there is
/// one already.
class open_file {
 public:
  /// For reading, closed at the end. Not to be waited for: somebody may mean a FIFO.
  explicit open_file(const std::string& path)
      : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), own_(true) {
    struct stat status{};
    if (fd_ < 0)
      fail("cannot open");
    else if (fstat(fd_, &status) != 0)
      fail("cannot look at");
    else if (!S_ISREG(status.st_mode))
      problem = "cannot read " + path + ": it is no regular file";
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  /// A draft of `path`, for writing.
  open_file(const std::string& path, int descriptor) : path_(path), fd_(descriptor) {}
  ~open_file() {
    if (own_ && fd_ >= 0) close(fd_);
  }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  void write_at(std::uint64_t offset, const void* from, std::size_t bytes) {
    file_size_limit_as_error limit;
    auto* at = static_cast<const char*>(from);
    while (problem.empty() && bytes != 0) {
      ssize_t n = pwrite(fd_, at, bytes, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return fail("cannot write to");
      at += n, offset += static_cast<std::uint64_t>(n), bytes -= static_cast<std::size_t>(n);
    }
  }
  void read_at(std::uint64_t offset, void* to, std::size_t bytes) {
    auto* at = static_cast<char*>(to);
    while (problem.empty() && bytes != 0) {
      ssize_t n = pread(fd_, at, bytes, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail("cannot read");
      if (n == 0) {
        problem =
            text(path_, " became shorter while it was read: it ends after ", offset, " bytes");
        return;
      }
      at += n, offset += static_cast<std::uint64_t>(n), bytes -= static_cast<std::size_t>(n);
    }
  }
  void sync() {
    if (problem.empty() && fsync(fd_) != 0 && errno != EINVAL) fail("cannot write to");
  }
  std::uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  void fail(const char* what) { problem = text(what, " ", path_, ": ", std::strerror(errno)); }

  std::string problem;

 private:
  std::string path_;
  int fd_;
  bool own_ = false;
  std::uint64_t size_ = 0;
};

/// What a file says of itself. Empty if it has a problem.
struct file_contents {
  file_header header{};
  std::vector<file_block> blocks;

  /// Reads all but the blocks, and believes nothing that does not fit the length of the file.
  file_contents(open_file& from, const std::string& wanted_kinds) {
    if (from.problem.empty()) from.problem = read(from, wanted_kinds);
    if (!from.problem.empty()) blocks.clear();
  }

 private:
  std::string read(open_file& from, const std::string& wanted_kinds) {
    const std::string& path = from.path();
    const std::uint64_t size = from.size();
    const file_header known;
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

/// Does what may fail on this member alone; returns why it did. The death of another rank is not
/// such a failure.
template <class Work>
std::string problem_of(Work work) {
  try {
    return work();
  } catch (const rank_failure&) {
    throw;
  } catch (const std::bad_alloc&) {
    return "has not enough memory";
  } catch (const std::exception& e) {
    std::string_view words = e.what();
    if (words.starts_with("farside: ")) words.remove_prefix(9);
    return std::string(words);
  }
}

/// Collective: throws on all members if one of them has a problem. `state` says what has become of
/// things.
inline void agree(const team& over, const std::string& what, const std::string& problem,
                  const char* state) {
  std::string mine =
      problem.empty() ? "" : text("rank ", over.world_rank(over.rank()), ": ", problem);
  std::string first = first_problem(mine, over);
  if (!first.empty()) raise<error>(what, ": ", first, ". ", state);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map
