// The board: a page of memory that a launcher shares with the ranks it started on its host.
//
// Each rank has a slot. The rank writes what it is doing; its supervisor writes how it ended;
// the launcher reads both, so that it can name the rank that died, tell a rank that finished
// from one that merely exited, and say what a hanging job waits for. Nothing here belongs to a
// back end: the launcher is one program for all of them.
//
//   unborn --runtime starts--> running --runtime ends----------------> finished
//                                 |\--exception leaves the runtime---> failed
//                                 \--far::refusal leaves far::run----> refused
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace far::job_board {

/// Environment through which the launcher speaks to its ranks.
inline constexpr const char* board_variable = "FARSIDE_BOARD";        ///< path of the board
inline constexpr const char* slot_variable = "FARSIDE_SLOT";          ///< this rank's slot
inline constexpr const char* segments_variable = "FARSIDE_SEGMENTS";  ///< smp: path of the memory
inline constexpr const char* rank_variable = "FARSIDE_RANK";          ///< smp: this rank
inline constexpr const char* nprocs_variable = "FARSIDE_NPROCS";      ///< smp: how many ranks
inline constexpr const char* threads_variable = "FARSIDE_THREADS";    ///< smp: ranks are threads
inline constexpr const char* carrier_variable = "FARSIDE_CARRIER";  ///< any: path of its transport

enum class rank_state : std::uint32_t { unborn, running, finished, failed, refused };

/// What a rank waits for. `nothing` is a rank that computes.
enum class waiting : std::uint32_t {
  nothing,
  starting,
  barrier,
  collective,
  future,
  get,
  put,
  atomic,
  flush,
  ending,
  requests,
  pop,
  push,
  lock,
  unlock,
  reply,
  room,
  exchange,
  answer,
  others,
  barrier_in_handler,
  collective_in_handler,
  sums
};
inline constexpr waiting last_wait = waiting::sums;

inline const char* name_of(waiting what) {
  constexpr const char* names[] = {"nothing: it computes",
                                   "the other ranks to start",
                                   "a barrier",
                                   "a collective",
                                   "a future",
                                   "a get",
                                   "a put",
                                   "an atomic",
                                   "a flush",
                                   "the other ranks to leave far::run",
                                   "requests of others",
                                   "an element to pop from the empty queue",
                                   "room to push to the full queue",
                                   "the lock of mutex",
                                   "the next owner, to unlock mutex",
                                   "a future, inside a handler",
                                   "room for a message",
                                   "messages of others, to finish exchange",
                                   "the answer of an owner, for an operation on",
                                   "another rank's change of a container",
                                   "a barrier, inside a handler",
                                   "a collective, inside a handler",
                                   "another rank's accumulate to the same place"};
  return names[static_cast<std::uint32_t>(what)];
}

inline std::uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

inline constexpr std::uint32_t no_rank = 0xffff'ffffu;

/// One word, so that a rank says it by one store.
struct alignas(8) wait {
  waiting what = waiting::nothing;
  std::uint32_t on = no_rank;  ///< the rank waited for, or no_rank
};

/// One collective that a rank has entered, as the user wrote it. The rank writes `number` last, and
/// clears it first when it uses the entry again: a reader that finds the same number before and
/// after has read one call. `file` follows late, when somebody may want to know.
struct called {
  std::atomic<std::uint64_t> number;  ///< among those of the team of all ranks, from 1
  char name[40];                      ///< all_reduce
  char file[68];                      ///< empty: not known, or not yet
  std::uint32_t line;
};

/// How a rank came to its end, if it has.
enum class leaving : std::uint32_t { no, far_run, runtime };

inline constexpr std::size_t kept_calls = 8;  ///< a rank is ahead of others by one or two

/// One rank's slot. Every field is written by one side only: the rank writes all but
/// `wait_status`, which its supervisor writes once the process has been reaped.
struct alignas(64) slot {
  std::atomic<std::uint32_t> pid;            ///< 0 until the runtime starts
  std::atomic<rank_state> state;             ///< see the diagram above
  std::atomic<std::uint32_t> rank;           ///< far::rank(), may differ from the slot;
                                             ///< of who only serves others: `world` and more
  std::atomic<std::uint32_t> world;          ///< far::nprocs() as this rank sees it
  std::atomic<wait> waits;                   ///< valid while running
  std::atomic<std::uint64_t> waits_since;    ///< monotonic_ns() when the wait began; 0: not known
  std::atomic<std::uint64_t> collectives;    ///< barriers and collectives entered so far
  std::atomic<std::uint32_t> supervisor;     ///< pid of the supervisor, 0 if there is none
  std::atomic<std::uint32_t> reaped;         ///< 1 once wait_status is valid
  std::atomic<std::uint32_t> wait_status;    ///< as waitpid() gave it
  std::atomic<std::uint32_t> message_ready;  ///< 1 once `message` is complete
  std::atomic<std::uint32_t> secondary_failure;  ///< 1: ends only because another rank has died
  char message[1000];                            ///< why the rank failed, in its own words

  // What a hang is decided by (base/verdict.hpp).
  std::atomic<leaving> left;           ///< it has left far::run, and enters no collective any more
  std::atomic<std::uint32_t> threads;  ///< 1: other threads of this rank may use the library too
  std::atomic<std::uint64_t> inside;   ///< the number of the collective of all ranks it is in, or 0
  std::atomic<std::uint64_t> entered;  ///< how many collectives of all ranks it has entered
  std::atomic<std::uint64_t> rounds;   ///< how often it has looked around while it waited
  std::atomic<std::uint64_t> activity;  ///< what it has done while it waited: messages and the like
  called calls[kept_calls];             ///< the last collectives of all ranks; number n is at n % 8
  called call;       ///< what it is in, over any team; its number is `collectives`
  char subject[64];  ///< what it waits for has this name; empty: none
  std::atomic<std::uint32_t> subject_ready;
  std::atomic<std::uint32_t> frames_ready;  ///< 1 once `frames` is complete
  std::uint64_t frames[48];                 ///< its stack, when it was asked; 0 ends it

  void say(const char* text) {
    if (message_ready.load(std::memory_order_acquire)) return;  // the first cause counts
    std::size_t n = std::min(std::strlen(text), sizeof message - 1);
    std::memcpy(message, text, n);
    message[n] = '\0';
    message_ready.store(1, std::memory_order_release);
  }
};

inline constexpr std::uint64_t board_magic = 0x32'64'72'61'6f'62'72'66;  // "frboard2"

/// The slots follow the header directly.
struct alignas(64) board {
  std::uint64_t magic;
  std::uint32_t slots;

  slot& operator[](std::size_t i) { return reinterpret_cast<slot*>(this + 1)[i]; }

  static std::size_t bytes(std::size_t slots) { return sizeof(board) + slots * sizeof(slot); }

  /// Maps the board behind `path`; nullptr if there is none (another host, or no launcher).
  static board* open(const char* path) {
    int fd = ::open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return nullptr;
    board* result = map(fd);
    ::close(fd);
    return result;
  }

  static board* map(int fd) {
    off_t size = lseek(fd, 0, SEEK_END);
    if (size < static_cast<off_t>(sizeof(board))) return nullptr;
    void* at =
        mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return nullptr;
    auto* result = static_cast<board*>(at);
    return result->magic == board_magic ? result : nullptr;
  }
};

}  // namespace far::job_board
