#include "expression.hpp"

#include <farside/base/error.hpp>
#include <toolkit/option_reader.hpp>
#include <toolkit/words.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

namespace wavelets_program {

namespace {

struct named_unary {
  const char* name;
  double (*call)(double);
};
struct named_binary {
  const char* name;
  double (*call)(double, double);
};

constexpr std::array<named_unary, 17> unary{{
    {"exp", [](double a) { return std::exp(a); }},
    {"log", [](double a) { return std::log(a); }},
    {"sqrt", [](double a) { return std::sqrt(a); }},
    {"abs", [](double a) { return std::abs(a); }},
    {"sin", [](double a) { return std::sin(a); }},
    {"cos", [](double a) { return std::cos(a); }},
    {"tan", [](double a) { return std::tan(a); }},
    {"asin", [](double a) { return std::asin(a); }},
    {"acos", [](double a) { return std::acos(a); }},
    {"atan", [](double a) { return std::atan(a); }},
    {"sinh", [](double a) { return std::sinh(a); }},
    {"cosh", [](double a) { return std::cosh(a); }},
    {"tanh", [](double a) { return std::tanh(a); }},
    {"erf", [](double a) { return std::erf(a); }},
    {"floor", [](double a) { return std::floor(a); }},
    {"step", [](double a) { return a < 0 ? 0.0 : 1.0; }},
    {"gamma", [](double a) { return std::tgamma(a); }},
}};
constexpr std::array<named_binary, 5> binary{{
    {"pow", [](double a, double b) { return std::pow(a, b); }},
    {"min", [](double a, double b) { return std::fmin(a, b); }},
    {"max", [](double a, double b) { return std::fmax(a, b); }},
    {"atan2", [](double a, double b) { return std::atan2(a, b); }},
    {"hypot", [](double a, double b) { return std::hypot(a, b); }},
}};

}  // namespace

class expression_parser {
  using kind = expression::step_kind;

 public:
  expression_parser(expression& to, std::size_t dimensions)
      : to_(to), text_(to.text_), dimensions_(dimensions) {}

  void parse() {
    if (text_.size() > 10000) fail("it is longer than 10,000 characters");
    sum();
    if (next() != '\0') fail("an operator or the end is expected");
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw toolkit::wrong_option(far::text(
        "the function ",
        text_.size() > 200 ? std::string(text_.substr(0, 200)) + "..." : std::string(text_), ": ",
        why,
        at_ < text_.size()
            ? far::text(", and '", std::string(1, text_[at_]), "' is at character ", at_ + 1)
            : std::string(", and the text ends")));
  }
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }

  void sum() {
    // Parentheses and signs nest as calls do.
    if (++nesting_ > 200) fail("it is nested more than 200 deep");
    term();
    for (;;) {
      if (accept('+'))
        term(), arithmetic('+');
      else if (accept('-'))
        term(), arithmetic('-');
      else
        break;
    }
    --nesting_;
  }
  void term() {
    signed_factor();
    for (;;) {
      if (next() == '*' && !text_.substr(at_).starts_with("**"))
        ++at_, signed_factor(), arithmetic('*');
      else if (accept('/'))
        signed_factor(), arithmetic('/');
      else
        break;
    }
  }
  void signed_factor() {
    if (++nesting_ > 200) fail("it is nested more than 200 deep");
    if (accept('-')) {
      signed_factor();
      push({.kind = kind::unary, .one = [](double a) { return -a; }}, 0);
    } else if (accept('+')) {
      signed_factor();
    } else {
      primary();
      if (next() == '^' || text_.substr(at_).starts_with("**")) {
        at_ += text_[at_] == '^' ? 1 : 2;
        signed_factor();
        arithmetic('^');
      }
    }
    --nesting_;
  }
  void primary() {
    const char c = next();
    if (accept('(')) {
      sum();
      if (!accept(')')) fail("a ')' is missing");
    } else if ((c >= '0' && c <= '9') || c == '.') {
      double value = 0;
      auto [end, failed] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (failed != std::errc{}) fail("that is no number");
      at_ = static_cast<std::size_t>(end - text_.data());
      push({.kind = kind::constant, .constant = value}, 1);
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      named();
    } else {
      fail("a number, x, y, z, a function or '(' is expected");
    }
  }
  void named() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    const std::string name(text_.substr(begin, at_ - begin));
    if (name == "x" || name == "y" || name == "z") {
      const auto axis = static_cast<std::size_t>(name[0] - 'x');
      at_ = axis < dimensions_ ? at_ : begin;
      if (axis >= dimensions_)
        fail(far::text("there is no ", name, " in ", dimensions_,
                       dimensions_ == 1 ? " dimension" : " dimensions"));
      push({.kind = kind::variable, .variable = axis}, 1);
      return;
    }
    if (name == "pi" || name == "e") {
      push({.kind = kind::constant, .constant = name == "pi" ? std::numbers::pi : std::numbers::e},
           1);
      return;
    }
    for (const auto& [known, call] : unary)
      if (name == known) {
        arguments(name, 1);
        push({.kind = kind::unary, .one = call}, 0);
        return;
      }
    for (const auto& [known, call] : binary)
      if (name == known) {
        arguments(name, 2);
        push({.kind = kind::binary, .two = call}, -1);
        return;
      }
    std::vector<std::string> names{"pi"};
    for (const auto& one : unary) names.emplace_back(one.name);
    for (const auto& one : binary) names.emplace_back(one.name);
    const std::string meant = toolkit::nearest(name, names);
    at_ = begin;
    fail(far::text("nothing is called ", name,
                   meant.empty() ? "" : "; did you mean " + meant + "?"));
  }
  void arguments(const std::string& name, std::size_t count) {
    if (!accept('(')) fail(far::text(name, " needs '(' behind it"));
    for (std::size_t i = 0; i < count; ++i) {
      if (i != 0 && !accept(',')) fail(far::text(name, " takes ", count, " arguments"));
      sum();
    }
    if (!accept(')'))
      fail(far::text(name, " takes ", count, count == 1 ? " argument" : " arguments",
                     "; a ')' is expected"));
  }

  void arithmetic(char sign) {
    // Squares and the like are products: exact to a rounding, and many times as fast.
    auto& steps = to_.steps_;
    if (sign == '^' && steps.back().kind == kind::constant && steps.back().constant == 2) {
      steps.pop_back();
      --depth_;
      push({.kind = kind::unary, .one = [](double a) { return a * a; }}, 0);
      return;
    }
    push({.kind = kind::binary,
          .two = [](double a, double b) { return std::pow(a, b); },
          .sign = sign},
         -1);
  }
  void push(const expression::step& one, int grows) {
    to_.steps_.push_back(one);
    depth_ += grows;
    to_.deepest_ = std::max(to_.deepest_, static_cast<std::size_t>(depth_));
  }

  expression& to_;
  std::string_view text_;
  std::size_t dimensions_, at_ = 0;
  int depth_ = 0, nesting_ = 0;
};

expression::expression(const std::string& text, std::size_t dimensions) : text_(text) {
  expression_parser(*this, dimensions).parse();
}

void expression::evaluate(const double* points, std::size_t stride, std::size_t n, double* values) {
  stack_.resize((deepest_ + 1) * n);
  double* top = stack_.data() - n;  // the uppermost entry
  for (const step& one : steps_) {
    switch (one.kind) {
      case step_kind::constant:
        top += n;
        std::fill_n(top, n, one.constant);
        break;
      case step_kind::variable:
        top += n;
        for (std::size_t i = 0; i < n; ++i) top[i] = points[i * stride + one.variable];
        break;
      case step_kind::unary:
        for (std::size_t i = 0; i < n; ++i) top[i] = one.one(top[i]);
        break;
      case step_kind::binary: {
        const double* b = top;
        top -= n;
        if (one.sign == '+')
          for (std::size_t i = 0; i < n; ++i) top[i] += b[i];
        else if (one.sign == '-')
          for (std::size_t i = 0; i < n; ++i) top[i] -= b[i];
        else if (one.sign == '*')
          for (std::size_t i = 0; i < n; ++i) top[i] *= b[i];
        else if (one.sign == '/')
          for (std::size_t i = 0; i < n; ++i) top[i] /= b[i];
        else
          for (std::size_t i = 0; i < n; ++i) top[i] = one.two(top[i], b[i]);
      }
    }
  }
  std::copy_n(stack_.data(), n, values);
}

namespace {

/// (x-.5)^2+(y-.5)^2 of so many dimensions.
std::string radius2(std::size_t dimensions) {
  std::string text;
  for (std::size_t d = 0; d < dimensions; ++d)
    text += std::string(d == 0 ? "" : "+") + "(" + "xyz"[d] + "-.5)^2";
  return "(" + text + ")";
}

std::string product_of(const std::string& left, const std::string& right, std::size_t dimensions) {
  std::string text;
  for (std::size_t d = 0; d < dimensions; ++d)
    text += (d == 0 ? "" : "*") + left + "xyz"[d] + right;
  return text;
}

}  // namespace

std::string function_of_name(const std::string& name, std::size_t dimensions) {
  if (name == "gauss") return "5*exp(-300*" + radius2(dimensions) + ")";
  if (name == "wide") return "5*exp(-5*" + radius2(dimensions) + ")";
  if (name == "cusp") return "exp(-20*sqrt(" + radius2(dimensions) + "))";
  if (name == "waves") return product_of("sin(20*", ")", dimensions);
  if (name == "shell") return "exp(-2000*(sqrt(" + radius2(dimensions) + ")-.3)^2)";
  return name;
}

std::string named_functions() {
  return "gauss (5 exp(-300 r^2), r from the middle), wide (5 exp(-5 r^2)), cusp (exp(-20 r)), "
         "waves (products of\n"
         "sin(20 x)), shell (exp(-2000 (r - .3)^2))";
}

}  // namespace wavelets_program
