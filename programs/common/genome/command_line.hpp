// Options of the genome programs: --name value, --name=value, --flag, -k 21, -k21, -k=21, and the
// rest are files.
#pragma once

#include "failure.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
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
    auto knows = [](const auto& names, std::string_view name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    bool only_files = false;
    for (int i = 1; i < argc; ++i) {
      std::string_view argument = argv[i];
      if (only_files || argument == "-" || !argument.starts_with("-")) {
        files_.emplace_back(argument);
        continue;
      }
      if (argument == "--") {
        only_files = true;
        continue;
      }
      bool is_long = argument.starts_with("--");
      std::string_view name = argument.substr(is_long ? 2 : 1);
      std::optional<std::string_view> value;
      if (auto equals = name.find('='); equals != name.npos) {
        value = name.substr(equals + 1);
        name = name.substr(0, equals);
      } else if (!is_long && name.size() > 1 && !knows(valued, name) && !knows(flags, name)) {
        value = name.substr(1);  // -k21
        name = name.substr(0, 1);
      }
      if (name == "o") name = "output";
      if (name == "h") name = "help";
      if (knows(flags, name)) {
        if (value) fail("option ", argument, ": ", dashed(std::string(name)), " takes no value");
        values_[std::string(name)] = "";
      } else if (knows(valued, name)) {
        if (!value) {
          if (++i == argc) fail("option ", argument, " needs a value");
          value = argv[i];
        }
        values_[std::string(name)] = *value;
      } else {
        fail("there is no option ", argument, "; --help lists them");
      }
    }
  }

  bool has(const std::string& name) const { return values_.contains(name); }
  std::string text(const std::string& name, const std::string& otherwise = "") const {
    auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second;
  }

  std::uint64_t number(const std::string& name, std::uint64_t otherwise, std::uint64_t least,
                       std::uint64_t most) const {
    auto found = values_.find(name);
    if (found == values_.end()) return otherwise;
    const std::string& value = found->second;
    std::uint64_t result = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc() || end != value.data() + value.size() || result < least ||
        result > most)
      fail("option ", dashed(name), ": '", value, "' is not a whole number from ", least, " to ",
           most);
    return result;
  }

  /// A number of bytes: 500M, 2G.
  std::uint64_t bytes(const std::string& name, std::uint64_t otherwise) const {
    auto found = values_.find(name);
    if (found == values_.end()) return otherwise;
    const std::string& value = found->second;
    std::uint64_t result = 0;
    auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    std::string_view unit(end, static_cast<std::size_t>(value.data() + value.size() - end));
    unsigned shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : unit == "T" ? 40 : 0;
    if (error != std::errc() || (shift == 0 && !unit.empty()) || result == 0 ||
        result >> (63 - shift) != 0)
      fail("option ", dashed(name), ": '", value, "' is not a size such as 500M or 2G");
    return result << shift;
  }

  double real(const std::string& name, double otherwise, double least, double most) const {
    auto found = values_.find(name);
    if (found == values_.end()) return otherwise;
    char* end = nullptr;
    double result = std::strtod(found->second.c_str(), &end);
    if (found->second.empty() || *end != '\0' || !(result >= least && result <= most))
      fail("option ", dashed(name), ": '", found->second, "' is not a number from ", least, " to ",
           most);
    return result;
  }

  const std::vector<std::string>& files() const { return files_; }

 private:
  static std::string dashed(const std::string& name) {
    return (name.size() == 1 ? "-" : "--") + name;
  }

  std::map<std::string, std::string> values_;
  std::vector<std::string> files_;
};

}  // namespace genome
