// A rank that ends in the way it is told: `act MODE [RANK [NUMBER]]`. The rank named does it,
// the others wait as in a barrier. Built once per back end; rank and number of ranks come from
// that back end's own library, the board is written by hand.

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <string>

#include "board_rank.hpp"
#include "farside/base/backend_choice.hpp"

#if defined(FARSIDE_USE_SHMEM)
#include <shmem.h>
#endif

namespace {

int my_rank = 0, ranks = 1;

void library_init(int& argc, char**& argv) {
#if defined(FARSIDE_USE_MPI)
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Barrier(MPI_COMM_WORLD);
#elif defined(FARSIDE_USE_SHMEM)
  (void)argc, (void)argv;
  shmem_init();
  my_rank = shmem_my_pe();
  ranks = shmem_n_pes();
  shmem_barrier_all();
#else
  (void)argc, (void)argv;
  if (const char* text = getenv("FARSIDE_RANK")) my_rank = atoi(text);
  if (const char* text = getenv("FARSIDE_NPROCS")) ranks = atoi(text);
#endif
}

void library_end() {
#if defined(FARSIDE_USE_MPI)
  MPI_Finalize();
#elif defined(FARSIDE_USE_SHMEM)
  shmem_finalize();
#endif
}

[[noreturn]] void wait_forever() {
  for (;;) pause();
}

void print_stack(int) {
  char text[64];
  int n = snprintf(text, sizeof text, "stack of rank %d\n", my_rank);
  if (write(2, text, static_cast<size_t>(n)) < 0) _exit(99);
}

/// For the test that waits for the job's end.
void note_death() {
  const char* path = getenv("DEATH");
  FILE* file = path ? fopen(path, "w") : nullptr;
  if (!file) return;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  fprintf(file, "%lld.%06ld\n", static_cast<long long>(now.tv_sec), now.tv_nsec / 1000);
  fclose(file);
}

void say_ready() {
  puts("ready");
  fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string mode = argc > 1 ? argv[1] : "ok";
  int actor = argc > 2 ? atoi(argv[2]) : 0;
  int number = argc > 3 ? atoi(argv[3]) : 0;

  if (mode == "plain") return 0;  // a program that never makes a runtime
  if (mode == "usage") return number;
  library_init(argc, argv);
  bool mine = my_rank == actor;
  if (mode == "unborn" && mine) _exit(0);

  far::job_board::slot* own = board_rank::own_slot();
  if (!own) {
    fprintf(stderr, "act: no board\n");
    return 98;
  }
  signal(SIGQUIT, print_stack);
  board_rank::be_born(*own, my_rank, ranks);
  board_rank::wait_for(*own, far::job_board::waiting::barrier, far::job_board::no_rank, 7);

  if (mode == "kill" && mine) usleep(200'000), note_death(), raise(number);
  if (mode == "eat" && mine)  // memory, until there is none
    for (std::size_t bytes = 1 << 20;;) memset(malloc(bytes), 1, bytes);
  if (mode == "exit" && mine) usleep(200'000), note_death(), _exit(number);
  if (mode == "vanish" && mine) usleep(200'000), note_death(), _exit(0);
  if ((mode == "throw" || mode == "throw_hang") && mine) {
    note_death();
    own->say("far::alloc: 9 GiB asked,\n1 GiB free");
    own->state = far::job_board::rank_state::failed;
    if (mode == "throw_hang") wait_forever();
    usleep(200'000);
    fprintf(stderr, "last words\n");
    return 5;
  }
  if (mode == "refuse" && mine) {
    note_death();
    own->say("act: a file is missing");
    own->state = far::job_board::rank_state::refused;
  }
  if (mode == "deaf") {  // SIGTERM does not end it
    signal(SIGTERM, SIG_IGN);
    if (mine) usleep(300'000), note_death(), _exit(4);
  }
  if (mode == "family") {  // leaves a grandchild behind
    if (fork() == 0) {
      if (fork() == 0) {
        signal(SIGTERM, SIG_IGN);
        sleep(60);
      }
      _exit(0);
    }
    wait(nullptr);
    if (mine) usleep(300'000), _exit(4);
  }
  if (mode == "differ") {
    if (mine)
      board_rank::wait_for(*own, far::job_board::waiting::get,
                           static_cast<std::uint32_t>((my_rank + 1) % ranks), 6);
    say_ready();
    wait_forever();
  }
  if (mode == "hang") say_ready();
  if (mode == "kill" || mode == "eat" || mode == "exit" || mode == "vanish" || mode == "throw" ||
      mode == "throw_hang" || mode == "deaf" || mode == "family" || mode == "unborn" ||
      mode == "refuse" || mode == "hang")
    wait_forever();

  if (mode == "env") {
    const char* value = getenv(argv[2]);
    printf("%d %s\n", my_rank, value ? value : "(unset)");
  }
  if (mode == "stdin") {
    int bytes = 0;
    while (getchar() != EOF) ++bytes;
    printf("%d read %d\n", my_rank, bytes);
  }
  if (mode == "lines") {
    std::string filler(200, static_cast<char>('a' + my_rank));
    for (int i = 0; i < number; ++i) printf("%s\n", filler.c_str());
    fprintf(stderr, "error of %d", my_rank);  // a line without an end
  }
  if (mode == "arguments")
    for (int i = 2; i < argc; ++i) printf("%d <%s>\n", my_rank, argv[i]);

  own->waits = far::job_board::wait{};
  library_end();
  own->state = far::job_board::rank_state::finished;
  return mode == "late" && mine ? number : 0;
}
