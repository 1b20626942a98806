#include "text/big_integer.h"

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdlib>
#include <iterator>

namespace portico {

std::shared_ptr<const JsonBigInteger> JsonBigInteger::Read(std::string_view text) {
  return std::shared_ptr<const JsonBigInteger>(new JsonBigInteger(text));
}

JsonBigInteger::JsonBigInteger(std::string_view text) : text_(text) {
  const boost::multiprecision::cpp_int integer(text_);
  export_bits(integer, std::back_inserter(digits_), 32, /*msv_first=*/false);
  value_ = {integer < 0, static_cast<uint32_t>(digits_.size()), digits_.data()};
}

double JsonBigInteger::ToDouble() const { return std::strtod(text_.c_str(), nullptr); }

}  // namespace portico
