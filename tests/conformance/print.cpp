// far::print: one text, in the order of the ranks, written by rank 0.
#include "harness.hpp"

#include <unistd.h>

namespace print_tests {

namespace {

using far::rank_t;

/// Where ranks are processes: stdout goes to a file while this lives. Only rank 0 writes to it.
class captured {
 public:
  captured() : file_(std::tmpfile()) {
    std::fflush(stdout);
    kept_ = dup(1);
    dup2(fileno(file_), 1);
  }
  ~captured() {
    restore();
    std::fclose(file_);
  }
  std::string text() {
    restore();
    std::string result;
    std::rewind(file_);
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) result += static_cast<char>(c);
    return result;
  }

 private:
  void restore() {
    if (kept_ < 0) return;
    std::fflush(stdout);
    dup2(kept_, 1);
    close(kept_);
    kept_ = -1;
  }
  std::FILE* file_;
  int kept_ = -1;
};

/// What all ranks print by `print`, as it came out: at rank 0, empty elsewhere.
template <class Print>
std::string output_of(Print print) {
  if (far::rank() != 0) {
    print();
    far::barrier();
    return {};
  }
  captured output;
  print();
  auto text = output.text();
  far::barrier();
  return text;
}

}  // namespace

FAR_TEST(in_the_order_of_the_ranks) {
  rank_t n = far::nprocs(), me = far::rank();
  auto text = output_of([&] { far::print("rank ", me, " of ", n, ": ", 0.5, '\n'); });
  std::string expected;
  for (rank_t r = 0; r < n; ++r)
    expected += "rank " + std::to_string(r) + " of " + std::to_string(n) + ": 0.5\n";
  CHECK_EQ(text, me == 0 ? expected : std::string());
}

FAR_TEST(texts_of_any_length_and_none) {
  rank_t n = far::nprocs(), me = far::rank();
  auto mine = [&](rank_t r) {
    return r % 2 == 1 ? std::string() : std::string(r * 2000 + 70'000 * (r == 0), 'x') + "\n";
  };
  auto text = output_of([&] {
    if (me % 2 == 1)
      far::print();
    else
      far::print(mine(me));
  });
  std::string expected;
  for (rank_t r = 0; r < n; ++r) expected += mine(r);
  CHECK_EQ(text, me == 0 ? expected : std::string());
}

FAR_TEST(zeros_in_a_text_are_kept) {
  auto text = output_of([] { far::print(std::string("a\0b", 3)); });
  std::string expected;
  for (rank_t r = 0; r < far::nprocs(); ++r) expected += std::string("a\0b", 3);
  CHECK_EQ(text, far::rank() == 0 ? expected : std::string());
}

FAR_TEST(one_print_after_another) {
  rank_t n = far::nprocs(), me = far::rank();
  auto text = output_of([&] {
    for (int i = 0; i < 20; ++i) far::print(i, ":", me, " ");
  });
  std::string expected;
  for (int i = 0; i < 20; ++i)
    for (rank_t r = 0; r < n; ++r) expected += std::to_string(i) + ":" + std::to_string(r) + " ";
  CHECK_EQ(text, me == 0 ? expected : std::string());
}

}  // namespace print_tests
