#include "option_reader.hpp"

#include <cstdlib>

namespace far::app {

bool option_reader::next_option() {
  if (at_ == words_.size()) return false;
  const std::string& word = words_[at_];
  if (word == "--") return ++at_, false;
  if (word.size() < 2 || word[0] != '-') return false;
  ++at_;
  value_.reset();
  std::size_t equals = word.find('=');
  if (word == "-np") {  // as of mpirun
    name_ = "-n";
  } else if (word.starts_with("--") && equals != std::string::npos) {
    name_ = word.substr(0, equals);
    value_ = word.substr(equals + 1);
  } else if (!word.starts_with("--") && word.size() > 2) {
    name_ = word.substr(0, 2);
    value_ = word.substr(word[2] == '=' ? 3 : 2);
  } else {
    name_ = word;
  }
  return true;
}

std::string option_reader::value(const char* what) {
  if (value_) return *value_;
  if (at_ == words_.size()) throw error(usage_error, name_ + " needs " + what + " behind it");
  return words_[at_++];
}

std::optional<std::string> option_reader::number_if_any() {
  if (value_) return value_;
  if (at_ < words_.size() && parse_number(words_[at_])) return words_[at_++];
  return std::nullopt;
}

void option_reader::no_value() const {
  if (value_)
    throw error(usage_error,
                name_ + "=" + *value_ + ": this option takes no value; write " + name_);
}

std::optional<std::string> option_reader::next_word() {
  if (at_ == words_.size()) return std::nullopt;
  return words_[at_++];
}

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
                                 ": that is not a size; write bytes, or a whole number with K, M, "
                                 "G or T, such as --segment 256M");
  if (*bytes < 4096)
    throw error(usage_error, "--segment " + text + ": a segment of " + human_size(*bytes) +
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
