// Functions that are given as text: 5*exp(-300*((x-.5)^2+(y-.5)^2)).
//
//   expression  := term { (+|-) term }
//   term        := factor { (*|/) factor }
//   factor      := (+|-) factor | power
//   power       := primary [ (^|**) factor ]                  2^3^2 is 2^9, -x^2 is -(x^2)
//   primary     := number | x | y | z | pi | e | ( expression ) | function ( expression {, expression} )
//
// A text becomes a list of steps over a stack, which are done for many points at a time: so a point
// costs as many operations as the text has, and nothing of the text is looked at again.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wavelets_program {

class expression {
 public:
  /// Throws toolkit::wrong_option with the place that makes no sense. `dimensions`: how many of x,
  /// y, z there are.
  expression(const std::string& text, std::size_t dimensions);

  const std::string& text() const { return text_; }

  /// Values at many points.
  template <std::size_t D>
  void operator()(std::span<const std::array<double, D>> points, std::span<double> values) {
    evaluate(points.front().data(), D, points.size(), values.data());
  }

 private:
  friend class expression_parser;
  enum class step_kind { constant, variable, unary, binary };
  struct step {
    step_kind kind;
    double constant = 0;
    std::size_t variable = 0;
    double (*one)(double) = nullptr;
    double (*two)(double, double) = nullptr;
    char sign = 0;  ///< of those binary steps that are arithmetic
  };

  void evaluate(const double* points, std::size_t stride, std::size_t n, double* values);

  std::string text_;
  std::vector<step> steps_;
  std::size_t deepest_ = 0;  ///< entries that the stack has at once
  std::vector<double> stack_;
};

/// The text of a function that has a name; the text itself if there is none of that name. For
/// `help`.
std::string function_of_name(const std::string& name, std::size_t dimensions);
/// Names of functions, with what they are.
std::string named_functions();

}  // namespace wavelets_program
