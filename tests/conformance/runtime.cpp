// Who am I, how many are we, and the limits of a runtime.
#include "harness.hpp"

#include <set>
#include <thread>

/// Names that programs have of their own, seen beside all of far.
struct job {
  int number;
};
struct slot {
  int number;
};
namespace names_of_users {
using namespace far;
inline int number_of(job j, slot s) { return j.number + s.number; }
}  // namespace names_of_users

namespace runtime_tests {

FAR_TEST(names_of_the_program_are_its_own) {
  CHECK_EQ(names_of_users::number_of(job{1}, slot{2}), 3);
}

namespace {
using far::rank_t;
}

FAR_TEST(ranks_are_zero_to_nprocs) {
  CHECK(far::nprocs() >= 1);
  CHECK(far::rank() < far::nprocs());
  auto ranks = far::all_gather(far::rank());
  for (rank_t r = 0; r < far::nprocs(); ++r) CHECK_EQ(ranks[r], r);
  auto sizes = far::all_gather(far::nprocs());
  CHECK_EQ(std::set(sizes.begin(), sizes.end()).size(), 1u);
  CHECK_EQ(far::world().size(), far::nprocs());
  CHECK_EQ(far::world().rank(), far::rank());
}

FAR_TEST(a_second_runtime_is_an_error) {
  CHECK_THROWS(far::runtime(), "a second far::runtime");
  CHECK_THROWS(far::runtime(far::runtime::options{.threads = far::thread_level::multiple}),
               "a second far::runtime");
  CHECK_EQ(far::world().size(), far::nprocs());  // the first one is none the worse
  CHECK_EQ(far::all_reduce(1u), far::nprocs());
}

FAR_TEST(segments_are_of_one_size) {
  auto& c = far::detail::here();
  auto sizes = far::all_gather(c.link.segment_size());
  for (auto size : sizes) CHECK_EQ(size, c.link.segment_size());
  CHECK(c.link.segment_size() >= 1u << 20);
}

FAR_TEST(more_than_the_segment_is_an_allocation_error) {
  auto& c = far::detail::here();
  std::size_t in_use = c.heap.in_use();
  bool kind = false;
  try {
    (void)far::alloc<char>(c.link.segment_size());
  } catch (const far::allocation_error&) {
    kind = true;
  }
  CHECK(kind);
  CHECK_THROWS(far::alloc<char>(c.link.segment_size()), "no room for");
  CHECK_THROWS(far::alloc<long>(~std::size_t{0}), "no room for");
  CHECK_THROWS(far::alloc<long>(~std::size_t{0} / 8 + 2), "no room for");  // 8 bytes, if it wraps
  CHECK_THROWS(far::alloc_on<char>(far::nprocs() - 1, c.link.segment_size()), "no room for");
  CHECK_THROWS(far::alloc_on<char>(0, ~std::size_t{0}), "no room for");
  CHECK_THROWS(far::alloc_on<char>(far::nprocs()), "there are only");
  CHECK_EQ(c.heap.in_use(), in_use);
  far::barrier();
}

FAR_TEST(freeing_twice_is_an_error) {
  auto p = far::alloc<long>(3);
  far::dealloc(p);
  CHECK_THROWS(far::dealloc(p), "no allocation begins there");
  auto q = far::alloc_on<long>((far::rank() + 1) % far::nprocs());
  far::dealloc(q);
  CHECK_THROWS(far::dealloc(q), "no allocation begins there");
  auto r = far::alloc<long>(8);
  CHECK_THROWS(far::dealloc(r + 2), "no allocation begins there");
  far::dealloc(r);
  far::dealloc(far::ptr<long>());
  far::barrier();
}

FAR_TEST(own_threads_of_a_rank_need_leave) {
  // This suite's runtime is for one thread a rank: another one is told so.
  std::string message;
  std::thread([&] {
    try {
      message = std::to_string(far::rank());
    } catch (const far::usage_error& e) {
      message = e.what();
    }
  }).join();
  // Where ranks are threads there is no telling whose a new thread is.
  bool told = message.find("a second thread of rank") != std::string::npos ||
              message.find("there is no far::runtime") != std::string::npos;
  CHECK(told);
}

}  // namespace runtime_tests
