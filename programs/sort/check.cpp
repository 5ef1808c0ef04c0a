// Is a file sorted, and is it the file that it was made from?

#include <sort/file.hpp>
#include <sort/options.hpp>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <vector>

namespace programs {

namespace {

constexpr std::uint64_t nowhere = ~std::uint64_t{0};

/// The sums that --check prints are made of this: users compare them with those of earlier runs, so it stays as it is.
std::uint64_t hash_of(const std::byte* bytes, std::size_t n) {
  std::uint64_t hash = n, word;
  for (; n > 0;) {
    std::size_t some = std::min(n, sizeof word);
    word = 0;
    std::memcpy(&word, bytes, some);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
    bytes += some, n -= some;
  }
  hash *= 0xbf58476d1ce4e5b9u;
  return hash ^ (hash >> 32);
}

/// The keys and bytes of a rank's share of a file.
struct slice {
  share mine;
  big_array<std::byte> records;
  big_array<std::uint64_t> keys;

  slice(const input_file& file, const record_form& form)
      : mine(share_of(file, form)), records(mine.count * form.size), keys(mine.count) {
    file.read(mine.first * form.size, {records.begin(), records.end()});
    with_key(form.type, [&](auto key) {
      for (std::size_t i = 0; i < keys.size(); ++i)
        keys[i] = key.read(records.data() + i * form.size + form.offset);
    });
  }
  std::uint64_t end() const { return mine.first + mine.count; }
};

std::uint64_t key_at(const input_file& file, const record_form& form, std::uint64_t position) {
  std::byte raw[8];
  file.read(position * form.size + form.offset, {raw, bytes_of(form.type)});
  return with_key(form.type, [&](auto key) -> std::uint64_t { return key.read(raw); });
}

/// Collective: a sum over the records of all ranks that does not depend on their order.
std::uint64_t sum_of(const slice& part, const record_form& form) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < part.mine.count; ++i)
    sum += hash_of(part.records.data() + i * form.size, form.size);
  return far::all_reduce(sum);
}

/// Collective: the first record that is smaller than the one before it.
std::uint64_t first_disorder(const input_file& file, const slice& part, const record_form& form) {
  std::uint64_t found = nowhere;
  auto wrong = std::is_sorted_until(part.keys.begin(), part.keys.end());
  if (wrong != part.keys.end())
    found = part.mine.first + static_cast<std::uint64_t>(wrong - part.keys.begin());
  if (part.mine.count > 0 && part.mine.first > 0 &&
      part.keys[0] < key_at(file, form, part.mine.first - 1))
    found = part.mine.first;
  return far::all_reduce(found, far::minimum());
}

/// Where the records with the key of this part's first begin, maybe at another rank's.
std::uint64_t begin_of_first_run(const input_file& sorted, const slice& part,
                                 const record_form& form) {
  std::uint64_t low = 0, high = part.mine.first;
  while (low < high) {
    std::uint64_t middle = low + (high - low) / 2;
    if (key_at(sorted, form, middle) < part.keys[0])
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// The first record of the part that is not what a stable sort of `from` has there. Goes through
/// all of `from` in its order: the i-th record with some key belongs at the i-th place of that key.
std::uint64_t first_unstable(const input_file& from, const input_file& sorted, const slice& part,
                             const record_form& form) {
  if (part.mine.count == 0) return nowhere;
  std::uint64_t run = begin_of_first_run(sorted, part, form), found = nowhere;
  big_array<std::uint64_t> met(part.mine.count);  // by the first of a run
  std::fill(met.begin(), met.end(), 0);
  std::size_t at_once = std::max<std::size_t>(1, (std::size_t{4} << 20) / form.size);
  std::vector<std::byte> block;
  std::uint64_t all = from.size() / form.size;
  for (std::uint64_t first = 0; first < all; first += at_once) {
    block.resize(static_cast<std::size_t>(std::min<std::uint64_t>(at_once, all - first)) *
                 form.size);
    from.read(first * form.size, block);
    with_key(form.type, [&](auto key) {
      for (std::size_t i = 0; i < block.size(); i += form.size) {
        std::uint64_t bits = key.read(block.data() + i + form.offset);
        auto at = std::lower_bound(part.keys.begin(), part.keys.end(), bits);
        if (at == part.keys.end() || *at != bits) continue;
        auto begin = static_cast<std::uint64_t>(at - part.keys.begin());
        std::uint64_t place = (begin == 0 ? run : part.mine.first + begin) + met[begin]++;
        if (place < part.mine.first || place >= part.end()) continue;
        const std::byte* there = part.records.data() + (place - part.mine.first) * form.size;
        if (std::memcmp(there, block.data() + i, form.size) != 0) found = std::min(found, place);
      }
    });
  }
  return found;
}

}  // namespace

void check_file(const sort_options& options) {
  const record_form& form = options.form;
  input_file file("sort", options.check);
  slice part(file, form);
  std::string said, against = options.input;
  if (auto at = first_disorder(file, part, form); at != nowhere)
    refuse("sort", file.path(), ": not sorted: record ", at, " is smaller than the one before it");
  std::uint64_t sum = sum_of(part, form);
  if (!against.empty()) {
    input_file from("sort", against);
    if (from.size() != file.size())
      refuse("sort", file.path(), ": has ", file.size(), " bytes, and ", against, " has ",
             from.size());
    if (sum_of(slice(from, form), form) != sum)
      refuse("sort", file.path(), ": sorted, but its records are not those of ", against);
    // Numbers that are equal are the same: their order does not show.
    auto at = form.bare ? nowhere : first_unstable(from, file, part, form);
    at = far::all_reduce(at, far::minimum());
    if (at != nowhere)
      refuse("sort", file.path(), ": sorted, but not stable: record ", at,
             " is another one of those with its key in ", against);
    said = ", and those of " + against + " in their order";
  }
  if (far::rank() == 0)
    std::printf("%s: %" PRIu64 " records, sorted%s; sum %016" PRIx64 "\n", file.path().c_str(),
                part.mine.all, said.c_str(), sum);
}

}  // namespace programs
