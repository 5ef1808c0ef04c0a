// hash_map: to a file and back; files that are damaged, and files that cannot be written.
#include <farside/core/draft.hpp>

#include "amounts.hpp"
#include "full_segments.hpp"
#include "harness.hpp"
#include "map_types.hpp"
#include "scratch_folder.hpp"

#include <sys/resource.h>
#include <unistd.h>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

namespace hash_map_files_tests {

namespace {

using namespace map_types;
using namespace scratch;

using amounts::scaled;

template <class Map>
void fill(Map& map, int n, int salt = 0) {
  for (int i = static_cast<int>(map.members().rank()); i < n;
       i += static_cast<int>(map.members().size()))
    map.insert(i, make<typename Map::mapped_type>::of(i + salt));
  far::barrier(map.members());
}

}  // namespace

FAR_TEST(save_and_load) {
  scratch_folder folder("save_and_load");
  std::string path = folder.file("map");
  int n = scaled(200), all = n * static_cast<int>(far::nprocs());
  {
    far::hash_map<int, std::string> map(8);
    for (int i = 0; i < n; ++i) {
      int key = i * static_cast<int>(far::nprocs()) + static_cast<int>(far::rank());
      map.insert(key, make<std::string>::of(key));
    }
    map.save(path);
  }
  {
    far::hash_map<int, std::string> map(8);
    map.insert(0, "replaced");
    far::barrier();
    map.load(path);
    CHECK_EQ(map.size(), static_cast<std::size_t>(all));
    for (int i = 0; i < all; ++i) CHECK(map.find(i) == make<std::string>::of(i));
    far::barrier();
    // On fewer ranks.
    far::team half = far::world().split(far::rank() % 2 == 0 ? 0 : 1);
    far::hash_map<int, std::string> fewer(8, {.over = half});
    fewer.load(path);
    CHECK_EQ(fewer.size(), static_cast<std::size_t>(all));
    CHECK(fewer.find(all - 1) == make<std::string>::of(all - 1));
    far::barrier();
    // An empty one.
    far::hash_map<int, std::string> none(8);
    none.save(path);
    none.load(path);
    CHECK(none.empty());
    far::hash_map<int, double> other(8);
    CHECK_THROWS(other.load(path), "other types");
    CHECK_THROWS(other.load(path + ".not"), "No such file");
    CHECK_THROWS(other.save("/no such folder/x"), "No such file");
    map.save(path);
    if (far::rank() == 0) std::filesystem::resize_file(path, std::filesystem::file_size(path) - 5);
    far::barrier();
    CHECK_THROWS(map.load(path), "cut off");
    if (far::rank() == 0)
      std::ofstream(path) << "this is not a map, but a text that is long enough to be read";
    far::barrier();
    CHECK_THROWS(map.load(path), "not a saved hash_map");
    if (far::rank() == 0) std::ofstream(path) << std::string("\nFARMAP1") + std::string(100, 'x');
    far::barrier();
    CHECK_THROWS(map.load(path), "format 1");
    CHECK_THROWS(map.load("/dev/null"), "no regular file");
    CHECK_THROWS(map.save("/dev/null"), "no regular file");
    CHECK_THROWS(map.save("/"), "is a directory");
  }
  CHECK_EQ(folder.count(), 1);
}

// Types of one length are told apart, and those that are the same in a file are not.
FAR_TEST(files_know_types) {
  scratch_folder folder("files_know_types");
  std::string path = folder.file("map");
  far::hash_map<std::int64_t, std::int64_t> map(8);
  for (int i = 0; i < 10; ++i) map.insert(i, -i);
  map.save(path);
  far::hash_map<std::int64_t, double> of_doubles(8);
  CHECK_THROWS(of_doubles.load(path), "int64, int64, not int64, float64");
  CHECK(of_doubles.empty());
  far::hash_map<long long, long> same(8);
  same.load(path);
  CHECK(same.find(9) == -9);
  far::barrier();

  using far::detail::words_of;
  enum class colour : std::uint8_t { red };
  CHECK_EQ(words_of<colour>(), std::string("uint8"));
  CHECK_EQ(words_of<date>(), std::string("array<int32, 3>"));
  CHECK_EQ(words_of<triple>(), std::string("struct of 24 bytes"));
  CHECK_EQ(words_of<record>(), std::string("a type with a serializer of its own"));
  using all = std::tuple<std::pair<bool, char>, std::vector<std::map<std::string, float>>,
                         std::optional<std::variant<int, unsigned short>>, std::set<char16_t>>;
  CHECK_EQ(words_of<all>(), std::string("((bool, char), vector<map<string<char>, float32>>, "
                                        "optional<variant<int32, uint16>>, set<char16>)"));
}

namespace {

/// Ways in which files are damaged. Each takes the bytes of a good one.
using damage = std::function<void(std::string&, std::mt19937_64&)>;

constexpr std::size_t word = 8, header_bytes = sizeof(far::detail::pair_file::header),
                      index_entry = sizeof(far::detail::file_block);

std::uint64_t word_at(const std::string& bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, word);
  return value;
}
/// One of the numbers of the header and of the index.
std::size_t some_count(const std::string& bytes, std::mt19937_64& random) {
  std::size_t index = word_at(bytes, 5 * word), in_header = header_bytes / word - 1;
  std::size_t which = random() % (in_header + (bytes.size() - index) / word);
  return which < in_header ? (which + 1) * word : index + (which - in_header) * word;
}
/// With the right checksums of header and index: nothing but the counts themselves is wrong.
void seal(std::string& bytes) {
  far::detail::pair_file::header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.kinds > bytes.size() - sizeof header) return;
  if (header.index <= bytes.size())
    header.index_checksum =
        far::detail::hash_bytes(bytes.data() + header.index, bytes.size() - header.index);
  header.checksum = header.checksum_with(bytes.substr(sizeof header, header.kinds));
  std::memcpy(bytes.data(), &header, sizeof header);
}
void change_count(std::string& bytes, std::mt19937_64& random) {
  std::size_t at = some_count(bytes, random);
  std::uint64_t value = word_at(bytes, at);
  const std::uint64_t changed[] = {value + 1,  value - 1, value * 2, value + (1 << 20), value / 2,
                                   ~value + 1, 0,         ~0ull,     1ull << 62,        random()};
  value = changed[random() % std::size(changed)];
  std::memcpy(bytes.data() + at, &value, word);
}

const damage damages[] = {
    [](std::string& bytes, auto& random) {  // a bit, anywhere
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    },
    [](std::string& bytes, auto& random) {  // a bit of the header
      bytes[random() % header_bytes] ^= static_cast<char>(1 << random() % 8);
    },
    [](std::string& bytes, auto& random) { bytes.resize(random() % bytes.size()); },
    [](std::string& bytes, auto& random) {
      bytes.resize(bytes.size() - 1 - random() % std::min<std::size_t>(bytes.size(), 40));
    },
    [](std::string& bytes, auto& random) {
      bytes += std::string(1 + random() % 100, static_cast<char>(random() % 3));
    },
    change_count,
    [](std::string& bytes, auto& random) {
      change_count(bytes, random);
      seal(bytes);
    },
    [](std::string& bytes, auto& random) {  // one entry more or less, everywhere
      std::size_t index = word_at(bytes, 5 * word);
      std::uint64_t by = random() % 2 == 0 ? 1 : ~0ull;
      for (std::size_t at : {3 * word, index + 2 * word}) {
        std::uint64_t value = word_at(bytes, at) + by;
        std::memcpy(bytes.data() + at, &value, word);
      }
      seal(bytes);
    },
    [](std::string& bytes, auto& random) {  // two ranges change places
      std::size_t n = 1 + random() % (bytes.size() / 2), a = random() % (bytes.size() - 2 * n + 1),
                  b = a + n + random() % (bytes.size() - 2 * n - a + 1);
      std::swap_ranges(bytes.data() + a, bytes.data() + a + n, bytes.data() + b);
    },
    [](std::string& bytes, auto& random) {  // a range stands twice
      std::size_t n = 1 + random() % bytes.size(), from = random() % (bytes.size() - n + 1),
                  to = random() % (bytes.size() - n + 1);
      std::memmove(bytes.data() + to, bytes.data() + from, n);
    },
    [](std::string& bytes, auto& random) {
      std::size_t n = 1 + random() % bytes.size(), from = random() % (bytes.size() - n + 1);
      std::fill_n(bytes.data() + from, n, '\0');
    },
    [](std::string& bytes, auto& random) {  // entries of the index change places, or stand twice
      std::size_t index = word_at(bytes, 5 * word), n = (bytes.size() - index) / index_entry;
      std::size_t a = index + random() % n * index_entry, b = index + random() % n * index_entry;
      if (random() % 2 == 0)
        std::swap_ranges(bytes.data() + a, bytes.data() + a + index_entry, bytes.data() + b);
      else
        std::memmove(bytes.data() + a, bytes.data() + b, index_entry);
      if (random() % 2 == 0) seal(bytes);
    },
};

}  // namespace

// A load is right, or it throws on all ranks, says which file and why, and leaves the map alone.
FAR_TEST(damaged_files) {
  scratch_folder folder("damaged_files");
  std::string path = folder.file("map");
  // Some everywhere, and many where that is cheap.
  std::string backend = far::detail::backend_name(far::detail::here().link);
  const int n = 60, rounds = far::nprocs() == 3 && backend == "smp" ? scaled(1000) : 96;
  far::hash_map<int, std::string> map(8);
  fill(map, n);
  map.save(path);
  const std::string good = bytes_of(path);
  map.clear();
  map.insert(-1, "kept");
  far::barrier();
  auto random = far_test::common_random_engine();
  int equal = 0, wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = good;
    damages[static_cast<std::size_t>(round) % std::size(damages)](bytes, random);
    if (far::rank() == 0) write_bytes(path, bytes);
    far::barrier();
    std::string said;
    try {
      map.load(path);
    } catch (const far::error& e) {
      said = e.what();
    }
    int threw = far::all_reduce(said.empty() ? 0 : 1);
    if (bytes == good) {
      ++equal;
      wrong += threw != 0 || map.size() != static_cast<std::size_t>(n + 1);
      far::barrier();
      map.clear();
      map.insert(-1, "kept");
      far::barrier();
      continue;
    }
    bool fine = threw == static_cast<int>(far::nprocs()) &&
                said.find("load(" + path + "): rank ") != std::string::npos &&
                said.find("The map is as it was before.") != std::string::npos && map.size() == 1 &&
                map.find(-1) == "kept";
    if (!fine) {
      ++wrong;
      CHECK_EQ("round " + std::to_string(round) + ": " + said, std::string("a proper error"));
      far::barrier();
      map.clear();
      map.insert(-1, "kept");
    }
    far::barrier();
  }
  CHECK_EQ(wrong, 0);
  CHECK(equal < rounds / 4);
  if (far::rank() == 0) write_bytes(path, good);
  far::barrier();
  map.load(path);
  for (int i = 0; i < n; ++i) CHECK(map.find(i) == make<std::string>::of(i));
  far::barrier();
}

// Two maps that are saved to one name at the same time: the file is one of them.
FAR_TEST(two_saves_to_one_name) {
  scratch_folder folder("two_saves");
  std::string path = folder.file("map");
  bool second = far::rank() >= (far::nprocs() + 1) / 2;
  far::team half = far::world().split(second ? 1 : 0);
  const int n = 200;
  far::hash_map<int, int> mine(8, {.over = half}), all(8);
  fill(mine, second ? 2 * n : n, second ? 5 : 0);
  for (int round = 0; round < 6; ++round) {
    far::barrier();
    mine.save(path);
    far::barrier();
    all.clear();
    all.load(path);
    bool first = all.size() == n;
    CHECK(first || all.size() == 2 * n);
    for (int i = 0; i < n; ++i) CHECK(all.find(i) == (first ? i : i + 5));
    CHECK_EQ(folder.count(), 1);
  }
  far::barrier();
}

// A name that others could guess is never written to, and a link to a file is followed.
FAR_TEST(saves_and_links) {
  namespace fs = std::filesystem;
  scratch_folder folder("saves_and_links");
  std::string path = folder.file("map"), other = folder.file("other"), real = folder.file("real");
  if (far::rank() == 0) {
    write_bytes(other, "not to be touched");
    fs::create_symlink(other, path + ".partial");
    write_bytes(real, "");
    fs::create_symlink(real, path);
  }
  far::barrier();
  far::hash_map<int, int> map(8);
  fill(map, 10);
  map.save(path);
  CHECK_EQ(bytes_of(other), std::string("not to be touched"));
  CHECK(fs::is_symlink(path) && fs::is_symlink(path + ".partial"));
  CHECK(fs::file_size(real) > 100);
  far::barrier();
  map.clear();
  map.load(path);
  CHECK_EQ(map.size(), 10u);
  CHECK_EQ(folder.count(), 4);
}

// One segment has no room for the bytes of values: all ranks throw, and no value has changed.
FAR_TEST(a_load_without_room) {
  scratch_folder folder("a_load_without_room");
  const std::string path = folder.file("map");
  const int n = 120, old = 40;
  auto value = [](int i) { return std::string(200, 'n') + std::to_string(i); };
  auto each = [](int count, auto work) {
    for (int i = static_cast<int>(far::rank()); i < count; i += static_cast<int>(far::nprocs()))
      work(i);
    far::barrier();
  };
  {
    far::hash_map<int, std::string> saved(n);
    each(n, [&](int i) { saved.insert(i, value(i)); });
    saved.save(path);
  }
  far::hash_map<int, std::string> map(4 * n);
  each(old, [&](int i) { map.insert(i, "old" + std::to_string(i)); });
  const far::rank_t full = far::nprocs() - 1;
  {
    std::optional<full_segments::ballast> most;
    if (far::rank() == full) most.emplace(1000);
    far::barrier();
    CHECK(full_segments::refused([&] { map.load(path); }));
    far::barrier();
    CHECK_EQ(map.size(), static_cast<std::size_t>(old));
    for (int i = 0; i < n; ++i)
      CHECK(map.find(i) == (i < old ? std::optional("old" + std::to_string(i)) : std::nullopt));
    far::barrier();
  }
  far::barrier();
  map.load(path);
  for (int i = 0; i < n; ++i) CHECK(map.find(i) == value(i));
  far::barrier();
}

// No file may become so large: the old one stays, nothing else is left, and nobody is ended by it.
FAR_TEST(a_save_without_room) {
  scratch_folder folder("a_save_without_room");
  std::string path = folder.file("map");
  far::hash_map<int, std::string> map(8);
  fill(map, 20);
  map.save(path);
  const std::string before = bytes_of(path);
  fill(map, 1000);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  far::barrier();
  rlimit small{4096, old.rlim_max};
  if (old.rlim_cur > small.rlim_cur) setrlimit(RLIMIT_FSIZE, &small);  // ranks may be threads
  far::barrier();
  std::string said;
  try {
    map.save(path);
  } catch (const far::error& e) {
    said = e.what();
  }
  far::barrier();
  setrlimit(RLIMIT_FSIZE, &old);
  far::barrier();
  CHECK(said.find("File too large. A file of that name is as it was.") != std::string::npos);
  CHECK_EQ(bytes_of(path), before);
  CHECK_EQ(folder.count(), 1);
  far::barrier();
  map.save(path);
  CHECK(bytes_of(path) != before);
}

// Where files cannot be without a name, drafts have one that nobody else has.
FAR_TEST(drafts_with_names) {
  scratch_folder folder("drafts_with_names");
  std::string path = folder.file("file");
  for (bool wanted : {false, true}) {
    {
      far::draft draft(far::world(), false);
      CHECK_EQ(draft.create(path), std::string());
      char mine = static_cast<char>('a' + far::rank() % 26);
      CHECK_EQ(pwrite(draft.descriptor(), &mine, 1, static_cast<off_t>(far::rank())), ssize_t{1});
      CHECK_EQ(folder.count(), 1);
      CHECK(!std::filesystem::exists(path));
      far::barrier();
      if (wanted) CHECK_EQ(draft.publish(), std::string());
    }
    far::barrier();
    CHECK_EQ(folder.count(), wanted ? 1 : 0);
    far::barrier();
  }
  CHECK_EQ(bytes_of(path).size(), std::size_t{far::nprocs()});
  CHECK_EQ(bytes_of(path)[0], 'a');
}

}  // namespace hash_map_files_tests
