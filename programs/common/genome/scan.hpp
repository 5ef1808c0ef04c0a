// Finding the sequences in FASTQ and FASTA text.
//
// A scanner calls `sink(bases, n)` for pieces of sequences, in which anything but acgtACGT ends a
// k-mer, and `poll()`, which returns whether to go on, once in a while. k-mers that begin in one
// piece are whole in it. They throw `bad_record`.
#pragma once

#include "text_source.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace genome {

/// Record 1 is the first one that was scanned.
struct bad_record {
  std::uint64_t record;
  std::string text;
};

/// A line without its end; `next` is where the following one begins.
struct line {
  const char* begin;
  std::size_t size;
  std::size_t next;
};

/// The line that begins `at` bytes into the window, which moves if it has to read. Size npos: the
/// text ends at or before that place.
inline constexpr std::size_t no_line = ~std::size_t{0};
inline line line_at(text_window& text, std::size_t at) {
  std::size_t looked = at;
  for (;;) {
    const char* found = nullptr;
    if (looked < text.size())
      found =
          static_cast<const char*>(std::memchr(text.begin() + looked, '\n', text.size() - looked));
    std::size_t end = found ? static_cast<std::size_t>(found - text.begin()) : text.size();
    if (!found) {
      looked = text.size();
      if (text.more()) continue;
      if (at >= text.size()) return {text.end(), no_line, text.size()};
    }
    std::size_t size = end - at;
    if (size > 0 && text.begin()[end - 1] == '\r') --size;
    return {text.begin() + at, size, found ? end + 1 : end};
  }
}

/// Whether nothing but ends of lines follows.
inline bool only_blank_lines(text_window& text) {
  for (;;) {
    for (const char* c = text.begin(); c != text.end(); ++c)
      if (*c != '\n' && *c != '\r') return false;
    text.skip(text.size());
    if (!text.more()) return true;
  }
}

/// A record at the beginning of the window, not yet skipped.
struct fastq_record {
  std::size_t sequence, size;  ///< in the window
  std::size_t bytes;           ///< of the whole record
  std::string joined;          ///< the sequence, if it takes several lines
};

/// The rest of a record whose sequence goes on at `next`, after its first line: lines up to one
/// that begins with '+', then as many characters of quality as there are bases. Text as
/// look_at_fastq.
inline std::string join_fastq(text_window& text, std::size_t next, fastq_record& found) {
  found.joined.assign(text.begin() + found.sequence, found.size);
  for (;;) {
    line more = line_at(text, next);
    if (more.size == no_line) return "the file ends after the sequence: the record is truncated";
    next = more.next;
    char first = more.size == 0 ? '\0' : *more.begin;
    if (first == '+') break;
    if (first == '@' || first == '>')
      return "no line that begins with '+' follows the sequence of this FASTQ record";
    found.joined.append(more.begin, more.size);
  }
  std::size_t quality = 0;
  while (quality < found.joined.size()) {
    line more = line_at(text, next);
    if (more.size == no_line)
      return far::text("the file ends after ", quality, " characters of quality for ",
                       found.joined.size(), " bases: the record is truncated");
    next = more.next;
    quality += more.size;
  }
  if (quality > found.joined.size())
    return far::text("the quality has more characters than the sequence, which has ",
                     found.joined.size());
  found.bytes = next;
  return {};
}

/// Empty text if there is one; else what is wrong.
inline std::string look_at_fastq(text_window& text, fastq_record& found) {
  line header = line_at(text, 0);
  if (header.size == no_line || header.begin[0] != '@')
    return "a FASTQ record begins with a line '@NAME', this one does not";
  line sequence = line_at(text, header.next);
  if (sequence.size == no_line) return "the file ends after the name: the record is truncated";
  found.sequence = header.next;
  found.size = sequence.size;
  line separator = line_at(text, sequence.next);
  if (separator.size == no_line) return "the file ends after the sequence: the record is truncated";
  if (separator.size == 0 || separator.begin[0] != '+')
    return join_fastq(text, sequence.next, found);
  line quality = line_at(text, separator.next);
  if (quality.size == no_line) {
    if (found.size != 0) return "the file ends before the quality: the record is truncated";
    quality.size = 0;
  }
  if (quality.size != found.size)
    return far::text("the quality has ", quality.size, " characters, the sequence ", found.size);
  found.bytes = quality.next;
  return {};
}

/// Records that begin before `stop`. Returns how many.
template <class Sink, class Poll>
std::uint64_t scan_fastq(text_window& text, std::uint64_t stop, Sink&& sink, Poll&& poll) {
  std::uint64_t records = 0;
  std::size_t since_poll = 0;
  fastq_record found;
  try {
    while (text.offset() < stop && (text.size() > 0 || text.more())) {
      found.joined.clear();
      std::string wrong = look_at_fastq(text, found);
      if (!wrong.empty()) {
        if (only_blank_lines(text)) break;
        throw bad_record{records + 1, wrong};
      }
      if (found.joined.empty())
        sink(text.begin() + found.sequence, found.size);
      else
        sink(found.joined.data(), found.joined.size());
      text.skip(found.bytes);
      ++records;
      since_poll += found.bytes;
      if (since_poll > std::size_t{1} << 17) {
        since_poll = 0;
        if (!poll(records)) break;
      }
    }
  } catch (const failure& e) {
    throw bad_record{records + 1, e.what()};
  }
  return records;
}

/// Moves to the first record of four lines that begins here or later: a line '@...' whose second
/// next line begins with '+' (a line of qualities may begin with '@', but two lines after it comes
/// a sequence). Where sequences take several lines this may be wrong, or find nothing: the
/// rank that scans the text before will come to another place.
inline void find_fastq_record(text_window& text) {
  line current = line_at(text, 0);
  while (current.size != no_line) {
    if (current.size > 0 && *current.begin == '@') {
      line sequence = line_at(text, current.next);
      if (sequence.size != no_line) {
        line separator = line_at(text, sequence.next);
        if (separator.size != no_line && separator.size > 0 && *separator.begin == '+') return;
      }
      current = line_at(text, 0);
    }
    text.skip(current.next);
    current = line_at(text, 0);
  }
  text.skip(text.size());
}

/// Sequences of any number of lines; the text begins with a line (`line_begins`) or in the middle
/// of a line of a sequence. Those k-mers that begin before `stop`. Returns how many records begin
/// there.
template <class Sink, class Poll>
std::uint64_t scan_fasta(text_window& text, bool line_begins, std::uint64_t stop, unsigned k,
                         Sink&& sink, Poll&& poll) {
  constexpr std::size_t piece = std::size_t{1} << 16;
  std::vector<char> bases;
  bases.reserve(piece + k);
  std::uint64_t records = 0;
  auto send = [&](bool more_follow) {
    if (bases.size() >= k) sink(bases.data(), bases.size());
    std::size_t keep = more_follow ? std::min<std::size_t>(bases.size(), k - 1) : 0;
    bases.erase(bases.begin(), bases.end() - static_cast<std::ptrdiff_t>(keep));
  };
  std::size_t beyond = 0;  // bases at or after `stop`: the k-mers before it need k - 1
  bool header = false, go_on = true;
  try {
    while (go_on && (text.size() > 0 || text.more())) {
      if (text.offset() >= stop && (header || beyond + 1 >= k)) break;
      if (line_begins && *text.begin() == '>') {
        send(false);
        if (text.offset() >= stop) return records;
        header = true;
        ++records;
      }
      const char* newline = static_cast<const char*>(std::memchr(text.begin(), '\n', text.size()));
      std::size_t n = newline ? static_cast<std::size_t>(newline - text.begin()) : text.size();
      if (!header) {
        if (text.offset() < stop) n = std::min<std::uint64_t>(n, stop - text.offset());
        n = std::min(n, piece + k - bases.size());
        if (text.offset() >= stop) n = std::min(n, k - 1 - beyond);
        std::size_t good = n > 0 && text.begin()[n - 1] == '\r' ? n - 1 : n;
        if (text.offset() >= stop) beyond += good;
        bases.insert(bases.end(), text.begin(), text.begin() + good);
        if (bases.size() >= piece) send(true), go_on = poll(records);
      }
      line_begins = newline == text.begin() + n;
      if (line_begins) header = false;
      text.skip(n + (line_begins ? 1 : 0));
    }
  } catch (const failure& e) {
    throw bad_record{records, e.what()};
  }
  send(false);
  return records;
}

}  // namespace genome
