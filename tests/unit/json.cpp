// What the JSON writer writes: text that any JSON parser reads back, whatever is in the strings.
#include <farside/base/json.hpp>

#include "check.hpp"

#include <cstdint>
#include <limits>
#include <string>

using namespace far;

namespace {

std::string written(std::string_view string) {
  json_writer out;
  return out.value(string).text();
}

void strings() {
  CHECK(written("") == "\"\"");
  CHECK(written("get 8B") == "\"get 8B\"");
  CHECK(written("a \"b\" \\ /") == "\"a \\\"b\\\" \\\\ /\"");
  CHECK(written("one\ntwo\tthree") == "\"one\\ntwo\\tthree\"");
  CHECK(written(std::string_view("\0\x01\r\x1b\x1f", 5)) ==
        "\"\\u0000\\u0001\\u000d\\u001b\\u001f\"");
  CHECK(written("\x7f µs") == "\"\x7f µs\"");
  for (int c = 0; c < 0x20; ++c) {
    char one = static_cast<char>(c);
    for (char in : written(std::string_view(&one, 1)))
      CHECK(static_cast<unsigned char>(in) >= 0x20);
  }
}

void numbers() {
  json_writer out;
  out.begin_list();
  out.value(0).value(-7L).value(std::numeric_limits<std::uint64_t>::max()).value(2.5).value(1e-9);
  out.value(std::numeric_limits<double>::infinity())
      .value(std::numeric_limits<double>::quiet_NaN());
  out.value(true).value(false).value(nullptr).end_list();
  CHECK(out.text() == "[0, -7, 18446744073709551615, 2.5, 1e-09, null, null, true, false, null]");
}

void nested() {
  json_writer out;
  out.begin_object().key("per rank").begin_list(json_lines::many);
  for (int rank = 0; rank < 2; ++rank) {
    out.begin_object().key("rank").value(rank);
    out.key("to").begin_list().value(1).value(2).end_list().end_object();
  }
  out.end_list().key("none\n").begin_object().end_object().key("empty").begin_list().end_list();
  out.end_object();
  CHECK(out.text() ==
        "{\"per rank\": [\n  {\"rank\": 0, \"to\": [1, 2]},\n  {\"rank\": 1, \"to\": [1, 2]}\n], "
        "\"none\\n\": {}, \"empty\": []}");
}

}  // namespace

int main() {
  strings();
  numbers();
  nested();
  return verdict("json");
}
