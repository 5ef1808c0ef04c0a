// Settings: what is understood, and that everything else is an error.
#include <farside/base/environment.hpp>

#include "check.hpp"

using namespace far;
using namespace far::detail;

namespace {

void sizes() {
  struct {
    const char* text;
    std::size_t bytes;
  } good[] = {{"0", 0},
              {"1", 1},
              {"4096", 4096},
              {"64K", 64 << 10},
              {"64k", 64 << 10},
              {"64kB", 64 << 10},
              {"3M", 3 << 20},
              {"2g", std::size_t{2} << 30},
              {"1.5G", std::size_t{3} << 29},
              {"0.5K", 512},
              {"2T", std::size_t{2} << 40},
              {"100B", 100},
              {"4096b", 4096},
              {".5K", 512},
              {"8.K", 8 << 10}};
  for (auto [text, bytes] : good) {
    auto size = parse_size(text);
    CHECK(size.has_value());
    CHECK(size == bytes);
  }
  for (const char* bad :
       {"",      "K",   "B",    "KB",   ".",     "abc",  "-1",   "+1",   " 1", "1 ",
        "1 K",   "1e6", "0x10", "1,5G", "1.5.2", "12KK", "12KX", "12BB", "1P", "99999999999T",
        "1e999", "inf", "nan",  "1\n",  "--",    "1K2"})
    CHECK(!parse_size(bad));
}

void settings() {
  const char* name = "FARSIDE_UNIT_TEST";
  unsetenv(name);
  CHECK(!setting(name) && !size_setting(name) && !integer_setting(name, 0, 9));
  CHECK(switch_setting(name, true) && !switch_setting(name, false));
  setenv(name, "", 1);  // empty is unset
  CHECK(!setting(name) && !size_setting(name) && !integer_setting(name, 0, 9) &&
        switch_setting(name, true));

  setenv(name, "64M", 1);
  CHECK(size_setting(name) == std::size_t{64} << 20);
  for (const char* bad : {"0", "-1", "abc", "0K", "64 M"}) {
    setenv(name, bad, 1);
    CHECK_THROWS(size_setting(name), std::string("FARSIDE_UNIT_TEST='") + bad + "' is not a size");
  }

  setenv(name, "7", 1);
  CHECK(integer_setting(name, 0, 9) == 7);
  CHECK(integer_setting(name, 7, 7) == 7);
  CHECK_THROWS(integer_setting(name, 0, 6), "not a whole number from 0 to 6");
  CHECK_THROWS(integer_setting(name, 8, 9), "not a whole number from 8 to 9");
  for (const char* bad :
       {"x", "7x", "7.0", "1e1", "99999999999999999999", "-99999999999999999999"}) {
    setenv(name, bad, 1);
    CHECK_THROWS(integer_setting(name, -100, 100), "not a whole number");
  }

  for (const char* on : {"1", "yes", "on", "true"}) {
    setenv(name, on, 1);
    CHECK(switch_setting(name, false));
  }
  for (const char* off : {"0", "no", "off", "false"}) {
    setenv(name, off, 1);
    CHECK(!switch_setting(name, true));
  }
  setenv(name, "2", 1);
  CHECK_THROWS(switch_setting(name, true), "is neither 0 nor 1");
}

void machine() {
  CHECK(human_size(0) == "0 B");
  CHECK(human_size(1023) == "1023 B");
  CHECK(human_size(1024) == "1.0 KiB");
  CHECK(human_size(12345678) == "11.8 MiB");
  CHECK(meminfo("MemTotal") > 0);
  CHECK(meminfo("NoSuchKey") == 0);
  CHECK(number_in_file("/no/such/file") == std::numeric_limits<std::size_t>::max());
  CHECK(memory_limit() > 0 && memory_limit() <= meminfo("MemTotal"));
  CHECK(memory_available() <= meminfo("MemTotal"));
}

}  // namespace

int main() {
  sizes();
  settings();
  machine();
  return verdict("environment");
}
