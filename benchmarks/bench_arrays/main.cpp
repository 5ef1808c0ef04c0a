// Bandwidth of get, put and accumulate of patches of a global array by size, while the rank that
// has them waits in a barrier; of patches that lie densely, and of such with short rows. Each run
// has one strategy (FARSIDE_MPI): `farside bench arrays` makes one after another, and draws them
// together.
#include "../harness.hpp"

#include <farside/containers/global_array.hpp>

namespace far::bench {

/// All ranks but rank 0 do `work` n times, on what rank 0 has; alone, a rank on its own memory.
template <class Work>
auto on_the_first(Work work) {
  return [work](std::size_t n) mutable {
    if (rank() != 0 || nprocs() == 1)
      while (n-- > 0) work();
    barrier();
  };
}

struct shape {
  const char* name;
  std::size_t columns;  ///< of a patch; 0: as many as it takes for one row
};

/// The array has two block rows' worth for each client, all of them on rank 0.
void rows_of(suite& s, const shape& kind) {
  constexpr std::size_t most = std::size_t{1} << 22;
  const std::size_t wide = kind.columns == 0 ? most / sizeof(double) : 4 * kind.columns;
  const std::size_t deep = kind.columns == 0 ? 1 : most / sizeof(double) / kind.columns;
  const std::size_t all = deep * nprocs();
  std::vector<std::size_t> starts{0};
  for (rank_t r = 1; r < nprocs(); ++r) starts.push_back(all);  // others have nothing
  global_array<double, 2> f({all, wide}, {.distribution = irregular({starts, {0}})});
  std::vector<double> local(most / sizeof(double), 1.0);
  for (std::size_t size = 8; size <= most; size = size == most / 2 ? most : 4 * size) {
    const std::size_t n = size / sizeof(double);
    if (kind.columns != 0 && n < kind.columns) continue;
    const std::size_t rows = kind.columns == 0 ? 1 : n / kind.columns, first = deep * rank();
    const patch<2> p{{first, 0}, {first + rows, n / rows}};
    auto measure = [&](const char* what, auto work) {
      const std::string figure =
          text("Bandwidth of ", what, ", patches ", kind.name, ", ", transport_name());
      s.measure_alone(text(what, ", ", kind.name, ", ", size, " B"), bandwidth(size),
                      on_the_first(work),
                      point{figure, "bytes", strategy_name(), static_cast<double>(size)});
    };
    measure("get", [&f, p, &local] {
      f.get(p, local);
      keep(local.data());
    });
    measure("put", [&f, p, &local] {
      f.put(p, local);
      f.fence();
    });
    measure("accumulate", [&f, p, &local] {
      f.accumulate(p, local);
      f.fence();
    });
  }
}

void counter_row(suite& s) {
  global_array<std::int64_t, 1> next(1);
  s.measure_alone("fetch_add on a task counter", time_of_one(),
                  on_the_first([&] { keep(next.fetch_add(0, 1)); }));
}

}  // namespace far::bench

int main(int argc, char** argv) {
  return far::run(argc, argv, [](int count, char** words) {
    return far::bench::main(count, words, "Measures patches of global arrays.",
                            [](far::bench::suite& s) {
                              counter_row(s);
                              rows_of(s, {"in one row", 0});
                              rows_of(s, {"with rows of 64", 64});
                            });
  });
}
