// Options of the genome programs: what was said of each, and the rest, which are files.
#pragma once

#include "failure.hpp"

#include <toolkit/option_reader.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace genome {

class command_line {
 public:
  /// `valued` and `flags`: the names that there are, without the dashes; -k is `k`, -o is
  /// `output`, -h is `help`.
  command_line(int argc, char** argv, const std::vector<std::string_view>& valued,
               const std::vector<std::string_view>& flags) {
    std::vector<std::string> words = toolkit::words_of(argc, argv);
    refusing([&] {
      toolkit::option_reader word(words);
      while (word.next()) {
        if (word.is_operand()) {
          files_.push_back(word.text());
          continue;
        }
        std::string name = word.is("-o") ? "--output" : word.is("-h") ? "--help" : word.name();
        name.erase(0, name.find_first_not_of('-'));
        if (knows(flags, name)) {
          word.no_value();
          values_[name] = "";
        } else if (knows(valued, name)) {
          values_[name] = word.value();
        } else {
          fail("there is no option ", word.text(), "; --help lists them");
        }
      }
    });
  }

  bool has(const std::string& name) const { return values_.contains(name); }
  std::string text(const std::string& name, const std::string& otherwise = "") const {
    auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }

  std::uint64_t number(const std::string& name, std::uint64_t otherwise, std::uint64_t least,
                       std::uint64_t most) const {
    if (!has(name)) return otherwise;
    return refusing([&] { return toolkit::whole_number(dashed(name), text(name), least, most); });
  }

  /// A number of bytes: 500M, 2G.
  std::uint64_t bytes(const std::string& name, std::uint64_t otherwise) const {
    if (!has(name)) return otherwise;
    return refusing([&] { return toolkit::byte_count(dashed(name), text(name)); });
  }

  double real(const std::string& name, double otherwise, double least, double most) const {
    if (!has(name)) return otherwise;
    return refusing([&] { return toolkit::real_number(dashed(name), text(name), least, most); });
  }

  const std::vector<std::string>& files() const { return files_; }

 private:
  static bool knows(const std::vector<std::string_view>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  static std::string dashed(const std::string& name) {
    return (name.size() == 1 ? "-" : "--") + name;
  }
  /// Whatever is wrong with the command line becomes a failure as others are.
  template <class Work>
  static auto refusing(Work work) -> decltype(work()) {
    try {
      return work();
    } catch (const toolkit::wrong_option& problem) {
      fail(problem.what());
    }
  }

  std::map<std::string, std::string> values_;
  std::vector<std::string> files_;
};

}  // namespace genome
