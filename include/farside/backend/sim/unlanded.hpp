// Which reads came before a put that had been issued earlier: what a forgotten flush looks like.
// Kept while a run goes on, and shown if it fails.
#pragma once

#include <farside/backend/concept.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

/// A place in the source of the program; no line: not known.
struct source_place {
  const char* file = nullptr;
  std::uint32_t line = 0;

  std::string text() const {
    return line == 0 ? "" : " at " + std::string(file) + ":" + std::to_string(line);
  }
};

/// Where the program calls the next operation of the rank that runs, if that is known. The
/// operation takes it.
inline source_place next_place;

class unlanded_reads {
 public:
  struct read {
    rank_t reader, origin, target;
    std::size_t offset, bytes;  ///< of the put
    std::uint64_t number, issued, step;
    source_place put_at, read_at;
  };

  /// One that polls meets the same put many times: the last time counts. Containers read while puts
  /// are under way, and know what to do then: theirs are kept apart from the program's own.
  void add(const read& one) {
    list& to = one.put_at.line != 0 ? of_program_ : others_;
    for (read& old : to.kept)
      if (old.step != 0 && old.number == one.number && old.origin == one.origin &&
          old.reader == one.reader) {
        old = one;
        return;
      }
    to.kept[to.next++ % to.kept.size()] = one;
  }
  void forget() { *this = {}; }

  /// Those of one rank, if it is known whose reads matter and it has some; else all that are kept.
  void show(std::FILE* to, std::optional<rank_t> of) const {
    for (const list* which : {&of_program_, &others_})
      for (std::optional<rank_t> reader : {of, std::optional<rank_t>()})
        if (show(to, *which, reader)) return;
  }

 private:
  struct list {
    std::array<read, 8> kept{};  ///< step 0: none
    std::size_t next = 0;
  };

  static bool show(std::FILE* to, const list& which, std::optional<rank_t> of) {
    bool any = false;
    for (std::size_t i = 0; i < which.kept.size(); ++i) {
      const read& one = which.kept[(which.next + i) % which.kept.size()];
      if (one.step == 0 || (of && one.reader != *of)) continue;
      if (!any)
        std::fprintf(to,
                     "sim: puts that had not landed when they were read (is there a far::flush "
                     "missing, or a far::barrier?):\n");
      any = true;
      std::fprintf(to,
                   "  put #%llu of rank %u%s (%zu B to rank %u +0x%zx, step %llu) had not landed "
                   "when rank %u read it%s (step %llu)\n",
                   wide(one.number), one.origin, one.put_at.text().c_str(), one.bytes, one.target,
                   one.offset, wide(one.issued), one.reader, one.read_at.text().c_str(),
                   wide(one.step));
    }
    return any;
  }
  static unsigned long long wide(std::uint64_t n) { return n; }

  list of_program_, others_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend
