// far::store: to a file and back on another number of ranks; files that are damaged; moves and
// growth without room; memory that is used again.
#include "containers/full_segments.hpp"
#include "harness.hpp"
#include "scratch_folder.hpp"
#include "store_types.hpp"

#include <filesystem>
#include <memory>

namespace store_files_tests {

namespace {

using namespace store_types;
using namespace scratch;
using full_segments::ballast;
using full_segments::refused;

template <class Store>
void fill(Store& data, int n) {
  for (int i = static_cast<int>(far::rank()); i < n; i += static_cast<int>(far::nprocs()))
    data.put(i, value_of<typename Store::mapped_type>(i));
  far::barrier();
}

template <class V>
void check_files(const char* name) {
  scratch_folder folder(name);
  const std::string path = folder.file("store");
  const int n = 40;
  far::store<int, V> data(0);
  fill(data, n);
  data.save(path);
  far::future<V> waits;
  {
    far::store<int, V> again(0);
    waits = again.when(n - 1);
    far::barrier();
    if (far::rank() == 0) again.put(0, value_of<V>(99));
    far::barrier();
    again.load(path);
    CHECK_EQ(again.size(), static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) CHECK(again.get(i) == value_of<V>(i));
    CHECK(waits.get() == value_of<V>(n - 1));
    CHECK(again.verify().good());
    again.fence();
  }
  far::team half = far::world().split(far::rank() % 2);
  far::store_options with;
  with.over = half;
  far::store<int, V> fewer(0, with);
  fewer.load(path);
  CHECK_EQ(fewer.size(), static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) CHECK(fewer.get(i) == value_of<V>(i));
  far::barrier();

  // Damaged anywhere: it throws on all ranks, and the store is as it was.
  const std::string good = bytes_of(path);
  far::barrier();  // all have read it
  auto random = far_test::common_random_engine();
  for (int round = 0; round < 12; ++round) {
    std::string bytes = good;
    if (round % 3 == 0)
      bytes.resize(random() % bytes.size());
    else if (round % 3 == 1)
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    else
      bytes += "more";
    if (far::rank() == 0) write_bytes(path, bytes);
    far::barrier();
    far::store<int, V> empty(0);
    bool threw = false;
    try {
      empty.load(path);
    } catch (const far::error&) {
      threw = true;
    }
    CHECK(threw);
    CHECK(empty.empty());
    far::barrier();
  }
}

}  // namespace

FAR_TEST(files_of_small_values) { check_files<int>("store_small"); }
FAR_TEST(files_of_objects) { check_files<large>("store_objects"); }
FAR_TEST(files_of_records) { check_files<map_types::record>("store_records"); }
FAR_TEST(files_of_cells) {
  scratch_folder folder("store_cells");
  far::store<int, counted> data(0), again(0);
  fill(data, 10);
  data.fetch_add(3, &counted::visits, 2);
  data.save(folder.file("store"));
  again.load(folder.file("store"));
  CHECK(again.get(3, &counted::visits) == 2 * static_cast<std::int64_t>(far::nprocs()));
  far::barrier();
}

/// One segment has no room: all ranks throw, and no value has changed.
template <class V>
void check_load_without_room(const char* name) {
  scratch_folder folder(name);
  const std::string path = folder.file("store");
  const int n = 400, old = 40;
  {
    far::store<int, V> saved(n);
    fill(saved, n);
    saved.save(path);
  }
  far::store<int, V> data(4 * n);
  fill(data, old);
  {
    std::unique_ptr<ballast> most;
    if (far::rank() + 1 == far::nprocs()) most = std::make_unique<ballast>(1000);
    far::barrier();
    CHECK(refused([&] { data.load(path); }));
    far::barrier();
    CHECK_EQ(data.size(), static_cast<std::size_t>(old));
    for (int i = 0; i < n; ++i) CHECK(data.get(i).has_value() == (i < old));
    far::barrier();
  }
  far::barrier();
  data.load(path);
  for (int i = 0; i < n; ++i) CHECK(data.get(i) == value_of<V>(i));
  CHECK(data.verify().good());
  far::barrier();
}
FAR_TEST(loads_without_room) {
  check_load_without_room<large>("store_full_objects");
  check_load_without_room<map_types::record>("store_full_records");
}

/// Memory of what was erased serves other keys, two barriers later. Ranks that had remembered the
/// place have forgotten it by then.
FAR_TEST(memory_that_is_used_again) {
  far::store<int, large> data(64);
  const int rounds = 6, all = static_cast<int>(far::nprocs());
  for (int round = 0; round < rounds; ++round) {
    const int first = round * 100;
    if (static_cast<int>(far::rank()) == round % all)
      for (int i = 0; i < 20; ++i) CHECK(data.put(first + i, value_of<large>(first + i)));
    far::barrier();
    for (int i = 0; i < 20; ++i) {
      CHECK(data.get(first + i) == value_of<large>(first + i));  // and remembers the place
      if (round > 0) CHECK(!data.get(first - 100 + i));
    }
    far::barrier();
    if (static_cast<int>(far::rank()) == round % all)
      for (int i = 0; i < 20; ++i) CHECK(data.erase(first + i));
    // Now others look up what is gone, while it may be another's already.
    far::barrier();
    far::barrier();
    if (static_cast<int>(far::rank()) == round % all)
      for (int i = 0; i < 20; ++i) CHECK(data.put(first + 50 + i, value_of<large>(1)));
    far::barrier();
    for (int i = 0; i < 20; ++i) CHECK(!data.get(first + i));
    far::barrier();
  }
}

/// What a rank has remembered is another key's as soon as somebody uses the memory again.
FAR_TEST(memory_that_is_not_used_too_early) {
  far::store<int, large> data(64);
  if (far::rank() == 0)
    for (int i = 0; i < 20; ++i) data.put(i, value_of<large>(i));
  far::barrier();
  for (int i = 0; i < 20; ++i) CHECK(data.get(i).has_value());
  far::barrier();
  if (far::rank() == 0) {
    for (int i = 0; i < 20; ++i) CHECK(data.erase(i));
    for (int i = 100; i < 140; ++i) CHECK(data.put(i, value_of<large>(i)));
  } else {
    for (int round = 0; round < 3; ++round)
      for (int i = 0; i < 20; ++i) {
        const auto found = data.get(i);
        CHECK(!found || *found == value_of<large>(i));
      }
  }
  far::barrier();
  for (int i = 0; i < 20; ++i) CHECK(!data.get(i));
  far::barrier();
}

/// An operation that throws has had no effect, and a move that finds no room has moved nothing.
FAR_TEST(without_room) {
  struct to_one {
    far::rank_t shift = 0;
    far::rank_t operator()(int key, far::rank_t members) const {
      return (static_cast<far::rank_t>(key) + shift) % members;
    }
  };
  far::store_options named;
  named.name = "tight";
  far::store<int, std::string, to_one> data(100, named, to_one{});
  const far::rank_t last = far::nprocs() - 1;
  const int all = static_cast<int>(far::nprocs()), n = 6 * all;
  const std::string longer(5000, 'y');
  fill(data, n);
  {
    std::unique_ptr<ballast> full;
    if (far::rank() == last) full = std::make_unique<ballast>();
    far::barrier();
    const int there = static_cast<int>(last), fresh = 1000 * all + there;
    CHECK(refused([&] { data.put(fresh, longer); }));
    CHECK(refused([&] { data.update(there, longer); }));
    CHECK(refused([&] { data.modify(there, [&](std::string& s) { s = longer; }); }));
    far::barrier();
    CHECK(!data.contains(fresh));
    CHECK(data.get(there) == value_of<std::string>(there));
    far::barrier();
    if (all > 1) {
      CHECK_THROWS(data.move_to(to_one{1}),
                   "store 'tight': move_to: all entries are where they were. ");
      CHECK_EQ(far::all_reduce(1), all);  // still in step
    }
    CHECK_EQ(data.size(), static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) {
      CHECK_EQ(data.owner(i), static_cast<far::rank_t>(i % all));
      CHECK(data.get(i) == value_of<std::string>(i));
    }
    CHECK(data.verify().good());
    full.reset();
    far::barrier();
  }
  data.move_to(to_one{1});
  CHECK(data.verify().good());
  CHECK_EQ(data.size(), static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) CHECK(data.get(i) == value_of<std::string>(i));
  far::barrier();
}

/// Placements that are out of range, or not the same everywhere.
FAR_TEST(wrong_placements) {
  struct beyond {
    far::rank_t operator()(int key, far::rank_t members) const {
      return key == 7 ? members : static_cast<far::rank_t>(key) % members;
    }
  };
  struct shifted {
    far::rank_t shift = 0;
    far::rank_t operator()(int key, far::rank_t members) const {
      return (static_cast<far::rank_t>(key) + shift) % members;
    }
  };
  far::store<int, large, beyond> data(10);
  CHECK(data.put(static_cast<int>(far::rank()) + 10, value_of<large>(1)));
  CHECK_THROWS(data.put(7, value_of<large>(1)), "store: the placement puts 7 at member");
  CHECK_THROWS(data.get(7), "store: the placement puts 7 at member");
  CHECK_THROWS(data.post(7, value_of<large>(1)), "A placement gives a number below");
  CHECK_EQ(data.fence().activated, 0u);
  if (far::nprocs() > 1) {
    const shifted mine{far::rank() + 1 == far::nprocs() ? 1U : 0U};
    CHECK_THROWS((far::store<int, int, shifted>(10, {}, mine)),
                 "its members were given different placements");
    far::store<int, int, shifted> good(10);
    CHECK_THROWS(good.move_to(mine), "its members were given different placements");
    CHECK(good.verify().good());
  }
  far::barrier();
}

/// A placement that does not give the same everywhere, in a way that nobody can compare: verify()
/// finds what lies where nobody looks for it.
FAR_TEST(misplaced_entries) {
  struct lies {
    far::rank_t operator()(int key, far::rank_t members) const {
      const bool wrong = key == 3 && far::rank() == 0;
      return static_cast<far::rank_t>(key + wrong) % members;
    }
  };
  far::store<int, large, lies> data(10);
  if (far::rank() == 0)
    for (int i = 0; i < 6; ++i) CHECK(data.put(i, value_of<large>(i)));
  far::barrier();
  const far::store_check found = data.verify();
  CHECK_EQ(found.entries, 6u);
  const bool noticed = far::nprocs() > 1 && 4 % far::nprocs() != 0;  // else rank 0 itself holds it
  CHECK_EQ(found.misplaced, noticed ? 1u : 0u);
  if (noticed) CHECK_EQ(found.first_misplaced, std::string("3"));
  CHECK_EQ(found.good(), !noticed);
  far::barrier();
}

}  // namespace store_files_tests
