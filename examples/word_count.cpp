// Counts words on all ranks into one table.
//
//   farside run -n 4 word_count [FILE]
#include <farside/farside.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  far::runtime world(argc, argv);

  // Every rank takes every n-th line, of a file or of this rhyme.
  std::istringstream rhyme(
      "how much wood would a woodchuck chuck\nif a woodchuck could chuck wood\n"
      "a woodchuck would chuck all the wood\nhe could if a woodchuck could chuck wood\n");
  std::ifstream file;
  if (argc > 1) {
    file.open(argv[1]);
    if (!file) {
      std::fprintf(stderr, "word_count: cannot open %s\n", argv[1]);
      return 1;
    }
  }
  std::istream& in = argc > 1 ? static_cast<std::istream&>(file) : rhyme;

  far::hash_map<std::string, int> counts(1000);
  far::hash_map_buffer buffer(counts);
  std::string line, word;
  int words = 0;
  for (far::rank_t number = 0; std::getline(in, line); ++number) {
    if (number % far::nprocs() != far::rank()) continue;
    for (std::istringstream text(line); text >> word; ++words) buffer.accumulate(word, 1);
  }
  buffer.flush();

  // Each rank looks through its own part; rank 0 shows the most frequent.
  std::vector<std::pair<int, std::string>> mine;
  int counted = 0;
  for (const auto& [text, count] : counts) {
    mine.emplace_back(-count, text);
    counted += count;
  }
  bool good = far::all_reduce(counted - words, std::plus<>()) == 0;
  auto parts = far::gather(mine, 0);
  if (far::rank() == 0) {
    std::vector<std::pair<int, std::string>> all;
    for (auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < std::min<std::size_t>(5, all.size()); ++i)
      std::printf("%6d  %s\n", -all[i].first, all[i].second.c_str());
  }
  return good ? 0 : 1;
}
