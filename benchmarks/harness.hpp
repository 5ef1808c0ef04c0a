// What every benchmark here shares: options, measuring against a floor, the table and the JSON.
//
//   int main(int argc, char** argv) {
//     return far::run(argc, argv, [](int argc, char** argv) {
//       return far::bench::main(argc, argv, "Measures ...", [](far::bench::suite& s) {
//         s.compare("name", far::bench::time_of_one(), ours, floor);
//       });
//     });
//   }
//
// `ours` and `floor` take a number of iterations and do them. The floor is the least that the same
// work costs without the library, on the same memory. Both run in short slices that alternate, so
// that drift of the machine meets both alike:
//
//   calibrate | floor ours | ours floor | floor ours | ...      `reps` slices of each
//
// All ranks enter a slice after a barrier; its time is that of the slowest rank. Figures are
// medians over the slices, spread is (75th - 25th percentile) / median of our slices.
#pragma once

#include <farside/base/json.hpp>
#include <farside/farside.hpp>
#include <toolkit/option_reader.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace far::bench {

/// The compiler must assume that `value` is used, and that memory changes here.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "r"(value) : "memory");
}

/// `value`, of which the compiler knows nothing.
template <class T>
inline T opaque(T value) {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

/// Name of this build and run, as in the names of tests: smp, smp-threads, openmpi, openmpi-rma,
/// ...
inline std::string backend_name();

/// Work that cannot go on for ever: `prepare` comes before each slice and is not measured, and a
/// slice has at most `most` iterations.
template <class Prepare, class Work>
struct prepared {
  std::size_t most;
  Prepare prepare;
  Work work;
  auto operator()(std::size_t n) { return work(n); }
};
template <class Prepare, class Work>
prepared(std::size_t, Prepare, Work) -> prepared<Prepare, Work>;

/// What is computed from the time of one iteration.
struct measure {
  const char* unit;
  double bytes;  ///< 0: a time in nanoseconds; else a bandwidth of so many bytes an iteration
  bool of_cpu = false;  ///< time that this process computed, not time that passed

  double value(double nanoseconds) const { return bytes == 0 ? nanoseconds : bytes / nanoseconds; }
};
inline measure time_of_one() { return {"ns", 0}; }
/// For work that neither communicates nor waits: what others do on the machine counts less.
inline measure cpu_time_of_one() { return {"ns", 0, true}; }
inline measure bandwidth(std::size_t bytes) { return {"GB/s", static_cast<double>(bytes)}; }

/// Where a measurement goes in a figure.
struct point {
  std::string figure, x_label, series;
  double x;
};

/// One line of the table and one object of the JSON list; floor 0 means that there is none.
struct record {
  std::string name;
  std::string unit;
  double median, spread, floor;
  std::optional<point> drawn{};
  double ratio() const { return median / floor; }
};

struct options {
  int reps = 15;
  double slice = 3e6;  ///< nanoseconds
  bool quick = false;
  std::string json, points, filter;
  bool help = false;
};

/// Measures, prints and remembers. Made alike on all ranks; all calls are collective.
class suite {
 public:
  explicit suite(const options& chosen) : options_(chosen) {}

  /// Whether `--filter` chooses this name. Ask before expensive preparations.
  bool wants(std::string_view name) const {
    return name.find(options_.filter) != std::string_view::npos;
  }
  /// Whether `--filter` names this part of a name: for what is measured when asked for only.
  bool asks_for(std::string_view part) const {
    return options_.filter.find(part) != std::string::npos;
  }

  /// Whether this run is for seeing that it works: inputs may be small.
  bool is_quick() const { return options_.quick; }

  /// A line of text between the measurements.
  void say(const std::string& text) const {
    if (rank() == 0) std::printf("%s\n", text.c_str()), std::fflush(stdout);
  }

  template <class Ours, class Floor>
  void compare(const std::string& name, measure what, Ours ours, Floor floor) {
    if (!wants(name)) return;
    std::size_t our_count = calibrate(ours, what), floor_count = calibrate(floor, what);
    std::vector<double> our_times, floor_times;
    auto run_ours = [&] { our_times.push_back(what.value(slice(ours, our_count, what))); };
    auto run_floor = [&] { floor_times.push_back(what.value(slice(floor, floor_count, what))); };
    for (int i = 0; i < options_.reps; ++i) {
      if (i % 2 == 0) run_floor(), run_ours();
      if (i % 2 == 1) run_ours(), run_floor();
    }
    add({name, what.unit, at(our_times, 0.5), spread(our_times), at(floor_times, 0.5)});
  }

  /// For what has no floor.
  template <class Ours>
  void measure_alone(const std::string& name, measure what, Ours ours,
                     std::optional<point> drawn = {}) {
    if (!wants(name)) return;
    std::size_t count = calibrate(ours, what);
    std::vector<double> times;
    for (int i = 0; i < options_.reps; ++i) times.push_back(what.value(slice(ours, count, what)));
    add({name, what.unit, at(times, 0.5), spread(times), 0, std::move(drawn)});
  }

  const std::vector<record>& records() const { return records_; }

 private:
  static double nanoseconds(measure what) {
    if (what.of_cpu) {
      std::timespec now{};
      ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
      return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
    }
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::nano>(now).count();
  }

  /// Nanoseconds an iteration, of the slowest rank. Work that returns a number has measured itself.
  template <class Work>
  static double slice(Work& work, std::size_t count, measure what) {
    if constexpr (requires { work.prepare(); }) work.prepare();
    barrier();
    double begin = nanoseconds(what), mine = 0;
    if constexpr (std::is_same_v<decltype(work(count)), double>) {
      mine = work(count);
    } else {
      work(count);
      mine = nanoseconds(what) - begin;
    }
    return all_reduce(mine, maximum()) / static_cast<double>(count);
  }

  /// How many iterations fill a slice; warms up as well. The same on all ranks.
  template <class Work>
  std::size_t calibrate(Work& work, measure what) const {
    std::size_t count = 1, most = ~std::size_t{0};
    if constexpr (requires { work.most; }) most = work.most;
    for (;;) {
      double took = slice(work, count, what) * static_cast<double>(count);
      double factor = std::clamp(options_.slice / std::max(took, 1.0), 0.0, 16.0);
      bool enough = factor < 2 || count == most;
      count = static_cast<std::size_t>(static_cast<double>(count) * factor);
      count = std::clamp<std::size_t>(count, 1, most);
      if (enough) return count;
    }
  }

  /// The value below which the given part of them lies, interpolated.
  static double at(std::vector<double> values, double part) {
    std::sort(values.begin(), values.end());
    double place = part * static_cast<double>(values.size() - 1);
    auto below = static_cast<std::size_t>(place);
    auto above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
  }
  static double spread(const std::vector<double>& values) {
    return (at(values, 0.75) - at(values, 0.25)) / at(values, 0.5);
  }

  void add(record r);

  options options_;
  std::vector<record> records_;
  std::size_t name_width_ = 44;
};

// ---- output -----------------------------------------------------------------------------------

/// Four digits, and no more after the point than mean something.
inline std::string number(double value) {
  char text[32];
  int digits = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

inline void suite::add(record r) {
  if (rank() == 0) {
    if (records_.empty())
      std::printf("%-*s %5s %11s %11s %7s %7s\n", static_cast<int>(name_width_), "", "unit", "ours",
                  "floor", "ratio", "spread");
    bool floor = r.floor != 0;
    std::printf("%-*s %5s %11s %11s %7s %6.1f%%\n", static_cast<int>(name_width_), r.name.c_str(),
                r.unit.c_str(), number(r.median).c_str(), floor ? number(r.floor).c_str() : "-",
                floor ? number(r.ratio()).c_str() : "-", 100 * r.spread);
    std::fflush(stdout);
  }
  records_.push_back(std::move(r));
}

/// A JSON list of objects with the keys name, backend, ranks, unit, median, spread, floor, ratio.
inline void write_json(std::ostream& out, const std::vector<record>& records) {
  json_writer json;
  json.begin_list(json_lines::many);
  for (const record& r : records) {
    json.begin_object().key("name").value(r.name).key("backend").value(backend_name());
    json.key("ranks").value(nprocs()).key("unit").value(r.unit);
    json.key("median").value(r.median).key("spread").value(r.spread);
    auto of_floor = [&](const char* key, double value) {
      r.floor != 0 ? json.key(key).value(value) : json.key(key).value(nullptr);
    };
    of_floor("floor", r.floor);
    of_floor("ratio", r.ratio());
    json.end_object();
  }
  out << json.end_list().text() << '\n';
}

/// What `farside bench` draws: a line of figure, label of x, series, unit, x and median
/// each, tabs between.
inline void write_points(std::ostream& out, const std::vector<record>& records) {
  for (const record& r : records)
    if (r.drawn)
      out << r.drawn->figure << '\t' << r.drawn->x_label << '\t' << r.drawn->series << '\t'
          << r.unit << '\t' << r.drawn->x << '\t' << r.median << '\n';
}

/// The first part of backend_name(): what carries it.
inline std::string transport_name() {
  std::string_view note = FARSIDE_BACKEND_NOTE;
  if (note.starts_with("mpi ")) note.remove_prefix(4);
  if (note.starts_with("shmem")) note = "shmem";
  return std::string(note);
}

/// A setting of the environment; empty if there is none.
inline std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// Whether a thread of each rank serves messages, or each rank itself.
inline bool served_by_thread() { return chosen_attention() == attention::thread; }

/// How ranks reach each other's memory.
inline std::string strategy_name() {
  if (native().coherent()) return "shared memory";
#if defined(FARSIDE_USE_MPI)
  std::string chosen = setting("FARSIDE_MPI");
  return chosen.empty() ? "rma" : chosen;
#else
  return "calls of " + transport_name();
#endif
}

inline std::string backend_name() {
  std::string result = transport_name();
#if defined(FARSIDE_USE_MPI)
  if (!native().coherent())
    result += setting("FARSIDE_MPI_STRICT") == "1" ? "-strict" : "-" + strategy_name();
#endif
  if (served_by_thread()) result += "-attentive";
  if (!setting("FARSIDE_THREADS").empty()) result += "-threads";
  if (FARSIDE_CHECKED) result += "-checked";
  return result;
}

// ---- options ----------------------------------------------------------------------------------

inline constexpr const char* options_text = R"(
  --quick              fewer and shorter slices: a look, not a measurement
  --reps N             how many slices of each measurement; 15 by default
  --filter TEXT        only measurements whose name contains TEXT
  --json FILE          also writes the figures as a JSON list
  --points FILE        writes what belongs into a plot, for `farside bench`
  --help               prints this

ours and floor alternate in slices of 3 ms; figures are medians over the slices, of the slowest
rank in each. ratio = ours / floor: less is better for ns, more for GB/s. spread is the middle
half of our slices, relative to the median.
)";

inline options parse(const std::vector<std::string>& words) {
  options result;
  bool reps_given = false;
  toolkit::option_reader word(words);
  auto value = [&](const char* example) {
    std::string text = word.value();
    if (text.empty())
      throw toolkit::wrong_option(word.name() + " needs a value, as in '" + word.name() + " " +
                                  example + "'");
    return text;
  };
  while (word.next()) {
    if (word.is("--quick")) {
      word.no_value(), result.quick = true;
    } else if (word.is("--reps")) {
      result.reps = static_cast<int>(toolkit::whole_number("--reps", value("15"), 1, 10000));
      reps_given = true;
    } else if (word.is("--filter")) {
      result.filter = value("get");
    } else if (word.is("--json")) {
      result.json = value("figures.json");
    } else if (word.is("--points")) {
      result.points = value("points.tsv");
    } else if (word.is("-h", "--help")) {
      result.help = true;
    } else {
      throw toolkit::wrong_option(word.text() +
                                  ": there is no such option; --help lists those there are");
    }
  }
  if (result.quick) {
    result.slice = 5e5;
    if (!reps_given) result.reps = 5;
  }
  return result;
}

/// The whole of a benchmark program, within a rank. Returns its exit status.
template <class Body>
int main(int argc, char** argv, const char* purpose, Body body) {
  const std::string program = std::string(argv[0]).substr(std::string(argv[0]).rfind('/') + 1);
  const bool speaks = rank() == 0;
  options chosen;
  std::ofstream json, points;
  try {
    chosen = parse(toolkit::words_of(argc, argv));
    if (chosen.help) {
      if (speaks)
        std::printf("usage: %s [options]\n\n%s\n%s", program.c_str(), purpose, options_text);
      return 0;
    }
    auto open = [&](std::ofstream& file, const char* option, const std::string& path) {
      if (path.empty()) return;
      if (speaks) file.open(path);  // now, not after minutes of measuring
      if (!broadcast(!speaks || file.is_open(), 0))
        throw toolkit::wrong_option(
            option + (" " + path) +
            ": that file cannot be written; check the folder and its rights");
    };
    open(json, "--json", chosen.json);
    open(points, "--points", chosen.points);
  } catch (const toolkit::wrong_option& problem) {
    if (speaks) std::fprintf(stderr, "%s: %s\n", program.c_str(), problem.what());
    return 2;
  }
  suite measurements(chosen);
  measurements.say(text(program, ": ", backend_name(), ", ", nprocs(),
                        nprocs() == 1 ? " rank" : " ranks", ", ", chosen.reps, " slices of ",
                        chosen.slice / 1e6, " ms each"));
  body(measurements);
  if (measurements.records().empty()) {
    if (speaks)
      std::fprintf(stderr,
                   "%s: --filter '%s': no measurement's name contains that; run without it to see "
                   "the names\n",
                   program.c_str(), chosen.filter.c_str());
    return 2;
  }
  int status = 0;
  auto close = [&](std::ofstream& file, const char* option, const std::string& path) {
    file.close();
    if (file) return;
    std::fprintf(stderr, "%s: %s %s: could not be written to the end; is the disk full?\n",
                 program.c_str(), option, path.c_str());
    status = 1;
  };
  if (json.is_open()) {
    write_json(json, measurements.records());
    close(json, "--json", chosen.json);
  }
  if (points.is_open()) {
    write_points(points, measurements.records());
    close(points, "--points", chosen.points);
  }
  return status;
}

}  // namespace far::bench
