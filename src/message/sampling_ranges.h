// The ranges of request values, once for every API that decodes them (SGLang's, where it has one).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace portico {

struct IntRange {
  int64_t min;
  int64_t max;
};

struct NumberRange {
  double min;
  double max;
  bool above_min;         // min itself is outside
  std::string_view text;  // "a number of at least 0"

  // False for NaN.
  constexpr bool Holds(double value) const {
    return value <= max && (above_min ? value > min : value >= min);
  }
};

inline constexpr int64_t kMaxInt32 = INT32_MAX;

inline constexpr NumberRange kTemperatureRange{0, 1e308, false, "a number of at least 0"};
inline constexpr NumberRange kTopPRange{0, 1, true, "a number above 0 and at most 1"};
inline constexpr NumberRange kMinPRange{0, 1, false, "a number from 0 to 1"};
inline constexpr NumberRange kPenaltyRange{-2, 2, false, "a number from -2 to 2"};
inline constexpr NumberRange kRepetitionRange{0, 2, true, "a number above 0 and at most 2"};
inline constexpr NumberRange kLogitBiasRange{-100, 100, false, "a number from -100 to 100"};
inline constexpr std::string_view kTokenIdText = "a token id (an integer from 0 to 2147483647)";
inline constexpr std::string_view kTopKText = "-1 (all tokens) or an integer from 1 to 2147483647";
inline constexpr IntRange kChoices{1, 128};
// How many tokens an answer may have is for the context to say (service/plan/sampling_rules.h).
inline constexpr IntRange kAnswerTokens{1, INT64_MAX};
inline constexpr IntRange kAnswerTokensOrNone{0, INT64_MAX};
inline constexpr IntRange kTopLogprobs{0, 20};  // alternatives a position

inline constexpr size_t kMaxStops = 32;
inline constexpr size_t kMaxStopBytes = 4096;  // of one stop string
inline constexpr size_t kMaxStopTokenIds = 4096;
inline constexpr size_t kMaxLogitBiases = 16384;
inline constexpr size_t kMaxLogprobIds = 1024;  // tokens whose log-probability is asked for by id
inline constexpr size_t kMaxRidBytes = 256;

}  // namespace portico
