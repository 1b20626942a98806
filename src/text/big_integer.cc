#include "text/big_integer.h"

#include <algorithm>
#include <cstdlib>

namespace portico {

std::shared_ptr<const JsonBigInteger> JsonBigInteger::Read(std::string_view text) {
  return std::shared_ptr<const JsonBigInteger>(new JsonBigInteger(text));
}

JsonBigInteger::JsonBigInteger(std::string_view text) : text_(text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  while (!text.empty()) {
    uint64_t carry = 0;
    uint64_t scale = 1;
    const size_t count = std::min<size_t>(text.size(), 9);
    for (const char c : text.substr(0, count)) {
      carry = carry * 10 + static_cast<uint64_t>(c - '0');
      scale *= 10;
    }
    text.remove_prefix(count);
    for (uint32_t& digit : digits_) {
      carry += digit * scale;
      digit = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) digits_.push_back(static_cast<uint32_t>(carry));
  }
  value_ = {negative, static_cast<uint32_t>(digits_.size()), digits_.data()};
}

double JsonBigInteger::ToDouble() const { return std::strtod(text_.c_str(), nullptr); }

}  // namespace portico
