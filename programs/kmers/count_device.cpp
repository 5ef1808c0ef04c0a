// Counting in device memory. Each rank reads its share of the files, and sends the bases, a line's end after
// each sequence, to its device in pieces; a kernel makes a k-mer of each place and counts it in one map over
// all devices. While one piece is counted the next one is read. Compiled by nvcc where the build is for GPUs.
#include <farside/device.hpp>

#include <common/genome/histogram.hpp>
#include <common/genome/input.hpp>
#include <common/genome/output_file.hpp>
#include <common/genome/progress.hpp>
#include "job.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace counting_on_device {

using u64 = std::uint64_t;
using map_type = far::device_hash_map<u64, u64>;

/// The k-mer that begins at a place, if there are k bases: what comes first, it or its reverse
/// complement.
struct count_places {
  far::device_map_ref<u64, u64> map;
  far::device_ptr<const unsigned char> bases;
  far::device_ptr<u64> refused;
  unsigned k;

  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, std::size_t i) const {
    const unsigned char* at = d.address(bases + static_cast<std::ptrdiff_t>(i), k);
    u64 forward = 0, backward = 0;
    for (unsigned j = 0; j < k; ++j) {
      const unsigned letter = at[j] & 0xdfu;  // capitals
      if (letter != 'A' && letter != 'C' && letter != 'G' && letter != 'T') return;
      const unsigned two = letter >> 1 & 3, code = two ^ two >> 1;
      forward = forward << 2 | code;
      backward = backward >> 2 | u64{3 - code} << 2 * (k - 1);
    }
    if (map.accumulate(d, forward < backward ? forward : backward, 1) == far::device_insert::full)
      d.fetch_add(refused, u64{1});
  }
};

/// How many k-mers were seen how often. Threads add to one of many copies of a line.
struct sort_counts {
  static constexpr std::size_t copies = 64;
  far::device_ptr<u64> lines, kept, sum_beyond;
  u64 n, least, most;

  FARSIDE_KERNEL_CODE void operator()(const far::device_view& d, u64 key, u64 count) const {
    const u64 copy = far::mix(key) % copies, line = count < n - 1 ? count : n - 1;
    d.fetch_add(lines + static_cast<std::ptrdiff_t>(copy * n + line), u64{1});
    if (line == n - 1) d.fetch_add(sum_beyond, count);
    if (count >= least && count <= most)
      d.fetch_add(kept + static_cast<std::ptrdiff_t>(copy), u64{1});
  }
};

/// Two pieces of text: one is filled while the other one is counted.
class counter {
 public:
  /// `times`: what is issued is waited for, and that is the time it took.
  counter(far::device& gpu, map_type& map, unsigned k, bool times)
      : map_(map),
        k_(k),
        times_(times),
        room_(std::min(std::size_t{1} << 24, gpu.segment_size() / 8)),
        stream_(gpu) {
    for (piece& p : pieces_) {
      p.text.reserve(room_);
      p.memory = far::device_block(gpu, room_);
    }
    refused_ = far::device_block(gpu, sizeof(u64));
    stream_.fill(refused_.get(), 0, sizeof(u64));
  }
  void add(const char* bases, std::size_t n) {
    while (n > 0) {
      std::vector<char>& text = pieces_[now_].text;
      const std::size_t some = std::min(n, room_ - 1 - text.size());
      text.insert(text.end(), bases, bases + some);
      if (some == n) {
        text.push_back('\n');
        if (text.size() + 1 >= room_) count();
        return;
      }
      count();
      // A sequence that is cut goes on with the bases of its last k-mer but the first.
      const std::size_t again = std::min<std::size_t>(some, k_ - 1);
      bases += some - again, n -= some - again;
    }
  }
  double seconds() const { return seconds_; }
  /// The rest. How many places found no room in the map.
  u64 finish() {
    count();
    u64 refused = 0;
    stream_.get(far::pointer_cast<u64>(refused_.get()), &refused);
    stream_.synchronize();
    return refused;
  }

 private:
  struct piece {
    std::vector<char> text;
    far::device_block memory;
    far::future<void> counted;
    bool under_way = false;
  };

  void count() {
    timed until_return(seconds_);
    piece& p = pieces_[now_];
    if (p.text.size() >= k_) {
      stream_.put(p.memory.get(), reinterpret_cast<const std::byte*>(p.text.data()), p.text.size());
      stream_.launch(
          p.text.size() - k_ + 1,
          count_places{map_.ref(), far::pointer_cast<const unsigned char>(p.memory.get()),
                       far::pointer_cast<u64>(refused_.get()), k_});
      p.counted = stream_.done();
      p.under_way = true;
      if (times_) stream_.synchronize();
    } else {
      p.text.clear();
    }
    now_ = 1 - now_;
    piece& next = pieces_[now_];
    if (next.under_way) next.counted.get();
    next.under_way = false;
    next.text.clear();
  }

  map_type& map_;
  unsigned k_;
  bool times_;
  std::size_t room_;  ///< bytes of a piece
  double seconds_ = 0;
  far::device_stream stream_;
  piece pieces_[2];
  int now_ = 0;
  far::device_block refused_;
};

/// At most so many different k-mers, as far as files tell: a place of each byte, or of every other
/// one.
u64 most_kmers(const std::vector<genome::input_file>& files) {
  u64 sum = 0;
  for (const auto& file : files) {
    if (file.kind == genome::input_kind::fastq)
      sum += file.bytes / 2;
    else if (file.kind == genome::input_kind::fasta)
      sum += file.bytes;
    else
      return ~u64{0};
  }
  return sum + 1000;
}

/// Collective: what needs device memory, of which all ranks have the same.
template <class Make>
auto made(Make make) {
  try {
    return make();
  } catch (const far::error& e) {
    std::string why = e.what();
    if (why.starts_with("farside: ")) why.erase(0, 9);
    genome::fail(why);
  }
}

}  // namespace counting_on_device

void count_kmers_on_device(const count_job& job) {
  using namespace counting_on_device;
  far::device gpu = made([] { return far::device(); });
  // Half of each device's memory is for the map, at half load: 32 bytes a k-mer.
  const u64 capacity = std::min(most_kmers(job.files), gpu.segment_size() / 2 / 32 * far::nprocs());
  auto map_made = made([&] { return std::make_unique<map_type>(gpu, capacity); });
  map_type& map = *map_made;
  std::vector<genome::input_file> files = job.files;
  u64 records = 0, bytes = 0;
  double reading = 0, counting = 0;
  for (const auto& file : files) bytes += file.bytes / far::nprocs();
  for (std::optional<u64> done; !done;) {
    double all = 0;
    std::optional<timed> watch(all);
    auto counts = made([&] { return std::make_unique<counter>(gpu, map, job.k, job.times); });
    genome::progress bar(bytes);
    genome::input_reader reader(files, job.k);
    done = reader.read([&](const char* bases, std::size_t n) { counts->add(bases, n); },
                       [&](u64 more, u64 so_far) {
                         bar.add(more, so_far);
                         return true;
                       },
                       [&] {
                         const u64 refused = counts->finish();
                         bar.finish();
                         if (refused == 0) return std::string();
                         return far::text(
                             "the k-mers of these files do not fit into device memory: ", refused,
                             " places found no room in a map of ", capacity,
                             " k-mers; use more GPUs, or count without --device");
                       });
    watch.reset();
    counting = counts->seconds(), reading = all - counting;
    if (done) records = *done;
    far::barrier();
    if (!done) map.clear();  // all files are read again
  }
  far::barrier();
  std::optional<timed> watch(counting);
  genome::histogram seen(job.longest_histogram);
  const u64 n = seen.lines(), copies = sort_counts::copies;
  far::device_stream stream(gpu);
  auto memory =
      made([&] { return far::device_block(gpu, (n * copies + copies + 1) * sizeof(u64)); });
  auto lines = far::pointer_cast<u64>(memory.get());
  auto kept_at = lines + static_cast<std::ptrdiff_t>(n * copies);
  std::vector<u64> found(n * copies + copies + 1);
  stream.fill(lines, 0, found.size());
  map.for_each_local(stream,
                     sort_counts{lines, kept_at, kept_at + static_cast<std::ptrdiff_t>(copies), n,
                                 job.least, job.most});
  stream.get(lines, found.data(), found.size());
  stream.synchronize();
  u64 kept = 0;
  for (u64 c = 0; c < copies; ++c) {
    for (u64 line = 0; line < n; ++line) {
      const u64 times = found[c * n + line];
      seen.add(line, times, line + 1 < n ? times * line : 0);
    }
    kept += found[n * copies + c];
  }
  seen.add(n - 1, 0, found.back());
  watch.reset();
  seen.gather();
  if (!job.histogram.empty()) {
    genome::output_file file(job.histogram);
    const std::string text = far::rank() == 0 ? seen.text() : "";
    file.write_in_order(0, text);
    file.publish();
  }
  print_times(job, reading, counting);
  kept = far::all_reduce(kept);
  records = far::all_reduce(records);
  if (far::rank() != 0 || job.to_standard_output() != 0) return;
  std::printf("sequences        %12" PRIu64 "\n", records);
  std::printf("k-mers           %12" PRIu64 "\n", seen.total());
  std::printf("different        %12" PRIu64 "\n", seen.different());
  std::printf("seen once        %12" PRIu64 "\n", seen.at(1));
  std::printf("kept             %12" PRIu64 "\n", kept);
}
