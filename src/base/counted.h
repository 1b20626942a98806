// Numbers of things in sentences.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace portico {

// "1 worker", "2 workers", "0 workers": for nouns whose plural ends in s.
inline std::string Counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace portico
