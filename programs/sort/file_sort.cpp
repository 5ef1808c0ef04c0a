// Sorting a file: a sample sort. Each rank reads an equal part; splitters taken from a sample of
// all parts say which rank gets which records; those are put where they belong in its memory, in
// the order of the file, so that a stable sort of what arrived is a stable sort of it all.

#include <common/stopwatch.hpp>
#include <sort/file.hpp>
#include <sort/options.hpp>
#include <sort/radix.hpp>
#include <toolkit/table.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <type_traits>
#include <vector>

namespace programs {

namespace {

/// Enough that no rank gets much above its share: with s samples a rank the largest exceeds it by
/// the factor 1 + sqrt(2 ln(ranks) / s) or so, at 1024 and 1000 ranks by an eighth.
std::uint64_t samples_a_rank() {
  return std::max<std::uint64_t>(1024, (std::uint64_t{1} << 15) / far::nprocs());
}

/// Collective. One splitter less than there are ranks: rank i gets what is not below the i-th and
/// below the next.
std::vector<place> choose_splitters(const std::byte* records, const share& mine,
                                    const record_form& form) {
  std::vector<place> sample;
  std::uint64_t n = std::min(samples_a_rank(), mine.count), random = mine.first;
  with_key(form.type, [&](auto key) {
    for (std::uint64_t i = 0; i < n; ++i) {  // one from each n-th part of them
      random = random * 6364136223846793005u + 1442695040888963407u;
      std::uint64_t begin = mine.count * i / n, end = mine.count * (i + 1) / n;
      std::uint64_t at = begin + (random >> 33) % (end - begin);
      sample.push_back({key.read(records + at * form.size + form.offset), mine.first + at});
    }
  });
  std::vector<place> all, splitters;
  for (const auto& some : far::all_gather(sample)) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  for (std::size_t i = 1; i < far::nprocs(); ++i)
    splitters.push_back(all.empty() ? place{} : all[all.size() * i / far::nprocs()]);
  return splitters;
}

/// Which rank gets a record.
class destination {
 public:
  explicit destination(std::vector<place> splitters) : splitters_(std::move(splitters)) {}
  std::size_t operator()(place record) const {
    if (splitters_.size() > 8)
      return static_cast<std::size_t>(
          std::upper_bound(splitters_.begin(), splitters_.end(), record) - splitters_.begin());
    std::size_t rank = 0;
    for (const place& splitter : splitters_)  // no branches to be guessed
      rank += (record.bits > splitter.bits) |
              ((record.bits == splitter.bits) & (record.position >= splitter.position));
    return rank;
  }

 private:
  std::vector<place> splitters_;
};

/// Gathers what goes to one rank, and puts it there in large pieces.
class outlet {
 public:
  outlet(far::ptr<std::byte> to, std::size_t record)
      : to_(to), buffer_(std::max(record, piece / record * record)) {}
  /// `bytes` is a number, or a constant: then it costs a store.
  template <class Bytes>
  void append(const std::byte* record, Bytes bytes) {
    std::memcpy(buffer_.data() + filled_, record, bytes);
    filled_ += bytes;
    if (filled_ == buffer_.size()) flush();
  }
  void flush() {
    if (filled_ == 0) return;
    far::put(to_, buffer_.data(), filled_);
    to_ += static_cast<std::ptrdiff_t>(filled_);
    filled_ = 0;
  }

 private:
  static constexpr std::size_t piece = std::size_t{64} << 10;
  far::ptr<std::byte> to_;
  std::vector<std::byte> buffer_;
  std::size_t filled_ = 0;
};

/// Far memory that ends with its scope.
struct inbox {
  far::ptr<std::uint64_t> words;  ///< so that keys are aligned
  std::uint64_t records = 0;
  explicit inbox(std::uint64_t count, std::size_t size)
      : words(far::alloc<std::uint64_t>(count * size / 8 + 1)), records(count) {}
  inbox(const inbox&) = delete;
  inbox& operator=(const inbox&) = delete;
  ~inbox() { far::dealloc(words); }
  far::ptr<std::byte> bytes() const { return far::pointer_cast<std::byte>(words); }
  std::byte* local() const { return reinterpret_cast<std::byte*>(words.local()); }
};

/// Calls `use(rank, record, size)` for each record, with the rank that gets it.
template <class Use>
void for_each_record(const std::byte* records, const share& mine, const record_form& form,
                     const destination& to, Use use) {
  with_key(form.type, [&](auto key) {
    auto all = [&](auto size) {
      for (std::uint64_t i = 0; i < mine.count; ++i) {
        const std::byte* record = records + i * size;
        use(to(place{key.read(record + form.offset), mine.first + i}), record, size);
      }
    };
    if (form.bare)
      all(std::integral_constant<std::size_t, sizeof(typename decltype(key)::number)>());
    else
      all(form.size);
  });
}

/// Collective. Puts every record where it belongs; returns the memory that holds what this rank
/// gets. Two passes over the records: the first counts how many go where.
std::unique_ptr<inbox> distribute(const std::byte* records, const share& mine,
                                  const record_form& form, const destination& to) {
  std::vector<std::uint64_t> counts(far::nprocs());
  for_each_record(records, mine, form, to,
                  [&](std::size_t rank, const std::byte*, std::size_t) { ++counts[rank]; });
  auto from = far::all_to_all(counts);
  std::vector<std::uint64_t> begins(from.size());
  std::exclusive_scan(from.begin(), from.end(), begins.begin(), std::uint64_t{0});
  auto result = std::make_unique<inbox>(begins.back() + from.back(), form.size);
  auto places = far::all_to_all(begins);
  auto inboxes = far::all_gather(result->bytes());
  std::vector<outlet> outlets;
  for (std::size_t rank = 0; rank < inboxes.size(); ++rank)
    outlets.emplace_back(inboxes[rank] + static_cast<std::ptrdiff_t>(places[rank] * form.size),
                         form.size);
  for_each_record(records, mine, form, to,
                  [&](std::size_t rank, const std::byte* record, auto size) {
                    outlets[rank].append(record, size);
                  });
  for (outlet& out : outlets) out.flush();
  far::barrier();
  return result;
}

constexpr std::size_t written_at_once = std::size_t{4} << 20;

/// Numbers are sorted as they are, in place.
void sort_numbers(const inbox& arrived, const record_form& form, output_file& out,
                  std::uint64_t first, stopwatch& watch) {
  with_key(form.type, [&](auto key) {
    using number = typename decltype(key)::number;
    auto* numbers = reinterpret_cast<number*>(arrived.local());
    std::size_t n = arrived.records;
    for (std::size_t i = 0; i < n; ++i) numbers[i] = key.order(numbers[i]);
    big_array<number> scratch(n);
    number* sorted = radix::sort(numbers, scratch.data(), n, std::identity());
    for (std::size_t i = 0; i < n; ++i) sorted[i] = key.raw(sorted[i]);
    watch.lap("sort");
    out.write(first * sizeof(number), std::as_bytes(std::span(sorted, n)));
  });
}

/// Of records, keys and places are; the records follow when they are written.
void sort_records(const inbox& arrived, const record_form& form, output_file& out,
                  std::uint64_t first, stopwatch& watch) {
  std::size_t n = arrived.records;
  const std::byte* records = arrived.local();
  big_array<place> order(n), scratch(n);
  with_key(form.type, [&](auto key) {
    for (std::size_t i = 0; i < n; ++i)
      order[i] = {key.read(records + i * form.size + form.offset), i};
  });
  const place* sorted =
      radix::sort(order.data(), scratch.data(), n, [](const place& p) { return p.bits; });
  watch.lap("sort");
  std::vector<std::byte> buffer;
  buffer.reserve(std::max(written_at_once, form.size));
  std::uint64_t offset = first * form.size;
  auto write = [&] {
    out.write(offset, buffer);
    offset += buffer.size();
    buffer.clear();
  };
  for (std::size_t i = 0; i < n; ++i) {
    const std::byte* record = records + sorted[i].position * form.size;
    if (buffer.size() + form.size > buffer.capacity()) write();
    buffer.insert(buffer.end(), record, record + form.size);
  }
  write();
}

void show(const stopwatch& watch, std::uint64_t records, std::uint64_t most) {
  toolkit::table shown(toolkit::columns::figures);
  shown.row({"milliseconds of the slowest rank", ""});
  for (const auto& [name, seconds] : watch.laps())
    shown.row({name, milliseconds(far::all_reduce(seconds, far::maximum()))});
  double fair = static_cast<double>(records) / far::nprocs();
  if (far::rank() == 0)
    std::printf("%s  %llu records; the rank with most got %.3f of an equal share\n",
                shown.text("  ").c_str(), static_cast<unsigned long long>(records),
                records == 0 ? 1.0 : static_cast<double>(most) / fair);
}

}  // namespace

void sort_file(const sort_options& options) {
  stopwatch watch;
  input_file in("sort", options.input);
  share mine = share_of(in, options.form);
  output_file out("sort", options.output, in.size());
  std::unique_ptr<inbox> arrived;
  {
    big_array<std::byte> records(mine.count * options.form.size);
    in.read(mine.first * options.form.size, {records.begin(), records.end()});
    watch.lap("read");
    destination to(choose_splitters(records.data(), mine, options.form));
    watch.lap("choose splitters");
    arrived = distribute(records.data(), mine, options.form, to);
    watch.lap("exchange");
  }
  std::uint64_t first = far::exclusive_scan(arrived->records);
  if (options.form.bare)
    sort_numbers(*arrived, options.form, out, first, watch);
  else
    sort_records(*arrived, options.form, out, first, watch);
  out.finish();
  watch.lap("write");
  std::uint64_t most = far::all_reduce(arrived->records, far::maximum());
  if (options.times) show(watch, mine.all, most);
}

}  // namespace programs
