// Bandwidth of get and put by size, while the target waits in a barrier.
#include "rows.hpp"

namespace far::bench {

void bandwidth_rows(suite& s) {
  if (nprocs() == 1 || chosen_attention() == attention::thread) return;
  constexpr std::size_t most = std::size_t{1} << 22;
  auto mine = alloc<std::byte>(most * nprocs());
  auto at = broadcast(mine, 0) + static_cast<std::ptrdiff_t>(most * rank());
  std::vector<std::byte> local(most);
  for (std::size_t size = 8; size <= most; size *= 4) {
    auto x = static_cast<double>(size);
    auto title = [&](const char* what) { return text(what, " bandwidth, ", size, " B"); };
    s.measure_alone(title("get"), bandwidth(size), clients([&, size] {
                      far::get(at, local.data(), size);
                      keep(local.data());
                    }),
                    {{"Bandwidth of get, " + transport_name(), "bytes", strategy_name(), x}});
    s.measure_alone(title("put"), bandwidth(size), clients([&, size] {
                      far::put(at, local.data(), size);
                      flush(0);
                    }),
                    {{"Bandwidth of put, " + transport_name(), "bytes", strategy_name(), x}});
  }
  barrier();
  dealloc(mine);
}

}  // namespace far::bench
