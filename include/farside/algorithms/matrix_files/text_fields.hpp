// Fields of a line of text: whole numbers, real numbers, and what is wrong with them. Local.
#pragma once

#include <farside/algorithms/matrix_files/format.hpp>
#include <farside/base/error.hpp>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <system_error>

namespace far::inline FARSIDE_BACKEND::detail {

/// Thrown where a text is not what it should be.
struct bad_text {
  const char* at;  ///< within the line that is bad
  std::string why;
};

/// Walks over the fields of lines. The text ends with a newline, so that nothing runs over its end.
class text_cursor {
 public:
  text_cursor(const char* at, const char* end) : at_(at), end_(end) {}

  static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

  const char* at() const { return at_; }
  void skip_blanks() {
    while (blank(*at_)) ++at_;
  }
  bool at_line_end() const { return *at_ == '\n'; }
  /// Requires that only blanks are left of the line, and goes to the next one. `after` is what the
  /// line has said before.
  void end_line(const char* after) {
    skip_blanks();
    if (!at_line_end()) refuse("has ", field(), " behind ", after);
    ++at_;
  }

  /// A whole number from `least` to `most`.
  std::uint64_t count(const char* what, std::uint64_t least, std::uint64_t most) {
    skip_blanks();
    if (const auto [number, length] = short_count();
        length != 0 && number >= least && number <= most) {
      at_ += length;
      return number;
    }
    const char* begin = at_;
    std::uint64_t value = 0;
    if (*at_ == '+') ++at_;
    auto [stop, error] = std::from_chars(at_, end_, value);
    if (error == std::errc{} && ends_field(*stop) && value >= least && value <= most) {
      at_ = stop;
      return value;
    }
    at_ = begin;
    if (at_line_end()) refuse("has no ", what);
    refuse("has ", field(), " as ", what, ", which is no whole number from ", least, " to ", most);
  }

  /// What `field` says: the value of an entry, of a file with such values.
  template <matrix_value T>
  T value(matrix_values kind) {
    if constexpr (is_complex<T>) {
      using part = typename T::value_type;
      if (kind == matrix_values::complex) {
        part real = value_of<part>(matrix_values::real, "real part");
        return {real, value_of<part>(matrix_values::real, "imaginary part")};
      }
      return T(value_of<part>(kind, "value"));
    } else {
      return value_of<T>(kind, "value");
    }
  }

  /// The next field as messages show it: quoted, what cannot be printed by its number.
  std::string field() const {
    std::string shown = "'";
    const char* c = at_;
    for (; c != end_ && !ends_field(*c) && shown.size() < 40; ++c) {
      if (*c >= ' ' && *c <= '~') {
        shown += *c;
      } else {
        constexpr const char* digits = "0123456789abcdef";
        auto byte = static_cast<unsigned char>(*c);
        shown += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      }
    }
    return shown + (c != end_ && !ends_field(*c) ? "...'" : "'");
  }

  template <class... Parts>
  [[noreturn, gnu::cold, gnu::noinline]] void refuse(const Parts&... parts) const {
    throw bad_text{at_, text(parts...)};
  }

 private:
  static bool ends_field(char c) { return blank(c) || c == '\n'; }

  struct short_number {
    std::uint64_t value;
    std::size_t length;  ///< 0: it is longer, or is none
  };
  /// A number of fewer than 8 digits, whose field ends behind it: most row and column numbers are such.
  /// All digits at once, where the steps for one digit would wait for those for the one before.
  short_number short_count() const {
    if (std::endian::native != std::endian::little || end_ - at_ < 8) return {};
    std::uint64_t bytes;
    std::memcpy(&bytes, at_, 8);
    constexpr std::uint64_t ones = 0x0101010101010101;
    // The high bit of each byte that is no digit. Nothing carries into a byte before the first such
    // one, and only that counts.
    const std::uint64_t other = (((bytes ^ ones * '0') + ones * (0x80 - 10)) | bytes) & ones * 0x80;
    const auto digits = static_cast<std::size_t>(std::countr_zero(other)) / 8;
    if (digits == 0 || digits >= 8 || !ends_field(at_[digits])) return {};
    // Digits to the upper bytes, zeros before them. Then pairs, fours, and eight are joined.
    std::uint64_t value = (bytes ^ ones * '0') << (64 - 8 * digits);
    value = (value * 10 + (value >> 8)) & 0x00ff00ff00ff00ff;
    value = (value * 100 + (value >> 16)) & 0x0000ffff0000ffff;
    value = (value * 10000 + (value >> 32)) & 0xffffffff;
    return {value, digits};
  }

  template <class T>
  T value_of(matrix_values kind, const char* what) {
    skip_blanks();
    if constexpr (std::is_same_v<T, bool>) {
      if (kind == matrix_values::integer) return whole<std::int64_t>(kind, what) != 0;
      return real<double>(what) != 0;
    } else if constexpr (std::is_integral_v<T>) {
      return whole<T>(kind, what);
    } else {
      if (kind == matrix_values::integer) require_digits(what);
      return real<T>(what);
    }
  }

  /// An integer may be larger than any integral type where it is read as a floating-point number.
  void require_digits(const char* what) const {
    const char* c = at_;
    if (*c == '+' || *c == '-') ++c;
    while (*c >= '0' && *c <= '9') ++c;
    if (!at_line_end() && !ends_field(*c))
      refuse("has ", field(), " as ", what, ", which is no whole number");
  }

  /// from_chars knows no plus sign. Behind it there must be a number, not another sign.
  void skip_plus() {
    if (*at_ == '+' && at_[1] != '-' && at_[1] != '+') ++at_;
  }

  template <class T>
  T whole(matrix_values kind, const char* what) {
    const char* begin = at_;
    T result{};
    skip_plus();
    auto [stop, error] = std::from_chars(at_, end_, result);
    if (error == std::errc{} && ends_field(*stop)) {
      at_ = stop;
      return result;
    }
    at_ = begin;
    if (at_line_end()) refuse("has no ", what);
    if (kind == matrix_values::real) return rounded<T>(what);
    if (std::is_unsigned_v<T> && *begin == '-')
      refuse("has ", field(), " as ", what, ", which is negative and does not fit ",
             value_name<T>());
    if (error == std::errc::result_out_of_range)
      refuse("has ", field(), " as ", what, ", which does not fit ", value_name<T>());
    refuse("has ", field(), " as ", what, ", which is no whole number");
  }

  /// A whole number that is written as a real one: 2.0, 1e3.
  template <class T>
  T rounded(const char* what) {
    const char* begin = at_;
    const double value = real<double>(what);
    constexpr double exact = 9007199254740992;  // up to there doubles are exact
    const double least = static_cast<double>(std::numeric_limits<T>::min());
    const double most = static_cast<double>(std::numeric_limits<T>::max());
    if (value != std::floor(value) || !(std::abs(value) <= exact) || value < least ||
        value > most) {
      at_ = begin;
      refuse("has ", field(), " as ", what, ", which is no whole number that fits ",
             value_name<T>());
    }
    return static_cast<T>(value);
  }

  template <class T>
  T real(const char* what) {
    const char* begin = at_;
    T result{};
    skip_plus();
    auto [stop, error] = std::from_chars(at_, end_, result);
    if (error == std::errc{} && ends_field(*stop)) [[likely]] {
      at_ = stop;
      return result;
    }
    at_ = begin;
    return unusual_real<T>(what);
  }

  /// With Fortran's exponents, 1.0D+02; too small; or wrong.
  template <class T>
  [[gnu::cold, gnu::noinline]] T unusual_real(const char* what) {
    if (at_line_end()) refuse("has no ", what);
    const char* begin = at_;
    std::string copy;
    skip_plus();
    for (const char* c = at_; !ends_field(*c) && copy.size() < 4096; ++c)
      copy += *c == 'D' || *c == 'd' ? 'e' : *c;
    const char* c = at_;
    at_ = begin;
    T result{};
    auto [stop, error] = std::from_chars(copy.data(), copy.data() + copy.size(), result);
    if (stop != copy.data() + copy.size() || error == std::errc::invalid_argument)
      refuse("has ", field(), " as ", what, ", which is no number");
    if (error == std::errc::result_out_of_range) {
      if (!rounds_to_zero(copy))
        refuse("has ", field(), " as ", what, ", which is too large for ", value_name<T>());
      result = copy[0] == '-' ? -T{0} : T{0};
    }
    at_ = c + copy.size();
    return result;
  }

  /// Of a number that is out of range: whether it is so by being small. The first digit that counts
  /// stands at some power of ten, of which the exponent says the rest.
  static bool rounds_to_zero(const std::string& number) {
    long power = 0;
    bool point = false, significant = false;
    std::size_t i = number[0] == '-' ? 1 : 0;
    for (; i < number.size() && number[i] != 'e' && number[i] != 'E'; ++i) {
      if (number[i] == '.') {
        point = true;
        continue;
      }
      significant = significant || number[i] != '0';
      if (significant && !point) ++power;
      if (!significant && point) --power;
    }
    if (i == number.size()) return power < 0;
    const char* exponent = number.data() + i + 1;
    if (*exponent == '+') ++exponent;
    long shift = 0;
    auto [stop, error] = std::from_chars(exponent, number.data() + number.size(), shift);
    if (error == std::errc::result_out_of_range) return *exponent == '-';
    return shift < -power;
  }

  const char* at_;
  const char* end_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
