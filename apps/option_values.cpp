#include "option_values.hpp"

#include <cstdlib>

namespace far::app {

bool asks_for_help(const arguments& words) {
  for (const std::string& word : words) {
    if (word == "--" || word.empty() || word[0] != '-') return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

std::pair<std::string, std::string> parse_variable(const std::string& text) {
  std::size_t equals = text.find('=');
  std::string name = text.substr(0, equals);
  if (name.empty())
    throw error(usage_error,
                "--env " + text + ": there is no name before '='; write --env NAME=VALUE");
  if (equals != std::string::npos) return {name, text.substr(equals + 1)};
  const char* present = getenv(name.c_str());
  if (!present)
    throw error(usage_error, "--env " + name +
                                 ": it is not set, so there is nothing to pass on; write --env " +
                                 name + "=VALUE, or export it first");
  return {name, present};
}

std::string checked_segment(const std::string& text) {
  auto bytes = parse_size(text);
  if (!bytes)
    throw error(usage_error, "--segment " + text +
                                 ": that is not a size; write bytes, or a number with K, M, "
                                 "G or T, such as --segment 256M");
  if (*bytes < 4096)
    throw error(usage_error, "--segment " + text + ": a segment of " +
                                 human_size(static_cast<double>(*bytes)) +
                                 " holds nothing; give each rank at least 4K");
  return text;
}

double checked_time(const std::string& option, const std::string& text, const std::string& unit) {
  char* end = nullptr;
  double time = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(time > 0) || time > 1e9)
    throw error(usage_error, option + " " + text + ": that is not a time; write " + unit +
                                 " above 0, such as " + option + " 30");
  return time;
}

void refuse_option(const std::string& command, const std::string& name, const arguments& known) {
  std::string meant = nearest(name, known);
  throw error(usage_error, "unknown option " + name +
                               (meant.empty() ? "" : "; did you mean " + meant + "?") +
                               " Options of the program itself go behind its name; farside " +
                               command + " --help lists ours");
}

}  // namespace far::app
