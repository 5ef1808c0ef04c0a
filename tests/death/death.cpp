// death HOW RANK WAIT [TAG]: rank RANK ends in the way HOW says while the others WAIT.
//
//   HOW   throw    an exception leaves main, which made a far::runtime
//         run      an exception leaves the body of far::run
//         odd      the same with something that is no std::exception
//         exit3 exit0 _exit0 abort segv kill
//         none     nobody ends
//         print    all print a line to stdout and end well
//   WAIT  barrier get future compute; multiply: all of them multiply matrices, and it dies within
//   TAG   is for whoever looks for the processes
#include <farside/farside.hpp>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

#include <time.h>
#include <unistd.h>

namespace {

std::string how, waits;
far::rank_t who = 0;

/// Says when it happens, so that the time until the job has ended can be told.
void say_when() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  std::fprintf(stderr, "dies at %lld ms\n",
               static_cast<long long>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000);
}

void die() {
  timespec moment{0, 200'000'000};
  nanosleep(&moment, nullptr);  // the others wait by then
  say_when();
  if (how == "throw" || how == "run") throw std::runtime_error("the reason of this death");
  if (how == "odd") throw 42;
  if (how == "exit3") std::exit(3);
  if (how == "exit0") std::exit(0);
  if (how == "_exit0") _exit(0);
  if (how == "abort") std::abort();
  if (how == "segv") {
    int* volatile nowhere = nullptr;
    *nowhere = 1;
  }
  if (how == "kill") kill(getpid(), SIGKILL);
}

[[noreturn]] void wait_for_ever() {
  auto word = far::make<long>(0);
  if (waits == "get") {
    far::ptr<long> p(who, word.offset());
    for (;;) far::get(p);
  }
  if (waits == "future")
    far::future<int>(std::make_shared<far::detail::future_state<int>>()).wait();
  if (waits == "barrier") far::barrier();
  for (volatile unsigned long x = 0;;) x = x + 1;
}

/// All multiply for ever, by partial tiles that travel and pieces that are stolen; rank `who` dies when
/// it has multiplied some.
[[noreturn]] void multiply_for_ever() {
  const far::block_custom cuts{{32, 32}};
  far::matrix<double> a({256, 256}, cuts), c({256, 256}, cuts);
  int pieces = 0;
  far::multiply_options how{.algorithm = far::stationary::a, .stealing = far::stealing::near};
  how.after_piece = [&](const far::multiplied_piece&) {
    if (far::rank() == who && ++pieces == 5) die();
  };
  for (;;) far::multiply(a, a, c, how);
}

void body() {
  far::barrier();
  if (far::rank() == 0) std::fprintf(stderr, "all are there\n");
  if (waits == "multiply") multiply_for_ever();
  if (how == "print") {
    std::printf("a line of rank %u\n", far::rank());
    return;
  }
  if (how == "print_here") return far::print_here("a line");
  if (how == "cout") {
    std::ios::sync_with_stdio(false);
    std::cout << "a line of rank " << far::rank() << "\n";
    return;
  }
  if (how != "none" && far::rank() == who)
    die();
  else if (how == "none" && far::rank() == who)
    for (volatile unsigned long x = 0;;) x = x + 1;
  else
    wait_for_ever();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: death HOW RANK WAIT [TAG]\n");
    return 64;
  }
  how = argv[1];
  who = static_cast<far::rank_t>(std::atoi(argv[2]));
  waits = argv[3];
  if (how == "run" || how == "odd" || std::getenv("FARSIDE_THREADS") != nullptr)
    return far::run(argc, argv, body);
  far::runtime world(argc, argv);
  body();
  return 0;
}
