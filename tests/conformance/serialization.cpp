// How objects become bytes and back: each supported type by itself, and that what can lie in
// place does.
#include "harness.hpp"

#include <farside/core/cereal.hpp>

// Behind farside's own header on purpose: the order does not matter.
#include <cereal/types/map.hpp>
#include <cereal/types/memory.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>

#include <deque>
#include <limits>
#include <memory>

namespace serialization_tests {

namespace {

struct point {
  double x, y;
  int label;
  friend bool operator==(const point&, const point&) = default;
};

/// Trivially copyable, with a serializer that must never be asked.
struct plain_with_serializer {
  int value;
  friend bool operator==(const plain_with_serializer&, const plain_with_serializer&) = default;
};

/// Not trivially copyable, of fixed length.
struct date {
  date() = default;
  date(int y, int m, int d) : year(y), month(m), day(d) {}
  date(const date& o) : year(o.year), month(o.month), day(o.day) {}
  date& operator=(const date& o) {
    year = o.year, month = o.month, day = o.day;
    return *this;
  }
  friend bool operator==(const date& a, const date& b) {
    return a.year == b.year && a.month == b.month && a.day == b.day;
  }
  int year = 0, month = 0, day = 0;
};

/// Of fixed length by way of another fixed-length type that is not trivially copyable either.
struct period {
  date from, to;
  friend bool operator==(const period&, const period&) = default;
  period(date f, date t) : from(f), to(t) {}
};

/// Variable length, and without a default constructor.
struct record {
  explicit record(std::string n) : name(std::move(n)) {}
  std::string name;
  std::vector<std::string> lines;
  std::optional<date> when;
  friend bool operator==(const record&, const record&) = default;
};

/// Trivially copyable but without a default constructor.
struct no_default {
  explicit no_default(int v) : value(v) {}
  int value;
  friend bool operator==(const no_default&, const no_default&) = default;
};

// --- types made for cereal ---------------------------------------------------------------------
struct cereal_member {
  std::string name;
  std::vector<int> values;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, values);
  }
  friend bool operator==(const cereal_member&, const cereal_member&) = default;
};

struct cereal_pair {
  std::map<std::string, double> table;
  template <class Archive>
  void save(Archive& archive) const {
    archive(table);
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(table);
  }
  friend bool operator==(const cereal_pair&, const cereal_pair&) = default;
};

class cereal_private {
 public:
  cereal_private() = default;
  explicit cereal_private(int n)
      : text_(static_cast<std::size_t>(n), 'p'), nested_(static_cast<std::size_t>(n) % 5) {}
  friend bool operator==(const cereal_private&, const cereal_private&) = default;

 private:
  friend class cereal::access;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(text_, nested_);
  }
  std::string text_;
  std::vector<cereal_member> nested_;
};

struct cereal_free {
  std::unique_ptr<std::string> text;
};
template <class Archive>
void serialize(Archive& archive, cereal_free& value) {
  archive(value.text);
}

}  // namespace

}  // namespace serialization_tests

template <>
struct far::serializer<serialization_tests::plain_with_serializer> {
  using plain_with_serializer = serialization_tests::plain_with_serializer;
  static void save(far::writer&, const plain_with_serializer&) {
    throw std::logic_error("asked to save");
  }
  static plain_with_serializer load(far::reader&) { throw std::logic_error("asked to load"); }
};

template <>
struct far::serializer<serialization_tests::date> {
  using date = serialization_tests::date;
  using fixed = std::array<int, 3>;
  static fixed pack(const date& d) { return {d.year, d.month, d.day}; }
  static date unpack(const fixed& f) { return {f[0], f[1], f[2]}; }
};

template <>
struct far::serializer<serialization_tests::period> {
  using period = serialization_tests::period;
  using date = serialization_tests::date;
  using fixed = std::pair<date, date>;
  static fixed pack(const period& p) { return {p.from, p.to}; }
  static period unpack(const fixed& f) { return {f.first, f.second}; }
};

template <>
struct far::serializer<serialization_tests::record> {
  using record = serialization_tests::record;
  static void save(far::writer& out, const record& r) { out << r.name << r.lines << r.when; }
  static record load(far::reader& in) {
    record r(in.read<std::string>());
    in >> r.lines >> r.when;
    return r;
  }
};

namespace serialization_tests {

namespace {

template <class T>
bool ends_too_early(std::span<const std::byte> bytes) {
  try {
    (void)far::from_bytes<T>(bytes);
    return false;
  } catch (const far::error& e) {
    return std::string_view(e.what()).find("ends too early") != std::string_view::npos;
  }
}

// One check a type, and this out of the way of the optimiser: there are many types.
template <class T>
[[gnu::noinline]] bool survives(const T& value) {
  auto bytes = far::to_bytes(value);
  bool good = far::from_bytes<T>(bytes) == value;
  // Between others, so that a length that is wrong on one side shows.
  far::writer out;
  out << 17 << value << 18 << value << 'e';
  auto joined = out.take();
  far::reader in(joined);
  good &= in.read<int>() == 17;
  good &= in.read<T>() == value;
  good &= in.read<int>() == 18;
  good &= in.read<T>() == value;
  good &= in.read<char>() == 'e' && in.left() == 0;
  // Each byte is needed: without the last one it is an error, not another value.
  if (!bytes.empty())
    good &= ends_too_early<T>(std::span(bytes).first(bytes.size() - 1)) && ends_too_early<T>({});
  return good;
}

template <class T>
void check_fixed(const T& value) {
  static_assert(far::fixed_length<T>);
  static_assert(far::serializable<T>);
  static_assert(far::box<T>::in_place);
  static_assert(std::is_trivially_copyable_v<far::box<T>>);
  CHECK(survives(value) && far::box<T>::pack(value).unpack() == value &&
        far::to_bytes(value).size() == sizeof(far::box<T>));
}

template <class T>
void check_variable(const T& value) {
  static_assert(!far::fixed_length<T>);
  static_assert(far::serializable<T>);
  static_assert(!far::box<T>::in_place);
  static_assert(std::is_trivially_copyable_v<far::box<T>>);
  static_assert(sizeof(far::box<T>) == 16);
  CHECK(survives(value));
}

}  // namespace

FAR_TEST(trivially_copyable_types_are_their_own_bytes) {
  enum class colour : short { red = -2, blue = 900 };
  static_assert(sizeof(far::box<int>) == sizeof(int) && alignof(far::box<int>) == alignof(int));
  static_assert(sizeof(far::box<char>) == 1);
  static_assert(sizeof(far::box<point>) == sizeof(point));
  static_assert(sizeof(far::box<std::array<point, 3>>) == 3 * sizeof(point));
  static_assert(sizeof(far::box<far::ptr<int>>) == 8);
  static_assert(sizeof(far::box<std::optional<int>>) == sizeof(std::optional<int>));
  check_fixed(-5);
  check_fixed('x');
  check_fixed(true);
  check_fixed(2.5f);
  check_fixed(std::numeric_limits<double>::infinity());
  check_fixed(std::numeric_limits<std::uint64_t>::max());
  check_fixed(colour::blue);
  check_fixed(point{1, -2, 3});
  check_fixed(far::ptr<int>(0, 128));
  check_fixed(std::array<int, 4>{1, 2, 3, 4});
  check_fixed(std::optional<int>(4));
  check_fixed(std::optional<int>());
  check_fixed(std::variant<int, double>(2.5));
  check_fixed(no_default(3));
  check_fixed(plain_with_serializer{8});

  point p{1.5, 2.5, -7};
  auto bytes = far::to_bytes(p);
  CHECK_EQ(bytes.size(), sizeof p);
  CHECK_EQ(std::memcmp(bytes.data(), &p, offsetof(point, label) + sizeof p.label), 0);
  auto boxed = far::box<point>::pack(p);
  CHECK_EQ(std::memcmp(&boxed, &p, offsetof(point, label) + sizeof p.label), 0);
}

FAR_TEST(fixed_length_types) {
  check_fixed(std::pair(1, 2.5));
  check_fixed(std::pair('a', 2.5));
  check_fixed(std::tuple<>());
  check_fixed(std::tuple(1, 'b', 2.5, true));
  check_fixed(std::tuple(std::pair('a', 1.5), std::pair(2, 'b')));
  check_fixed(std::pair(std::pair(std::pair(1, 'a'), 'b'), 'c'));
  check_fixed(std::array{std::pair(1, 2.5), std::pair(3, 4.5)});
  check_fixed(std::tuple(std::array{std::pair('x', 1L), std::pair('y', 2L)}, point{1, 2, 3}));
  check_fixed(date(2024, 2, 29));
  check_fixed(period(date(2024, 1, 1), date(2025, 12, 31)));
  check_fixed(std::pair(date(1, 2, 3), 'd'));
  check_fixed(std::array{date(1, 2, 3), date(4, 5, 6)});
  static_assert(sizeof(far::box<std::pair<int, double>>) == 16);
  static_assert(sizeof(far::box<date>) == 12);
  static_assert(sizeof(far::box<period>) == 24);
}

FAR_TEST(strings) {
  check_variable(std::string());
  check_variable(std::string("short"));
  check_variable(std::string(100'000, 'l'));
  check_variable(std::string("zero\0inside", 11));
  check_variable(std::u16string(u"wide"));
  check_variable(std::wstring(L"wider"));
}

FAR_TEST(vectors) {
  check_variable(std::vector<int>());
  check_variable(std::vector<int>{1, 2, 3});
  check_variable(std::vector<bool>());
  check_variable(std::vector<bool>{true, false, false, true, true, true, false, true, true});
  check_variable(std::vector<point>{{1, 2, 3}, {4, 5, 6}});
  check_variable(std::vector<std::string>{"", "a", std::string(5000, 'b'), ""});
  check_variable(std::vector<std::vector<std::vector<char>>>{{}, {{}, {'a', 'b'}}, {{'c'}}});
  check_variable(std::vector<std::pair<char, double>>{{'a', 1.5}, {'b', 2.5}});
  check_variable(std::vector<std::pair<int, std::string>>{{1, "one"}, {2, ""}});
  check_variable(std::vector<date>{{1, 2, 3}, {4, 5, 6}});
  check_variable(std::vector<no_default>{no_default(1), no_default(2)});
}

FAR_TEST(maps_and_sets) {
  check_variable(std::map<int, int>());
  check_variable(std::map<int, int>{{1, 2}, {-3, 4}});
  check_variable(std::map<char, double>{{'a', 1.5}, {'b', 2.5}});  // a pair with padding
  check_variable(std::map<int, double>{{1, 1.5}, {2, 2.5}, {3, 3.5}});
  check_variable(std::map<std::string, std::vector<int>>{{"", {}}, {"some", {1, 2, 3}}});
  check_variable(std::map<std::pair<int, char>, std::map<int, std::string>>{
      {{1, 'a'}, {{5, "five"}}}, {{1, 'b'}, {}}});
  check_variable(std::unordered_map<std::string, double>{{"a", 1.5}, {"b", 2.5}});
  check_variable(std::unordered_map<short, std::uint64_t>{{1, 10}, {2, 20}, {3, 30}});
  check_variable(std::set<std::string>{"x", "", "y"});
  check_variable(std::set<int, std::greater<>>{5, 1, 3});
  check_variable(std::unordered_set<int>{4, 5, 6});
  check_variable(std::unordered_set<std::string>());
}

FAR_TEST(optionals_variants_tuples_and_arrays_of_variable_length) {
  using either = std::variant<int, std::string, std::vector<double>>;
  check_variable(std::optional<std::string>());
  check_variable(std::optional<std::string>("there"));
  check_variable(std::optional<std::optional<std::string>>(std::optional<std::string>()));
  check_variable(either(3));
  check_variable(either("text"));
  check_variable(either(std::vector<double>{1.5, 2.5}));
  check_variable(std::variant<std::string, std::string>(std::in_place_index<1>, "the second"));
  check_variable(std::variant<std::monostate, std::string>());
  check_variable(std::pair(std::string("a"), 1));
  check_variable(std::pair(1, std::string("a")));
  check_variable(std::tuple(1, std::string("two"), 3.0, std::vector<int>{4}));
  check_variable(std::array<std::string, 3>{"a", "", "c"});
  check_variable(std::array{std::optional<std::string>("x"), std::optional<std::string>()});
}

FAR_TEST(types_of_the_user) {
  record r("some name");
  check_variable(r);
  r.lines = {"one", "", "three"};
  r.when = date(2024, 5, 6);
  check_variable(r);
  check_variable(std::vector{r, record("another"), r});
  check_variable(std::map<std::string, record>{{"r", r}});
  check_variable(std::optional(r));
}

FAR_TEST(types_made_for_cereal) {
  cereal_member member{"name", {1, 2, 3}};
  check_variable(member);
  check_variable(cereal_member());
  check_variable(std::vector{member, cereal_member(), member});
  check_variable(std::map<int, cereal_member>{{1, member}, {2, {}}});
  check_variable(std::pair(member, 5));
  check_variable(cereal_pair{{{"a", 1.5}, {"", 2.5}}});
  check_variable(cereal_private(0));
  check_variable(cereal_private(1234));
  check_variable(std::vector{cereal_private(3), cereal_private(4)});

  cereal_free free{std::make_unique<std::string>("behind a pointer")};
  auto copy = far::from_bytes<cereal_free>(far::to_bytes(free));
  CHECK(copy.text != nullptr && *copy.text == "behind a pointer");
  CHECK(far::from_bytes<cereal_free>(far::to_bytes(cereal_free())).text == nullptr);
}

FAR_TEST(types_made_for_cereal_travel) {
  far::rank_t n = far::nprocs(), me = far::rank();
  auto make = [](far::rank_t r) {
    return cereal_member{"rank " + std::to_string(r), std::vector<int>(r * 100, 7)};
  };
  for (far::rank_t root = 0; root < n; ++root) CHECK(far::broadcast(make(me), root) == make(root));
  auto all = far::all_gather(cereal_private(static_cast<int>(me) * 50));
  for (far::rank_t r = 0; r < n; ++r) CHECK(all[r] == cereal_private(static_cast<int>(r) * 50));
}

FAR_TEST(broken_lengths_are_errors) {
  // A length that no input could have: an error at once, not an attempt to allocate it.
  auto with_length = [](std::uint64_t length) {
    far::writer out;
    out << length << 1 << 2;
    return out.take();
  };
  for (std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{1} << 40, std::uint64_t{1} << 61, ~std::uint64_t{0}}) {
    auto bytes = with_length(length);
    CHECK_THROWS(far::from_bytes<std::vector<int>>(bytes), "ends too early");
    CHECK_THROWS(far::from_bytes<std::vector<point>>(bytes), "ends too early");
    CHECK_THROWS(far::from_bytes<std::vector<std::string>>(bytes), "ends too early");
    CHECK_THROWS((far::from_bytes<std::map<int, std::string>>(bytes)), "ends too early");
  }
  CHECK_THROWS(far::from_bytes<std::string>(with_length(~std::uint64_t{0})), "ends too early");
  CHECK_THROWS(far::from_bytes<std::vector<bool>>(with_length(std::uint64_t{1} << 60)),
               "ends too early");
  CHECK_THROWS((far::from_bytes<std::variant<int, std::string>>(far::to_bytes(std::uint32_t{2}))),
               "alternative 2 of 2");
  // Far from its end too.
  auto cut = far::to_bytes(std::vector<std::string>{"one", "two", std::string(1000, 'x')});
  for (std::size_t n = 0; n < cut.size(); n += 7)
    CHECK_THROWS(far::from_bytes<std::vector<std::string>>(std::span(cut).first(n)),
                 "ends too early");
}

FAR_TEST(what_is_not_serializable_is_known_not_to_be) {
  static_assert(!far::serializable<int*>);
  static_assert(!far::serializable<const char*>);
  static_assert(!far::serializable<std::string_view>);
  static_assert(!far::serializable<std::span<int>>);
  static_assert(!far::serializable<void (*)()>);
  static_assert(!far::fixed_length<std::array<int*, 2>>);
  static_assert(!far::fixed_length<std::optional<std::string_view>>);
  static_assert(!far::fixed_length<std::variant<int, char*>>);
  static_assert(!far::fixed_length<std::pair<int, const char*>>);
  static_assert(!far::serializable<std::deque<std::shared_ptr<int>>>);
  CHECK(!far::serializable<char*>);  // a check that every rank counts
}

FAR_TEST(random_nests) {
  using nest = std::map<
      std::string,
      std::vector<std::pair<std::optional<std::string>, std::tuple<int, std::vector<bool>>>>>;
  auto random = far_test::random_engine();
  for (int round = 0; round < 30; ++round) {
    nest value;
    for (auto i = random() % 6; i != 0; --i) {
      auto& list = value[std::string(random() % 20, static_cast<char>('a' + random() % 26))];
      for (auto k = random() % 6; k != 0; --k) {
        std::optional<std::string> name;
        if (random() % 2) name.emplace(random() % 50, 'n');
        std::vector<bool> bits;
        for (auto b = random() % 100; b != 0; --b) bits.push_back(random() % 2);
        list.emplace_back(std::move(name), std::tuple(static_cast<int>(random()), std::move(bits)));
      }
    }
    CHECK(survives(value));
    CHECK_EQ(far::broadcast(value, 0).size(), far::broadcast(value.size(), 0));
  }
}

}  // namespace serialization_tests
