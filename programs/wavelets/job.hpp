// The stages of `farside wavelets`, for each number of dimensions.
#pragma once

#include "expression.hpp"
#include "options.hpp"
#include "picture.hpp"

#include <common/files.hpp>
#include <common/progress_bar.hpp>
#include <farside/algorithms/wavelets.hpp>
#include <farside/base/json.hpp>
#include <farside/base/sizes.hpp>
#include <farside/containers/matrix_part.hpp>
#include <toolkit/option_reader.hpp>
#include <toolkit/table.hpp>
#include <toolkit/words.hpp>

#include <time.h>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>

namespace wavelets_program {

/// 16 digits: what a double has.
inline std::string digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.16g", value);
  return text;
}

template <std::size_t D>
class job {
  using tree = far::wavelets::function<D>;
  using point = far::wavelets::point<D>;

 public:
  explicit job(const request& asked) : asked_(asked) {}

  /// Collective.
  void run() {
    for (const stage& one : asked_.stages) check(one);
    if (asked_.load.empty()) {
      f_ = std::make_unique<expression>(function_of_name(asked_.function, D), D);
      measured("project", "", [&] {
        tree_ = made(*f_);
        return size();
      });
    } else {
      measured("load", asked_.load, [&] {
        tree_ = std::make_unique<tree>(tree::load(asked_.load, options()));
        return size();
      });
    }
    for (const stage& one : asked_.stages) perform(one);
    finish();
  }

 private:
  struct result {
    std::string name, argument, text;
    std::vector<std::pair<point, double>> values;
    std::optional<double> value;
    far::wavelets::tree_census census;
    double seconds = 0;
    std::vector<double> cpu;
  };

  static void check(const stage& one) {
    if (one.name == "inner") expression(function_of_name(one.argument, D), D);
    if (one.name == "evaluate" && !one.argument.starts_with("@")) point_of(one.argument);
    if (one.name == "differentiate" && one.argument[0] - 'x' >= static_cast<int>(D))
      throw toolkit::wrong_option("differentiate " + one.argument + ": the tree has " +
                                  std::to_string(D) + " dimensions");
  }

  typename tree::options options() {
    typename tree::options with;
    with.k = asked_.k;
    with.threshold = asked_.threshold;
    with.mode = asked_.mode;
    with.initial_level = asked_.initial_level;
    with.max_level = asked_.max_level;
    if (asked_.by_hash) with.placement = far::wavelets::box_placement<D>::by_hash();
    with.name = "the tree";
    with.progress = [this](std::size_t bytes) {
      if (bar_) bar_->add(bytes);
    };
    return with;
  }
  std::unique_ptr<tree> made(expression& f) {
    auto with = options();
    if (tree_) {  // a second one is made as the first, which may be from a file
      with = tree_->settings();
      with.placement = tree_->placement();
    }
    return std::make_unique<tree>(tree::project(f, with));
  }

  /// Collective: does `work`, which returns what to print of it.
  template <class Work>
  void measured(const std::string& name, const std::string& argument, Work work) {
    result r;
    r.name = name;
    r.argument = argument;
    far::barrier();
    bar_ = std::make_unique<programs::progress_bar>(name);
    now_ = &r;
    const double cpu = cpu_time();
    const auto begin = std::chrono::steady_clock::now();
    work();
    const double used = cpu_time() - cpu;
    far::barrier();
    r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    bar_.reset();
    r.cpu = far::all_gather(used);
    if (far::rank() == 0 && !asked_.json) print(r);
    results_.push_back(std::move(r));
  }
  static double cpu_time() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }

  /// Collective: what the tree is like now, as the result.
  bool size() {
    now_->census = tree_->census();
    const auto& c = now_->census;
    now_->text = toolkit::grouped(c.nodes) + (c.nodes == 1 ? " node, " : " nodes, ") +
                 toolkit::grouped(c.leaves) + (c.leaves == 1 ? " leaf" : " leaves") +
                 " down to level " + std::to_string(c.deepest) + ", " +
                 far::human_size(c.coefficients * sizeof(double));
    return true;
  }
  bool number(double value) {
    now_->value = value;
    now_->text = digits(value);
    return true;
  }

  void need(bool compressed) {
    if (tree_->compressed() == compressed) return;
    if (compressed)
      measured("compress", "", [&] {
        tree_->compress();
        return size();
      });
    else
      measured("reconstruct", "", [&] {
        tree_->reconstruct();
        return size();
      });
  }

  void perform(const stage& one) {
    const std::string &name = one.name, &argument = one.argument;
    if (name == "compress") {
      measured(name, "", [&] {
        tree_->compress();
        return size();
      });
    } else if (name == "reconstruct") {
      measured(name, "", [&] {
        tree_->reconstruct();
        return size();
      });
    } else if (name == "truncate") {
      need(true);
      measured(name, argument, [&] {
        tree_->truncate(toolkit::real_number(name, argument, 0, 1e300));
        return size();
      });
    } else if (name == "differentiate") {
      need(false);
      measured(name, argument, [&] {
        tree_ =
            std::make_unique<tree>(tree_->derivative(static_cast<std::size_t>(argument[0] - 'x')));
        return size();
      });
    } else if (name == "norm") {
      measured(name, "", [&] { return number(tree_->norm()); });
    } else if (name == "inner") {
      need(true);
      expression g(function_of_name(argument, D), D);
      measured(name, argument, [&] {
        auto other = made(g);
        other->compress();
        return number(tree_->inner(*other));
      });
    } else if (name == "evaluate") {
      need(false);
      measured(name, argument, [&] { return evaluate(argument); });
    } else if (name == "plot") {
      need(false);
      measured(name, argument, [&] { return plot(argument); });
    } else if (name == "save") {
      measured(name, argument, [&] {
        tree_->save(argument);
        return size();
      });
    } else {
      measured(name, "", [&] {
        tree_->balance();
        return size();
      });
    }
  }

  static point point_of(const std::string& text) {
    point x{};
    std::string rest = text;
    for (char& c : rest)
      if (c == ',' || c == '\t') c = ' ';
    std::istringstream in(rest);
    std::string word;
    for (double& e : x) {
      if (!(in >> word)) throw not_a_point(text);
      try {
        e = toolkit::real_number("evaluate", word, 0, 1);
      } catch (const toolkit::wrong_option&) {
        throw not_a_point(text);
      }
    }
    if (in >> word) throw not_a_point(text);
    return x;
  }
  static toolkit::wrong_option not_a_point(const std::string& text) {
    return toolkit::wrong_option("evaluate: '" + text.substr(0, 100) + "' is no point of " +
                                 std::to_string(D) + (D == 1 ? " coordinate" : " coordinates") +
                                 " from 0 to 1");
  }

  /// Collective: each rank evaluates its part of the points.
  bool evaluate(const std::string& argument) {
    std::vector<point> points;
    std::string problem;
    if (!argument.starts_with("@")) {
      points.push_back(point_of(argument));
    } else if (far::rank() == 0) {
      const std::string path = argument.substr(1);
      std::ifstream in(path);
      if (!in) problem = "cannot open " + path;
      std::string line;
      std::size_t number = 0;
      while (problem.empty() && std::getline(in, line)) {
        ++number;
        if (line.find_first_not_of(" \t\r") == std::string::npos || line[0] == '#') continue;
        if (line.back() == '\r') line.pop_back();
        try {
          points.push_back(point_of(line));
        } catch (const toolkit::wrong_option& e) {
          problem = path + ", line " + std::to_string(number) + ": " + e.what();
        }
      }
    }
    programs::refuse_together("wavelets", problem);
    points = far::broadcast(points, 0);
    const std::vector<double> values = at_points(points);
    for (std::size_t i = 0; i < points.size(); ++i) {
      now_->values.emplace_back(points[i], values[i]);
      now_->text += i == 0 ? "" : "\n";
      for (double e : points[i]) now_->text += digits(e) + " ";
      now_->text += digits(values[i]);
    }
    return true;
  }
  /// Collective; `points` are the same on all ranks.
  std::vector<double> at_points(const std::vector<point>& points) {
    const auto mine = far::even_part(points.size(), far::rank(), far::nprocs());
    const std::vector<double> values =
        tree_->evaluate(std::span(points).subspan(mine.first, mine.size()));
    std::vector<double> all;
    for (const auto& some : far::all_gather(values))
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }

  /// Collective.
  bool plot(const std::string& path) {
    const bool line = D == 1;
    std::array<std::size_t, 2> axes{0, 1};
    point at{};
    if constexpr (D == 3) {
      at[asked_.slice_axis] = asked_.slice_at;
      axes = {asked_.slice_axis == 0 ? 1u : 0u, asked_.slice_axis == 2 ? 1u : 2u};
    }
    constexpr std::size_t across = D == 1 ? 601 : 128, down = D == 1 ? 1 : 128;
    std::vector<point> points;
    for (std::size_t row = 0; row < down; ++row)
      for (std::size_t column = 0; column < across; ++column) {
        if (line) {
          at[0] = static_cast<double>(column) / (across - 1);
        } else {
          at[axes[0]] = (static_cast<double>(column) + 0.5) / across;
          at[axes[1 % D]] = (static_cast<double>(row) + 0.5) / down;
        }
        points.push_back(at);
      }
    picture shown;
    shown.columns = across;
    shown.rows = down;
    shown.values = at_points(points);
    std::vector<picture_box> boxes;
    tree_->for_each_leaf([&](const auto& box, std::span<double>) {
      if constexpr (D == 3)
        if (far::wavelets::tree_box<3>::around(at, box.level).at[asked_.slice_axis] !=
            box.at[asked_.slice_axis])
          return;
      const double side = std::ldexp(1.0, -static_cast<int>(box.level));
      boxes.push_back(
          {side * box.at[axes[0]], line ? 0.0 : side * box.at[axes[1 % D]], side, box.level});
    });
    for (const auto& some : far::all_gather(boxes))
      shown.boxes.insert(shown.boxes.end(), some.begin(), some.end());
    const auto census = tree_->census();
    shown.leaves_of_level = census.leaves_of_level;
    shown.title = title();
    shown.axes = {std::string(1, "xyz"[axes[0]]), std::string(1, "xyz"[axes[1]])};
    shown.about =
        toolkit::grouped(census.nodes) + " nodes, k = " + std::to_string(tree_->settings().k);
    if (D == 3)
      shown.about += std::string(", ") + "xyz"[asked_.slice_axis] + " = " + digits(asked_.slice_at);
    const std::string svg = line ? curve_svg(shown) : map_svg(shown);
    programs::write_whole("wavelets", path, svg);
    now_->text = path;
    return true;
  }
  std::string title() const {
    std::string what = asked_.load.empty() ? asked_.function : asked_.load;
    for (const result& r : results_)
      if (r.name == "differentiate") what = "d/d" + r.argument + " " + what;
    return what;
  }

  void print(const result& r) const {
    std::string head =
        r.name +
        (r.argument.empty() || r.name == "evaluate" || r.name == "plot" ? "" : " " + r.argument);
    if (r.values.size() > 1) {
      std::printf("%s\n%s\n", head.c_str(), r.text.c_str());
      return;
    }
    std::printf("%-22s %s\n", head.c_str(), r.text.c_str());
    std::fflush(stdout);
  }

  void finish() const {
    if (far::rank() != 0) return;
    if (asked_.json) {
      print_json();
    } else if (asked_.times) {
      toolkit::table table(toolkit::columns::figures);
      std::vector<std::string> head{"", "seconds"};
      for (std::size_t i = 0; i < far::nprocs(); ++i) head.push_back("cpu " + std::to_string(i));
      table.row(head);
      for (const result& r : results_) {
        std::vector<std::string> row{r.name, seconds(r.seconds)};
        for (double s : r.cpu) row.push_back(seconds(s));
        table.row(row);
      }
      std::printf("\n%s", table.text().c_str());
    }
  }
  static std::string seconds(double s) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", s);
    return text;
  }
  void print_json() const {
    const auto& with = tree_->settings();
    far::json_writer out;
    out.begin_object();
    out.key("function").value(asked_.load.empty() ? asked_.function : "");
    out.key("dimensions").value(D).key("k").value(with.k).key("threshold").value(with.threshold);
    out.key("ranks").value(far::nprocs());
    out.key("stages").begin_list(far::json_lines::many);
    for (const result& r : results_) {
      out.begin_object();
      out.key("name")
          .value(r.name)
          .key("argument")
          .value(r.argument)
          .key("seconds")
          .value(r.seconds);
      out.key("cpu_seconds").begin_list();
      for (double s : r.cpu) out.value(s);
      out.end_list();
      // As text, since numbers of JSON here have six digits.
      if (r.value) out.key("value").value(*r.value).key("digits").value(digits(*r.value));
      if (r.census.nodes != 0) {
        out.key("nodes").value(r.census.nodes).key("leaves").value(r.census.leaves);
        out.key("deepest").value(r.census.deepest).key("coefficients").value(r.census.coefficients);
        out.key("most_of_rank").value(r.census.most_of_rank);
      }
      if (!r.values.empty()) {
        out.key("values").begin_list();
        for (const auto& [x, value] : r.values) {
          out.begin_list();
          for (double e : x) out.value(e);
          out.value(value);
          out.end_list();
        }
        out.end_list();
      }
      out.end_object();
    }
    out.end_list();
    out.end_object();
    std::printf("%s\n", out.text().c_str());
  }

  const request& asked_;
  std::unique_ptr<expression> f_;
  std::unique_ptr<tree> tree_;
  std::unique_ptr<programs::progress_bar> bar_;
  std::vector<result> results_;
  result* now_ = nullptr;
};

template <std::size_t D>
void run(const request& asked) {
  job<D>(asked).run();
}

}  // namespace wavelets_program
