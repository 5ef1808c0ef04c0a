// The report of FARSIDE_STATS: collected from all ranks when the runtime ends, by rank 0.
#pragma once

#include <farside/base/json.hpp>
#include <farside/core/collectives.hpp>

#include <cstdio>
#include <string>

namespace far::inline FARSIDE_BACKEND::detail {

struct job_statistics {
  std::vector<operation_totals> ranks;               ///< by rank
  std::vector<std::vector<std::uint64_t>> messages;  ///< [from][to]
  std::vector<std::vector<std::uint64_t>> bytes;
};

inline operation_totals sum_of(const job_statistics& job) {
  operation_totals all;
  for (const auto& rank : job.ranks)
    for (std::size_t k = 0; k < operation_kinds; ++k) all.kinds[k] += rank.kinds[k];
  return all;
}

/// A number that fits a narrow column: 1234567 -> "1.23M".
inline std::string short_number(double n) {
  const char* suffixes[] = {"", "k", "M", "G", "T"};
  int i = 0;
  while (n >= 1000 && i < 4) n /= 1000, ++i;
  char text[32];
  std::snprintf(text, sizeof text, i == 0 ? "%.0f%s" : "%.3g%s", n, suffixes[i]);
  return text;
}

/// The back end of this job, by name.
template <class Link>
const char* backend_name(const Link& link) {
  if constexpr (names_its_carrier<Link>)
    return link.carried_by();
  else
    return Link::name;
}

inline void print_report(const job_statistics& job) {
  auto n = job.ranks.size();
  operation_totals all = sum_of(job);
  std::FILE* out = stderr;
  std::fprintf(out, "\nwhere communication went (%zu ranks, back end %s)\n", n,
               backend_name(here().link));
  std::fprintf(out, "  %-11s %12s %12s %12s %12s\n", "operation", "count", "bytes", "ns each",
               "ms a rank");
  for (std::size_t k = 0; k < operation_kinds; ++k) {
    const auto& total = all.kinds[k];
    if (total.count == 0) continue;
    std::fprintf(out, "  %-11s %12s %12s %12.0f %12.2f\n", name_of(static_cast<operation>(k)),
                 short_number(static_cast<double>(total.count)).c_str(),
                 human_size(static_cast<double>(total.bytes)).c_str(),
                 static_cast<double>(total.nanoseconds) / static_cast<double>(total.count),
                 static_cast<double>(total.nanoseconds) / 1e6 / static_cast<double>(n));
  }
  if (n < 2) return;
  constexpr std::size_t most = 12;  // a wider table is for the JSON file
  if (n > most) {
    std::fprintf(
        out, "  who to whom: %zu ranks are too many for a table; FARSIDE_STATS=file.json has it\n",
        n);
    return;
  }
  std::fprintf(out, "\n  gets, puts and atomics, who (down) to whom (across)\n       ");
  for (std::size_t to = 0; to < n; ++to) std::fprintf(out, "%8zu", to);
  for (std::size_t from = 0; from < n; ++from) {
    std::fprintf(out, "\n  %5zu", from);
    for (std::size_t to = 0; to < n; ++to) {
      std::uint64_t count = job.messages[from][to];
      std::fprintf(out, "%8s", count == 0 ? "." : short_number(static_cast<double>(count)).c_str());
    }
  }
  std::fprintf(out, "\n\n");
}

inline void write_report(const job_statistics& job, const std::string& path) {
  std::FILE* out = path == "-" ? stdout : std::fopen(path.c_str(), "w");
  if (out == nullptr) {
    std::fprintf(stderr, "farside: cannot write the statistics to FARSIDE_STATS=%s: %s\n",
                 path.c_str(), std::strerror(errno));
    return;
  }
  json_writer json;
  json.begin_object().key("backend").value(backend_name(here().link));
  json.key("ranks").value(job.ranks.size()).key("per_rank").begin_list(json_lines::many);
  for (std::size_t r = 0; r < job.ranks.size(); ++r) {
    json.begin_object().key("rank").value(r);
    for (std::size_t k = 0; k < operation_kinds; ++k) {
      const auto& total = job.ranks[r].kinds[k];
      json.key(name_of(static_cast<operation>(k))).begin_object();
      json.key("count").value(total.count).key("bytes").value(total.bytes);
      json.key("ns").value(total.nanoseconds).end_object();
    }
    for (auto [name, matrix] :
         {std::pair("messages_to", &job.messages), std::pair("bytes_to", &job.bytes)}) {
      json.key(name).begin_list();
      for (std::uint64_t to : (*matrix)[r]) json.value(to);
      json.end_list();
    }
    json.end_object();
  }
  json.end_list().end_object();
  std::fprintf(out, "%s\n", json.text().c_str());
  if (out == stdout) return;  // the program's exit says if it was not written
  if (std::fclose(out) != 0)
    std::fprintf(stderr, "farside: writing the statistics to %s failed: %s\n", path.c_str(),
                 std::strerror(errno));
}

/// Collective. Counting stops: what follows is the report's own traffic.
inline void report_statistics(context& c) {
  auto counts = [&] {
    std::lock_guard lock(c.mutex);
    return c.counts.stop();
  }();
  set_current(&c);
  counting_changed(c);
  std::string target = c.stats_target;
  if (!counts || target.empty()) return;
  job_statistics job;
  job.ranks = gather(counts->totals, 0);
  job.messages = gather(counts->messages_to, 0);
  job.bytes = gather(counts->bytes_to, 0);
  if (c.link.rank() != 0) return;
  if (target == "1")
    print_report(job);
  else
    write_report(job, target);
}

}  // namespace far::inline FARSIDE_BACKEND::detail

namespace far::inline FARSIDE_BACKEND::stats {

/// Begins to count on this rank. Local; no communication.
inline void enable() {
  detail::context& c = detail::here();
  {
    std::lock_guard lock(c.mutex);
    if (c.counts) return;
    c.counts.begin(c.link.nprocs());
  }
  if (detail::current == &c) detail::set_current(&c);
  detail::counting_changed(c);
}

/// Counts no more on this rank, until enable() goes on. Operations are fastest then. Local;
/// no communication.
inline void disable() {
  detail::context& c = detail::here();
  {
    std::lock_guard lock(c.mutex);
    if (!c.counts.interrupt()) return;
  }
  if (detail::current == &c) detail::set_current(&c);
  detail::counting_changed(c);
}

/// What this rank has counted so far; all zero while nobody counts. Local; no communication.
inline operation_totals snapshot() {
  detail::context& c = detail::here();
  std::lock_guard lock(c.mutex);
  return c.counts ? c.counts->totals : operation_totals();
}

}  // namespace far::inline FARSIDE_BACKEND::stats
