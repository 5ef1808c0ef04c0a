// Reads a command line, word by word. The program `farside`, the programs it starts and the benchmarks use it.
//
//   toolkit::option_reader word(words);
//   while (word.next()) {
//     if (word.is_operand()) files.push_back(word.text());
//     else if (word.is("-o", "--output")) output = word.value("a file");
//     else if (word.is("--times")) word.no_value(), times = true;
//     else throw toolkit::wrong_option("there is no option " + word.text());
//   }
//
// The value of an option stands behind '=', attached to its letter (-n4), or is the next word. A lone '-' is an
// operand, as a file of that name is standard input or output. All words behind '--' are operands.
#pragma once

#include <farside/base/error.hpp>
#include <farside/base/sizes.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace toolkit {

/// A command line that makes no sense. The text says what was given, why it is wrong, and what to write instead.
struct wrong_option : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The words behind the name of a program.
inline std::vector<std::string> words_of(int argc, char** argv) {
  return argc > 1 ? std::vector<std::string>(argv + 1, argv + argc) : std::vector<std::string>();
}

class option_reader {
 public:
  /// `words` begins behind the name of the program, and outlives the reader.
  explicit option_reader(const std::vector<std::string>& words) : words_(words) {}

  /// Goes to the next word, whatever it is. False if there is none.
  bool next() {
    if (!only_operands_ && at_ < words_.size() && words_[at_] == "--") ++at_, only_operands_ = true;
    if (at_ == words_.size()) return false;
    if (!take_option()) word_ = name_ = words_[at_++];
    return true;
  }
  /// Goes to the next option. False if the next word is none, or behind `--`: rest() begins there.
  bool next_option() {
    if (at_ < words_.size() && words_[at_] == "--") return ++at_, false;
    return at_ < words_.size() && take_option();
  }

  /// Whether the word is no option.
  bool is_operand() const { return operand_; }
  /// Whether it stands behind `--`.
  bool behind_dashes() const { return only_operands_; }
  /// Whether the word is an option of one of these names.
  bool is(std::string_view a, std::string_view b = {}) const {
    return !operand_ && (name_ == a || (!b.empty() && name_ == b));
  }
  /// The option's name without its value: `--output`, `-o`.
  const std::string& name() const { return name_; }
  /// The word as it was written.
  const std::string& text() const { return word_; }
  /// The value, if it stands in the same word.
  const std::optional<std::string>& attached() const { return value_; }

  /// The value, or an error that says `what` is missing.
  std::string value(const std::string& what = "a value") {
    if (value_) return *value_;
    if (at_ == words_.size()) throw wrong_option(name_ + " needs " + what + " behind it");
    return words_[at_++];
  }
  /// The value if there is one: attached, or a next word that is a whole number.
  std::optional<std::string> number_if_any() {
    if (!value_ && at_ < words_.size() && far::parse_number(words_[at_])) return words_[at_++];
    return value_;
  }
  void no_value() const {
    if (value_)
      throw wrong_option(name_ + "=" + *value_ + ": this option takes no value; write " + name_);
  }

  /// What has not been read yet.
  std::vector<std::string> rest() const {
    return {words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end()};
  }

 private:
  /// False if the next word is no option.
  bool take_option() {
    const std::string& word = words_[at_];
    value_.reset();
    operand_ = only_operands_ || word.size() < 2 || word[0] != '-';
    if (operand_) return false;
    ++at_;
    word_ = name_ = word;
    std::size_t equals = word.find('=');
    if (word.starts_with("-np")) {  // as mpirun has it
      name_ = "-n";
      if (word.size() > 3) value_ = word.substr(word[3] == '=' ? 4 : 3);
    } else if (word.starts_with("--")) {
      if (equals == std::string::npos) return true;
      name_ = word.substr(0, equals);
      value_ = word.substr(equals + 1);
    } else if (word.size() > 2) {
      name_ = word.substr(0, 2);
      value_ = word.substr(word[2] == '=' ? 3 : 2);
    }
    return true;
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  bool only_operands_ = false, operand_ = false;
  std::string word_, name_;
  std::optional<std::string> value_;
};

/// A whole number from `least` to `most`.
inline std::uint64_t whole_number(const std::string& option, const std::string& text,
                                  std::uint64_t least, std::uint64_t most) {
  auto number = far::parse_number(text);
  if (!number || *number < least || *number > most)
    throw wrong_option("option " + option + ": '" + text + "' is not a whole number from " +
                       std::to_string(least) + " to " + std::to_string(most));
  return *number;
}

/// A number of bytes: 4096, 500M, 2G.
inline std::uint64_t byte_count(const std::string& option, const std::string& text) {
  auto bytes = far::parse_size(text);
  if (!bytes || *bytes == 0)
    throw wrong_option("option " + option + ": '" + text + "' is not a size such as 500M or 2G");
  return *bytes;
}

/// A number from `least` to `most`, with a fraction or without.
inline double real_number(const std::string& option, const std::string& text, double least,
                          double most) {
  char* end = nullptr;
  double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(number >= least && number <= most)) {
    char range[64];
    std::snprintf(range, sizeof range, "' is not a number from %g to %g", least, most);
    throw wrong_option(far::text("option ", option, ": '", text, range));
  }
  return number;
}

}  // namespace toolkit
