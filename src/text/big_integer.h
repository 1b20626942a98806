// Integers beyond 64 bits, as JSON texts may have them and Python keeps them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace portico {

// A view of one; whoever made it owns the digits.
struct BigInteger {
  bool negative;
  uint32_t size;  // digits of base 2^32, lowest first; the highest is not 0
  const uint32_t* digits;
};

// One read from its decimal text, immutable.
class JsonBigInteger {
 public:
  // As many digits as Python reads by default; the conversion takes time by their square.
  static constexpr size_t kMaxDigits = 4300;

  // `text`: a JSON integer of at most kMaxDigits digits.
  static std::shared_ptr<const JsonBigInteger> Read(std::string_view text);

  const std::string& text() const { return text_; }
  const BigInteger& value() const { return value_; }
  double ToDouble() const;  // infinite beyond the range

 private:
  explicit JsonBigInteger(std::string_view text);

  std::string text_;
  std::vector<uint32_t> digits_;
  BigInteger value_;
};

}  // namespace portico
