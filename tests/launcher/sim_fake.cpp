// Stands in for a program of the back end sim: understands FARSIDE_SIM_*, simulates nothing, and
// ends in the way it is told.  `sim_fake MODE [NUMBER...]`
//
//   ok                   a good run of 1000 steps, 100 operations and 50 deliveries a rank
//   SEEDS KIND           KIND happens to every seed that is a multiple of SEEDS: failed, deadlock,
//                        steps, crash, hang, status, silent, chatter, family
//   window A B LEVEL     fails if the adversary acts in all steps from A to B, at LEVEL or above
//   window_crash A B LEVEL   the same, killed by a signal
//   frail                does not survive a stop of rank 1, nor any failing allocation
//   fickle FILE          fails only if FILE does not exist yet, and makes it
//   environment          prints what it was given
//   addresses            prints where its stack and heap are

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>

namespace {

struct program_note {
  unsigned name_size, description_size, type;
  char name[8];
  char description[24];
};
[[gnu::used, gnu::section(".note.farside"), gnu::aligned(4)]] const program_note note = {
    sizeof note.name, sizeof note.description, 1, "Farside", "sim"};

std::string variable(const char* name, const char* otherwise = "") {
  const char* value = getenv(name);
  return value && *value ? value : otherwise;
}

unsigned long long number(const std::string& text) { return strtoull(text.c_str(), nullptr, 10); }

int level_number(const std::string& name) {
  const char* names[] = {"mild", "normal", "harsh", "cruel"};
  for (int i = 0; i < 4; ++i)
    if (name == names[i]) return i;
  fprintf(stderr, "no such level: '%s'\n", name.c_str());
  exit(9);
}

const unsigned long long ranks = number(variable("FARSIDE_NPROCS", "1"));

int report(const std::string& outcome, unsigned long long steps = 1000,
           const std::string& more = "runs=1") {
  fflush(nullptr);
  if (FILE* file = fopen(variable("FARSIDE_SIM_REPORT").c_str(), "w")) {
    fprintf(file,
            "outcome=%s steps=%llu operations=%llu deliveries=%llu switches=7 allocations=5 %s\n",
            outcome.c_str(), steps, 100 * ranks, 50 * ranks, more.c_str());
    fclose(file);
  }
  return outcome == "ok" || outcome == "faulted" ? 0 : 1;
}

void write_trace() {
  std::string path = variable("FARSIDE_SIM_TRACE");
  if (path.empty()) return;
  FILE* file = fopen(path.c_str(), "w");
  if (!file) return;
  fprintf(file, "trace of seed %s, %s, active %s\n", variable("FARSIDE_SIM_SEED").c_str(),
          variable("FARSIDE_SIM_LEVEL").c_str(), variable("FARSIDE_SIM_ACTIVE", "always").c_str());
  fclose(file);
}

int end_as(const std::string& kind) {
  fprintf(stderr, "rank 1: this is the end: %s\n", kind.c_str());
  if (kind == "crash") raise(SIGSEGV);
  if (kind == "hang")
    for (;;) pause();
  if (kind == "status") return report("ok"), 5;
  if (kind == "silent") return 3;
  if (kind == "family" && fork() == 0)  // a child that would outlive it, and holds its output
    for (;;) pause();
  if (kind == "chatter")
    for (int i = 1; i <= 100'000; ++i) fprintf(stderr, "line %d\n", i);
  return report(kind == "deadlock" || kind == "steps" ? kind : "failed");
}

/// True if the adversary acts in all steps A <= step < B, at `level` or above.
bool acts_in(unsigned long long a, unsigned long long b, int level) {
  std::string active = variable("FARSIDE_SIM_ACTIVE", "0..18446744073709551615");
  std::size_t dots = active.find("..");
  return number(active.substr(0, dots)) <= a && b <= number(active.substr(dots + 2)) &&
         level_number(variable("FARSIDE_SIM_LEVEL", "normal")) >= level;
}

}  // namespace

int main(int argc, char** argv) {
  auto word = [&](int i) { return std::string(i < argc ? argv[i] : ""); };
  std::string mode = word(1);
  if (mode == "addresses") {
    void* heap = malloc(1);
    printf("stack %p heap %p code %p\n", static_cast<void*>(&argc), heap,
           reinterpret_cast<void*>(&end_as));
    free(heap);
  }
  write_trace();
  printf("hello from seed %s\n", variable("FARSIDE_SIM_SEED", "none").c_str());

  if (std::string runs = variable("FARSIDE_SIM_EXHAUSTIVE"); !runs.empty()) {
    unsigned long long bound = number(runs), schedules = 720;
    if (mode == "failed") return report("failed", 4000, "runs=33");
    return bound < schedules ? report("ok", 10 * bound, "runs=" + runs + " complete=0")
                             : report("ok", 7200, "runs=720 complete=1");
  }
  if (mode.starts_with("window")) {
    if (!acts_in(number(word(2)), number(word(3)), level_number(word(4)))) return report("ok");
    fprintf(stderr, "rank 2: the window was open\n");
    if (mode == "window_crash") raise(SIGABRT);
    return report("failed");
  }
  if (mode == "frail") {
    std::string stop = variable("FARSIDE_SIM_STOP"), fail = variable("FARSIDE_SIM_FAIL_ALLOCATION");
    printf("stop '%s' fail '%s'\n", stop.c_str(), fail.c_str());
    if (stop.starts_with("1@") || !fail.empty()) return report("deadlock");
    return report(stop.empty() ? "ok" : "faulted");
  }
  if (mode == "fickle") {
    if (access(word(2).c_str(), F_OK) == 0) return report("ok");
    if (FILE* file = fopen(word(2).c_str(), "w")) fclose(file);
    return end_as("failed");
  }
  if (mode == "environment") {
    extern char** environ;
    for (char** one = environ; *one; ++one)
      if (strncmp(*one, "FARSIDE_", 8) == 0 || strncmp(*one, "COLOUR", 6) == 0) puts(*one);
  }
  bool bad = number(mode) > 0 && number(variable("FARSIDE_SIM_SEED", "1")) % number(mode) == 0;
  return bad ? end_as(word(2)) : report("ok");
}
