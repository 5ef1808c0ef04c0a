// Counts beyond 2^31: broadcast, put and get of more than 2 GiB at once, also of a patch, every byte checked.
//
// For 2 ranks. Takes 5 GiB of memory, so other back ends than smp do it only if asked to by
// FARSIDE_TEST_LARGE=1.
#include <farside/containers/global_array.hpp>
#include <farside/farside.hpp>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

constexpr std::size_t many = (std::size_t{1} << 31) + 12345;

/// Each 8 bytes tell where they belong.
std::uint64_t word_at(std::size_t i, std::uint64_t salt) {
  return (i + salt) * 0x9e37'79b9'7f4a'7c15u;
}

void fill(char* to, std::uint64_t salt) {
  for (std::size_t i = 0; i < many / 8; ++i) {
    std::uint64_t word = word_at(i, salt);
    std::memcpy(to + 8 * i, &word, 8);
  }
  for (std::size_t i = many / 8 * 8; i < many; ++i) to[i] = static_cast<char>('0' + salt + i);
}

/// Where the first difference is, or `many`.
std::size_t first_wrong(const char* bytes, std::uint64_t salt) {
  for (std::size_t i = 0; i < many / 8; ++i) {
    std::uint64_t word;
    std::memcpy(&word, bytes + 8 * i, 8);
    if (word != word_at(i, salt)) return 8 * i;
  }
  for (std::size_t i = many / 8 * 8; i < many; ++i)
    if (bytes[i] != static_cast<char>('0' + salt + i)) return i;
  return many;
}

int check(const char* what, const std::vector<char>& bytes, std::uint64_t salt) {
  std::size_t wrong = first_wrong(bytes.data(), salt);
  if (wrong == many) return 0;
  std::fprintf(stderr, "rank %u: %s of %zu bytes: wrong from byte %zu on\n", far::rank(), what,
               many, wrong);
  return 1;
}

/// The memory is taken by one rank at a time where that is enough.
int body() {
  if (far::nprocs() < 2) {
    std::fprintf(stderr, "large: needs 2 ranks\n");
    return 64;
  }
  int failures = 0;
  {
    std::vector<char> bytes(many);
    if (far::rank() == 1) fill(bytes.data(), 1);
    far::broadcast(std::span(bytes), 1);
    failures += check("broadcast", bytes, 1);
  }
  far::barrier();

  far::ptr<char> target;
  if (far::rank() == 1) target = far::alloc<char>(many);
  target = far::broadcast(target, 1);
  if (far::rank() == 0) {
    std::vector<char> bytes(many);
    fill(bytes.data(), 2);
    far::put(target, bytes.data(), many);
    far::flush();
    std::fill(bytes.begin(), bytes.end(), 'x');
    far::get(target, bytes.data(), many);
    failures += check("put and get", bytes, 2);

    fill(bytes.data(), 3);
    far::async_put(target, bytes.data(), many).wait();
    far::flush();
    std::fill(bytes.begin(), bytes.end(), 'x');
    far::async_get(target, bytes.data(), many).wait();
    failures += check("async_put and async_get", bytes, 3);
  }
  far::barrier();
  if (far::rank() == 1) {
    // As its owner sees it, in pieces.
    std::vector<char> bytes(many);
    std::size_t piece = 1 << 26;
    for (std::size_t done = 0; done < many; done += piece)
      far::get(target + static_cast<std::ptrdiff_t>(done), bytes.data() + done,
               std::min(piece, many - done));
    failures += check("the target of a put", bytes, 3);
    far::dealloc(target);
  }
  {
    // A patch of more than 2 GiB of one rank, and a few places of the other.
    const auto n = static_cast<std::ptrdiff_t>(many);
    far::global_array<char, 2> f({1, n}, {.distribution = far::irregular({{0}, {0, 1000}})});
    if (far::rank() == 0) {
      std::vector<char> bytes(many);
      fill(bytes.data(), 4);
      f.put(f.all(), bytes);
      f.fence();
      std::fill(bytes.begin(), bytes.end(), 'x');
      f.get(f.all(), bytes);
      failures += check("put and get of a patch", bytes, 4);
    }
    far::barrier();
  }
  failures = far::all_reduce(failures);
  if (far::rank() == 0 && failures == 0) std::printf("2 GiB and more at once: ok\n");
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const char* asked = std::getenv("FARSIDE_TEST_LARGE");
  bool smp = std::string_view(far::detail::transport::name) == "smp";
  std::size_t needed = std::size_t{6} << 30;
  if (asked == nullptr ? !smp || far::detail::memory_available() < needed
                       : std::string_view(asked) == "0") {
    std::printf("skipped: takes 6 GiB of memory; FARSIDE_TEST_LARGE=1 runs it\n");
    return 0;
  }
  return far::run(argc, argv, body, {.segment = std::size_t{3} << 30});
}
