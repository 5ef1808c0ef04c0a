// The command lines of all our programs are read by one class, and their tables are made by another.
#include "../../toolkit/option_reader.hpp"
#include "../../toolkit/table.hpp"

#include "check.hpp"

#include <string>
#include <vector>

using toolkit::option_reader;
using words = std::vector<std::string>;

namespace {

void values_in_every_form() {
  for (const words& given : {words{"-o", "file"}, words{"-ofile"}, words{"-o=file"},
                             words{"--output", "file"}, words{"--output=file"}}) {
    option_reader word(given);
    CHECK(word.next() && !word.is_operand() && word.is("-o", "--output"));
    CHECK(word.value() == "file");
    CHECK(!word.next());
  }
  words empty = {"--output="};
  option_reader word(empty);
  CHECK(word.next() && word.value().empty());
}

void operands_anywhere() {
  words given = {"a", "-", "--times", "b", "-n4", "--", "-c", "--", "d"};
  option_reader word(given);
  words operands, options;
  while (word.next()) (word.is_operand() ? operands : options).push_back(word.text());
  CHECK(operands == words{"a", "-", "b", "-c", "--", "d"});
  CHECK(options == words{"--times", "-n4"});
}

void up_to_the_program() {
  words given = {"-n", "4", "--prefix", "./program", "-n", "7"};
  option_reader word(given);
  CHECK(word.next_option() && word.is("-n") && word.value() == "4");
  CHECK(word.next_option() && word.is("--prefix"));
  CHECK(!word.next_option());
  CHECK(word.rest() == words{"./program", "-n", "7"});
  words dashes = {"--", "-program"};
  option_reader behind(dashes);
  CHECK(!behind.next_option() && behind.rest() == words{"-program"});
  words mpirun = {"-np", "3"};
  option_reader as_mpirun(mpirun);
  CHECK(as_mpirun.next_option() && as_mpirun.is("-n") && as_mpirun.value() == "3");
  words together = {"-np3", "-np=4"};
  option_reader read(together);
  CHECK(read.next_option() && read.is("-n") && read.value() == "3");
  CHECK(read.next_option() && read.is("-n") && read.value() == "4");
}

void what_is_wrong() {
  words given = {"--times=1", "--exhaustive", "x", "--output"};
  option_reader word(given);
  CHECK(word.next());
  CHECK_THROWS(word.no_value(), "--times=1: this option takes no value; write --times");
  CHECK(word.next() && !word.number_if_any());
  CHECK(word.next() && word.is_operand() && !word.is("x"));
  CHECK(word.next());
  CHECK_THROWS(word.value("a file"), "--output needs a file behind it");
}

void numbers() {
  CHECK(toolkit::whole_number("-k", "127", 1, 127) == 127);
  CHECK(toolkit::whole_number("--seed", "18446744073709551615", 0, ~std::uint64_t{0}) ==
        ~std::uint64_t{0});
  for (const char* bad : {"", "0", "128", "-1", "+1", "1 ", "1e2", "18446744073709551616"})
    CHECK_THROWS(toolkit::whole_number("-k", bad, 1, 127),
                 "option -k: '" + std::string(bad) + "' is not a whole number from 1 to 127");
  CHECK(toolkit::byte_count("--memory", "2G") == std::uint64_t{2} << 30);
  CHECK(toolkit::byte_count("--memory", "1.5K") == 1536);
  for (const char* bad : {"", "0", "G", "1X", "-1", "99999999T"})
    CHECK_THROWS(toolkit::byte_count("--memory", bad), "is not a size such as 500M or 2G");
  CHECK(toolkit::real_number("--error", "0.25", 0, 1) == 0.25);
  for (const char* bad : {"", "2", "-0.1", "nan", "1x"})
    CHECK_THROWS(toolkit::real_number("--error", bad, 0, 1), "is not a number from 0");
}

void tables() {
  toolkit::table left;
  left.row({"rank", "state", "waits for"});
  left.row({"0", "running", ""});
  left.row({"10", "ended"});
  CHECK(left.text("> ") == "> rank  state    waits for\n> 0     running\n> 10    ended\n");
  toolkit::table right(toolkit::columns::figures);
  right.row({"milliseconds", "least", "most"});
  right.row({"whole", "2.5", "1000.0"});
  CHECK(right.text() == "milliseconds  least    most\nwhole           2.5  1000.0\n");
  CHECK(toolkit::table().text().empty());
}

}  // namespace

int main() {
  values_in_every_form();
  operands_anywhere();
  up_to_the_program();
  what_is_wrong();
  numbers();
  tables();
  return verdict("toolkit");
}
