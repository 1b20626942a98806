// Signs of ASCII between letters and digits that are said in formulas and rates alone.
#pragma once

#include <cstddef>
#include <string_view>

namespace portico::pipeline {

// The '-' at `at` subtracts: "5-3=2", "x-5"; not "well-known", "pages 5-10", "2020-01-05", "F-16".
bool Subtracts(std::string_view text, size_t at);

// What is said for the '/' at `at` and the unit behind it, and the length of both; length 0 if it stands before none.
struct SpokenRate {
  std::string_view words;  // "per hour"
  size_t length = 0;
};
// "80 km/h", "120 mg/l", "m/s"; not "and/or", "item/s".
SpokenRate RateOf(std::string_view text, size_t at);

}  // namespace portico::pipeline
