// Values of options that several sub-commands have, checked. toolkit::option_reader walks over the words.
#pragma once

#include <string>
#include <utility>

#include "support.hpp"
#include "toolkit/option_reader.hpp"

namespace far::app {

using toolkit::option_reader;

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
