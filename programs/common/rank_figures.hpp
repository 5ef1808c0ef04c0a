// Figures of each rank, such as how long its phases took: as a table, and as JSON.
//
//   programs::rank_figures mine;
//   mine.seconds("reading", t);  mine.count("lists", n);
//   std::string table = programs::table_of(mine);      // collective; rank 0 gets it
#pragma once

#include <common/stopwatch.hpp>
#include <farside/base/json.hpp>
#include <farside/core/collectives.hpp>
#include <toolkit/table.hpp>
#include <toolkit/words.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace programs {

/// All ranks have the same figures in the same order.
class rank_figures {
 public:
  void seconds(const std::string& name, double value) { add(name, value, true); }
  void count(const std::string& name, std::uint64_t value) {
    add(name, static_cast<double>(value), false);
  }

  struct figure {
    std::string name;
    bool time;
  };
  const std::vector<figure>& names() const { return names_; }
  /// Collective: those of all ranks, rank by rank.
  std::vector<double> of_all() const {
    return far::all_gather(std::span<const double>(values_), far::world());
  }

 private:
  void add(const std::string& name, double value, bool time) {
    names_.push_back({name, time});
    values_.push_back(value);
  }

  std::vector<figure> names_;
  std::vector<double> values_;
};

/// Collective: a line for each rank, times in milliseconds.
inline std::string table_of(const rank_figures& mine) {
  const std::vector<double> all = mine.of_all();
  const std::size_t n = mine.names().size();
  toolkit::table table(toolkit::columns::figures);
  std::vector<std::string> line{"rank"};
  for (const auto& one : mine.names()) line.push_back(one.name + (one.time ? " ms" : ""));
  table.row(line);
  for (std::size_t rank = 0; rank * n < all.size(); ++rank) {
    line = {std::to_string(rank)};
    for (std::size_t i = 0; i < n; ++i) {
      const double value = all[rank * n + i];
      line.push_back(mine.names()[i].time ? milliseconds(value)
                                          : toolkit::grouped(static_cast<std::uint64_t>(value)));
    }
    table.row(line);
  }
  return table.text();
}

/// Collective: the key "ranks" of an object, a list with an object for each rank, times in seconds.
inline void write_json(far::json_writer& out, const rank_figures& mine) {
  const std::vector<double> all = mine.of_all();
  const std::size_t n = mine.names().size();
  out.key("ranks").begin_list(far::json_lines::many);
  for (std::size_t rank = 0; rank * n < all.size(); ++rank) {
    out.begin_object();
    for (std::size_t i = 0; i < n; ++i) {
      const double value = all[rank * n + i];
      out.key(mine.names()[i].name);
      if (mine.names()[i].time)
        out.value(value);
      else
        out.value(static_cast<std::uint64_t>(value));
    }
    out.end_object();
  }
  out.end_list();
}

/// Seconds that something takes.
template <class Work>
double timed(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace programs
