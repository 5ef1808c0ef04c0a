// Writes JSON: FARSIDE_STATS=file.json, and the figures of the benchmarks.
//
//   far::json_writer out;
//   out.begin_object();
//   out.key("name").value("get \"8B\"").key("ns").value(2.5);
//   out.end_object();
//   std::puts(out.text().c_str());                       // {"name": "get \"8B\"", "ns": 2.5}
#pragma once

#include <farside/base/backend_choice.hpp>

#include <cmath>
#include <concepts>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// Where the elements of a list stand: all in one line, or each in a line of its own.
enum class json_lines { one, many };

/// Text of JSON, value by value. Commas, and the escapes in strings, are the writer's; that each object and list
/// ends, and that each value of an object has a key, is the caller's. Bytes above 127 are taken for UTF-8 and stay as
/// they are. Local; no communication.
class json_writer {
 public:
  /// Begins an object. Local; no communication.
  json_writer& begin_object() { return open('{', json_lines::one); }
  /// Ends it. Local; no communication.
  json_writer& end_object() { return close('}'); }
  /// Begins a list. Local; no communication.
  json_writer& begin_list(json_lines lines = json_lines::one) { return open('[', lines); }
  /// Ends it. Local; no communication.
  json_writer& end_list() { return close(']'); }

  /// The name of the object's next value. Local; no communication.
  json_writer& key(std::string_view name) {
    separate();
    quote(name);
    text_ += ": ";
    after_key_ = true;
    return *this;
  }

  /// A value: a string, a number, a truth value or nothing (null). Infinite numbers and NaN become null, as JSON has
  /// neither. Numbers with a fraction have six digits, which is more than any measurement is worth. Local; no
  /// communication.
  json_writer& value(std::string_view string) {
    separate();
    quote(string);
    return *this;
  }
  json_writer& value(const char* string) { return value(std::string_view(string)); }
  json_writer& value(double number) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.6g", number);
    return bare(std::isfinite(number) ? digits : "null");
  }
  json_writer& value(bool truth) { return bare(truth ? "true" : "false"); }
  json_writer& value(std::nullptr_t) { return bare("null"); }
  template <std::integral Integer>
  json_writer& value(Integer number) {
    return bare(std::to_string(number));
  }

  /// What has been written so far. Local; no communication.
  const std::string& text() const { return text_; }

 private:
  struct level {
    json_lines lines;
    bool empty = true;
  };

  json_writer& open(char bracket, json_lines lines) {
    separate();
    text_ += bracket;
    levels_.push_back({lines});
    return *this;
  }
  json_writer& close(char bracket) {
    if (levels_.back().lines == json_lines::many) text_ += '\n';
    levels_.pop_back();
    text_ += bracket;
    return *this;
  }
  json_writer& bare(std::string_view word) {
    separate();
    text_ += word;
    return *this;
  }

  /// What stands between a value and the one before it.
  void separate() {
    if (after_key_ || levels_.empty()) {
      after_key_ = false;
      return;
    }
    level& now = levels_.back();
    const bool many = now.lines == json_lines::many;
    if (!now.empty) text_ += many ? "," : ", ";
    if (many) text_ += "\n  ";
    now.empty = false;
  }

  void quote(std::string_view string) {
    text_ += '"';
    for (char c : string) {
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        char code[8];
        std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
        text_ += c == '\n' ? "\\n" : c == '\t' ? "\\t" : code;
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }

  std::string text_;
  std::vector<level> levels_;
  bool after_key_ = false;
};

}  // namespace far::inline FARSIDE_BACKEND
