// Walks over the words of a command line: what the sub-commands with options of their own share.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "support.hpp"

namespace far::app {

/// An option's value is behind '=', attached (-n4), or the next word. -np is -n.
class option_reader {
 public:
  /// `words` begins behind the name of the sub-command, and outlives the reader.
  explicit option_reader(const arguments& words) : words_(words) {}

  /// False at the first word that is no option: the program.
  bool next_option();

  bool is(const char* a, const char* b = "") const { return name_ == a || name_ == b; }
  const std::string& name() const { return name_; }
  const std::optional<std::string>& attached() const { return value_; }

  /// The value, or an error that says `what` is missing.
  std::string value(const char* what);
  /// The value if there is one: attached, or a next word that is a whole number.
  std::optional<std::string> number_if_any();
  void no_value() const;
  /// The next word that is no option, where those may stand between options.
  std::optional<std::string> next_word();

  arguments rest() const {
    return {words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end()};
  }

 private:
  const arguments& words_;
  std::size_t at_ = 0;
  std::string name_;
  std::optional<std::string> value_;
};

/// True if --help or -h is among the options before the program.
bool asks_for_help(const arguments& words);

/// The name and value of `--env NAME=VALUE`; of NAME alone, its present value.
std::pair<std::string, std::string> parse_variable(const std::string& text);
/// Values of --segment, and of options that are a time in seconds or minutes, checked.
std::string checked_segment(const std::string& text);
double checked_time(const std::string& option, const std::string& text,
                    const std::string& unit = "seconds");

[[noreturn]] void refuse_option(const std::string& command, const std::string& name,
                                const arguments& known);

}  // namespace far::app
