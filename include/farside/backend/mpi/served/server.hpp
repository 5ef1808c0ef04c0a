// The server: receives requests from anybody, executes them on the segments of its group, answers.
// It never waits: whatever takes time is begun, and looked after later. An accumulate to a block
// that another process is adding to at this moment (stripe_locks.hpp) stays at the head, for the
// next call.
//
// Receives are posted ahead, and messages match them in the order in which they were posted: the
// head of the ring is always the next request. A request is executed when it has come to the head,
// so the requests of one client are executed in the order in which it sent them. Only the bytes of
// a long put land later; its answer says when.
//
//   posted --a message arrives--> at the head --executed--> posted again
//                                       \---- answer: sending --gone--> free
//                                        \--- long put: arriving --all there--> answer
//
// Memory is bounded: a client has at most `slots` requests under way, and with too many answers
// under way the server takes no further requests until some are gone. That cannot deadlock: a
// client has posted the receive of its answer before it asked.
#pragma once

#include <farside/backend/mpi/served/execute.hpp>
#include <farside/backend/mpi/served/message.hpp>
#include <farside/backend/shared/shared_memory.hpp>

#include <mpi.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served {

class server {
 public:
  server() = default;
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  /// Posts the receives. `memory` holds the segments of the group, and must stay.
  /// `me` is the number of this process.
  void open(MPI_Comm requests, MPI_Comm answers, shared_memory& memory, const limits& limit,
            rank_t me);
  /// When nobody will ask any more.
  void close();
  bool is_open() const { return !ring_.empty(); }

  /// Executes what has arrived, at most `most` requests; how many there were.
  int serve(int most) {
    int served = 0;
    for (; served < most && sending_.size() < most_answers; ++served) {
      posted& head = ring_[head_];
      if (!blocked_) {
        int arrived = 0;
        MPI_Status status;
        MPI_Test(&head.receive, &arrived, &status);
        if (!arrived) break;
        client_of_head_ = status.MPI_SOURCE;
        added_ = 0;
      }
      blocked_ = !handle(head.message.get(), client_of_head_);
      if (blocked_) break;
      MPI_Start(&head.receive);
      head_ = (head_ + 1) % ring_.size();
    }
    if (!sending_.empty()) std::erase_if(sending_, [&](answer& a) { return gone(a); });
    if (!arriving_.empty()) std::erase_if(arriving_, [&](arrival& a) { return all_there(a); });
    return served;
  }

 private:
  static constexpr std::size_t ring_size = 32, most_answers = 1024;

  struct posted {
    MPI_Request receive = MPI_REQUEST_NULL;
    std::unique_ptr<char[]> message;
  };
  struct answer {
    MPI_Request send = MPI_REQUEST_NULL;
    std::unique_ptr<char[]> copy;  ///< what is being sent, if it is not the segment itself
    bool small = false;            ///< of 8 bytes, and worth keeping
  };
  struct arrival {
    MPI_Request receive;
    int client;
    std::uint32_t slot;
  };

  /// False: not all of it could be done now, and it is to be called again.
  bool handle(const char* message, int client) {
    header h;
    std::memcpy(&h, message, sizeof h);
    switch (h.what) {
      case kind::put:
        memory_->put(h.local, h.offset, message + sizeof h, h.bytes);
        break;
      case kind::accumulate:
        if (!execute_additions(*memory_, h, message + sizeof h, added_, me_)) return false;
        break;
      case kind::put_runs: {
        const char* from = message + sizeof h;
        for_each_piece(runs_of(h, from + place_of_runs(h.bytes)),
                       [&](std::uint64_t offset, std::size_t bytes) {
                         memory_->put(h.local, offset, from, bytes);
                         from += bytes;
                         return true;
                       });
        break;
      }
      case kind::accumulate_runs: {
        const char* from = message + sizeof h;
        auto where = runs_of(h, from + place_of_runs(h.bytes));
        if (!execute_additions(*memory_, h, where, from, added_, me_)) return false;
        break;
      }
      case kind::get_runs:
        return send_runs(h, runs_of(h, message + sizeof h), client), true;
      case kind::signal:
        memory_->signal(h.local, h.offset);
        break;
      case kind::get:
        return send_bytes(h, client), true;
      case kind::long_put:
        return receive_bytes(h, client), true;
      case kind::fence:
        break;
      default: {
        std::uint64_t old = execute(*memory_, h);
        return send_small(&old, h.width, client, h.slot), true;
      }
    }
    if (h.answered) confirm(client, h.slot);
    return true;
  }

  /// A rank that is told that its puts are complete tells others, which may look by loads.
  void confirm(int client, std::uint32_t slot) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    send_small(nullptr, 0, client, slot);
  }

  void send_small(const void* from, int bytes, int client, std::uint32_t slot) {
    answer a;
    if (bytes != 0) {
      a.copy = take_small();
      a.small = true;
      std::memcpy(a.copy.get(), from, static_cast<std::size_t>(bytes));
    }
    MPI_Isend(a.copy.get(), bytes, MPI_BYTE, client, static_cast<int>(slot), answers_, &a.send);
    if (!gone(a)) sending_.push_back(std::move(a));
  }

  void send_bytes(const header& h, int client) {
    answer a;
    const char* from = static_cast<const char*>(memory_->address(h.local, h.offset));
    if (h.bytes <= limit_.copied_get) {  // words are read whole, whatever MPI does with them then
      a.copy = std::make_unique_for_overwrite<char[]>(h.bytes);
      memory_->get(h.local, h.offset, a.copy.get(), h.bytes);
      from = a.copy.get();
    }
    MPI_Isend(from, static_cast<int>(h.bytes), MPI_BYTE, client, static_cast<int>(h.slot), answers_,
              &a.send);
    if (!gone(a)) sending_.push_back(std::move(a));
  }

  static std::span<const run> runs_of(const header& h, const char* at) {
    return {reinterpret_cast<const run*>(at), static_cast<std::size_t>(h.value)};
  }

  void send_runs(const header& h, std::span<const run> where, int client) {
    answer a;
    a.copy = std::make_unique_for_overwrite<char[]>(h.bytes);
    char* to = a.copy.get();
    for_each_piece(where, [&](std::uint64_t offset, std::size_t bytes) {
      memory_->get(h.local, offset, to, bytes);
      to += bytes;
      return true;
    });
    MPI_Isend(a.copy.get(), static_cast<int>(h.bytes), MPI_BYTE, client, static_cast<int>(h.slot),
              answers_, &a.send);
    if (!gone(a)) sending_.push_back(std::move(a));
  }

  void receive_bytes(const header& h, int client) {
    arrival a{MPI_REQUEST_NULL, client, h.slot};
    MPI_Irecv(memory_->address(h.local, h.offset), static_cast<int>(h.bytes), MPI_BYTE, client,
              data_tag + static_cast<int>(h.slot), requests_, &a.receive);
    if (!all_there(a)) arriving_.push_back(a);
  }

  bool gone(answer& a) {
    int done = 0;
    MPI_Test(&a.send, &done, MPI_STATUS_IGNORE);
    if (done && a.small) small_.push_back(std::move(a.copy));
    return done != 0;
  }

  bool all_there(arrival& a) {
    int done = 0;
    MPI_Test(&a.receive, &done, MPI_STATUS_IGNORE);
    if (done) confirm(a.client, a.slot);
    return done != 0;
  }

  std::unique_ptr<char[]> take_small() {
    if (small_.empty()) return std::make_unique_for_overwrite<char[]>(8);
    auto result = std::move(small_.back());
    small_.pop_back();
    return result;
  }

  MPI_Comm requests_ = MPI_COMM_NULL, answers_ = MPI_COMM_NULL;
  shared_memory* memory_ = nullptr;
  limits limit_{};
  rank_t me_ = 0;
  std::vector<posted> ring_;
  std::size_t head_ = 0;
  bool blocked_ = false;    ///< the request at the head has come, and could not be done at once
  int client_of_head_ = 0;  ///< who has sent it, then
  std::size_t added_ = 0;   ///< bytes of an accumulate at the head that are done
  std::vector<answer> sending_;
  std::vector<arrival> arriving_;
  std::vector<std::unique_ptr<char[]>> small_;  ///< buffers of 8 bytes, to be used again
};

inline void server::open(MPI_Comm requests, MPI_Comm answers, shared_memory& memory,
                         const limits& limit, rank_t me) {
  me_ = me;
  requests_ = requests;
  answers_ = answers;
  memory_ = &memory;
  limit_ = limit;
  std::size_t bytes = sizeof(header) + limit.inline_put;
  ring_.resize(ring_size);
  for (posted& p : ring_) {
    p.message = std::make_unique_for_overwrite<char[]>(bytes);
    MPI_Recv_init(p.message.get(), static_cast<int>(bytes), MPI_BYTE, MPI_ANY_SOURCE, request_tag,
                  requests, &p.receive);
  }
  for (posted& p : ring_) MPI_Start(&p.receive);
}

inline void server::close() {
  while (!sending_.empty() || !arriving_.empty()) serve(0);
  for (posted& p : ring_) {
    MPI_Cancel(&p.receive);
    MPI_Wait(&p.receive, MPI_STATUS_IGNORE);
    MPI_Request_free(&p.receive);
  }
  ring_.clear();
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend::served
