#include "options.hpp"

#include <toolkit/option_reader.hpp>
#include <toolkit/words.hpp>

#include <map>

namespace wavelets_program {

namespace {

[[noreturn]] void refuse(const std::string& text) { throw toolkit::wrong_option(text); }

/// Names of stages, and what stands behind them.
const std::map<std::string, std::string>& stages() {
  static const std::map<std::string, std::string> all = {{"compress", ""},
                                                         {"reconstruct", ""},
                                                         {"truncate", "a threshold"},
                                                         {"differentiate", "an axis"},
                                                         {"norm", ""},
                                                         {"inner", "a function"},
                                                         {"evaluate", "a point"},
                                                         {"plot", "a file"},
                                                         {"save", "a file"},
                                                         {"balance", ""}};
  return all;
}

const std::vector<std::string> option_names = {
    "--function", "--load",          "--dimensions", "--k",         "--threshold",
    "--mode",     "--initial-level", "--max-level",  "--placement", "--slice",
    "--times",    "--json",          "--help"};

void slice(toolkit::option_reader& in, request& to) {
  const std::string text = in.value("an axis and a place, such as z=0.5");
  if (text.size() < 3 || text[0] < 'x' || text[0] > 'z' || text[1] != '=')
    refuse("option --slice: '" + text + "' is no axis and place, such as z=0.5");
  to.slice_axis = static_cast<std::size_t>(text[0] - 'x');
  to.slice_at = toolkit::real_number("--slice", text.substr(2), 0, 1);
}

void option(toolkit::option_reader& in, request& to, bool& of_tree) {
  auto number = [&](std::uint64_t least, std::uint64_t most) {
    of_tree = true;
    return toolkit::whole_number(in.name(), in.value("a number"), least, most);
  };
  if (in.is("-h", "--help"))
    in.no_value(), to.help = true;
  else if (in.is("-f", "--function"))
    to.function = in.value("a function"), of_tree = true;
  else if (in.is("--load"))
    to.load = in.value("a file");
  else if (in.is("-d", "--dimensions"))
    to.dimensions = number(1, 3);
  else if (in.is("-k", "--k"))
    to.k = number(1, far::wavelets::largest_order);
  else if (in.is("-e", "--threshold"))
    to.threshold = toolkit::real_number(in.name(), in.value("a number"), 0, 1e300), of_tree = true;
  else if (in.is("--initial-level"))
    to.initial_level = static_cast<std::uint32_t>(number(0, far::wavelets::deepest_level));
  else if (in.is("--max-level"))
    to.max_level = static_cast<std::uint32_t>(number(0, far::wavelets::deepest_level));
  else if (in.is("--slice"))
    slice(in, to);
  else if (in.is("--times"))
    in.no_value(), to.times = true;
  else if (in.is("--json"))
    in.no_value(), to.json = true;
  else if (in.is("--mode")) {
    const std::string mode = in.value("absolute or level");
    if (mode != "absolute" && mode != "level")
      refuse("option --mode: '" + mode + "' is neither absolute nor level");
    to.mode =
        mode == "level" ? far::wavelets::refinement::by_level : far::wavelets::refinement::absolute;
    of_tree = true;
  } else if (in.is("--placement")) {
    const std::string place = in.value("subtrees or hash");
    if (place != "subtrees" && place != "hash")
      refuse("option --placement: '" + place + "' is neither subtrees nor hash");
    to.by_hash = place == "hash";
  } else {
    const std::string meant = toolkit::nearest(in.name(), option_names);
    refuse("there is no option " + in.name() +
           (meant.empty() ? "" : "; did you mean " + meant + "?") + "; --help lists them");
  }
}

/// What can be seen to be wrong without a tree. Dimensions of a file are not known yet.
void check(const stage& one, const request& all) {
  if (one.name == "truncate") toolkit::real_number("truncate", one.argument, 0, 1e300);
  if (one.name != "differentiate") return;
  const bool axis = one.argument.size() == 1 && one.argument[0] >= 'x' && one.argument[0] <= 'z';
  if (!axis || (all.load.empty() && one.argument[0] - 'x' >= static_cast<int>(all.dimensions)))
    refuse("differentiate " + one.argument + ": there is no such axis in " +
           std::to_string(all.dimensions) + " dimensions; they are x, y, z in this order");
}

}  // namespace

request parse_request(const std::vector<std::string>& words) {
  request result;
  bool of_tree = false;
  toolkit::option_reader in(words);
  while (in.next()) {
    if (!in.is_operand()) {
      option(in, result, of_tree);
      continue;
    }
    auto found = stages().find(in.text());
    if (found == stages().end()) {
      std::vector<std::string> names;
      for (const auto& one : stages()) names.push_back(one.first);
      const std::string meant = toolkit::nearest(in.text(), names);
      refuse("there is no stage " + in.text() +
             (meant.empty() ? "" : "; did you mean " + meant + "?") + "; --help lists them");
    }
    stage one{found->first, ""};
    if (!found->second.empty()) {
      if (!in.next() || !in.is_operand())
        refuse(one.name + " needs " + found->second + " behind it");
      one.argument = in.text();
    }
    result.stages.push_back(one);
  }
  if (result.help) return result;
  if (!result.load.empty() && of_tree)
    refuse("--load " + result.load +
           ": the file says what the tree is; leave out options that say how one is made");
  if (result.initial_level > result.max_level)
    refuse("--initial-level " + std::to_string(result.initial_level) +
           " is deeper than --max-level " + std::to_string(result.max_level));
  if (result.threshold == 0 && result.max_level == far::wavelets::deepest_level)
    refuse("--threshold 0 splits every box; give a --max-level, too");
  for (const stage& one : result.stages) check(one, result);
  return result;
}

}  // namespace wavelets_program
