// A picture drawn by all ranks. The rows of the picture are spread over the ranks' memories. Work
// is handed out by tickets: a rank draws the next row's number with one far fetch_add, computes
// the row, and puts it where it belongs, on whichever rank that is. Rows in the black middle cost
// a hundred times more than those at the edge, and nobody has to plan for it. Rank 0 then gets
// the picture, prints it, and compares it with one computed alone.
#include <farside/farside.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

constexpr int width = 72, height = 30, deepest = 300000;

/// How many steps the point of a pixel takes to leave the circle of radius 2.
static int depth(int x, int y) {
  double cr = -2.2 + 3.2 * x / width, ci = -1.25 + 2.5 * (y + 0.5) / height, r = 0, i = 0;
  int n = 0;
  for (; n < deepest && r * r + i * i < 4; ++n) {
    double next = r * r - i * i + cr;
    i = 2 * r * i + ci;
    r = next;
  }
  return n;
}

static std::vector<int> draw_row(int y) {
  std::vector<int> row(width);
  for (int x = 0; x < width; ++x) row[x] = depth(x, y);
  return row;
}

static std::string as_text(const std::vector<int>& row) {
  constexpr char shades[] = " .,:;ox%#";
  std::string text;
  for (int n : row) {
    int shade = 0;
    while (n > 1 && n < deepest) n /= 2, ++shade;
    text += n == deepest ? '@' : shades[shade < 8 ? shade : 8];
  }
  return text;
}

static int draw() {
  using clock = std::chrono::steady_clock;
  far::rank_t me = far::rank(), ranks = far::nprocs();

  // Row y lies on rank y % ranks. Everybody learns where every rank's rows begin.
  auto mine = far::alloc<int>((height / ranks + 1) * width);
  auto rows = far::all_gather(mine);
  auto where = [&](int y) { return rows[y % ranks] + y / ranks * width; };
  auto ticket = far::broadcast(me == 0 ? far::make<int>(0) : far::ptr<int>(), 0);
  far::barrier();

  auto begin = clock::now();
  int drawn = 0;
  for (int y; (y = far::fetch_add(ticket, 1)) < height; ++drawn) {
    auto row = draw_row(y);
    far::put(where(y), row.data(), width);
  }
  far::barrier();  // all puts are complete
  double seconds = std::chrono::duration<double>(clock::now() - begin).count();

  bool right = true;
  if (me == 0) {
    auto alone = clock::now();
    std::vector<std::vector<int>> expected;
    for (int y = 0; y < height; ++y) expected.push_back(draw_row(y));
    double one = std::chrono::duration<double>(clock::now() - alone).count();
    for (int y = 0; y < height; ++y) {
      auto row = far::get(where(y), width);
      right = right && row == expected[y];
      std::printf("  %s\n", as_text(row).c_str());
    }
    std::printf("\n%u ranks drew it in %.2f s, one alone in %.2f s: %s\n", ranks, seconds, one,
                right ? "every pixel agrees" : "THE PICTURES DIFFER");
  }
  far::print("  rank ", me, " drew ", drawn, " of ", height, " rows\n");
  right = far::broadcast(right, 0);
  far::dealloc(mine);
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    std::fprintf(stderr, "picture: it takes no arguments, but was given '%s'\n", argv[1]);
    return 2;
  }
  setenv("FARSIDE_STATS", "1", 0);  // where the communication went, at the end
  return far::run(argc, argv, draw);
}
