#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "app/options/options_table.h"
#include "app/options/route_options_table.h"
#include "router/worker.h"

namespace portico {
namespace {

Status BadValue(std::string message) {
  return Error(StatusCode::kInvalidArgument, std::move(message));
}

// 31 years. The clock counts nanoseconds in 64 bits: a longer time would be over at once.
constexpr double kMaxSeconds = 1e9;

double MaxOf(const RouteOption& option) {
  if (option.metavar == "SECONDS") return std::min(option.max, kMaxSeconds);
  if (option.metavar == "MS") return std::min(option.max, 1e3 * kMaxSeconds);
  return option.max;
}

Status CheckRange(const RouteOption& option, double value, const std::string& text) {
  const double max = MaxOf(option);
  if (value >= option.min && value <= max) return OkStatus();
  return BadValue(fmt::format("{} is not in {}..{}", text, option.min, max));
}

bool IsChoice(std::string_view choices, std::string_view text) {
  const std::string all = fmt::format("|{}|", choices);
  return text.find('|') == std::string_view::npos &&
         all.find(fmt::format("|{}|", text)) != std::string::npos;
}

Status Set(const RouteOption& option, const std::string& text, std::string* value) {
  if (!option.choices.empty() && !IsChoice(option.choices, text)) {
    std::string why =
        option.choices.find('|') == std::string_view::npos
            ? fmt::format("only {} is accepted", option.choices)
            : fmt::format("`{}` is not one of {}", text,
                          absl::StrReplaceAll(std::string(option.choices), {{"|", ", "}}));
    if (!option.choices_note.empty()) why += fmt::format("; {}", option.choices_note);
    return BadValue(std::move(why));
  }
  if (option.name == "api-key") {
    // An unset variable of a shell would open the gateway.
    if (text.empty()) return BadValue("is empty; leave it out to serve without a key");
    if (!router::IsHeaderKey(text)) return BadValue("has other than printable ASCII");
  }
  *value = text;
  return OkStatus();
}

Status Set(const RouteOption&, const std::string& text, bool* value) {
  if (text != "true" && text != "false")
    return BadValue(fmt::format("`{}` is not true or false", text));
  *value = text == "true";
  return OkStatus();
}

Status Set(const RouteOption& option, const std::string& text, int64_t* value) {
  int64_t number = 0;
  if (option.metavar == "BYTES") {
    PORTICO_ASSIGN_OR_RETURN(number, ParseBytes(text));
  } else if (!absl::SimpleAtoi(text, &number)) {
    return BadValue(fmt::format("`{}` is not a whole number", text));
  }
  PORTICO_RETURN_IF_ERROR(CheckRange(option, static_cast<double>(number), text));
  if (number == 0 && !option.no_zero.empty()) return BadValue(std::string(option.no_zero));
  *value = number;
  return OkStatus();
}

Status Set(const RouteOption& option, const std::string& text, double* value) {
  double number = 0;
  if (!absl::SimpleAtod(text, &number) || !std::isfinite(number)) {
    return BadValue(fmt::format("`{}` is not a number", text));
  }
  PORTICO_RETURN_IF_ERROR(CheckRange(option, number, text));
  *value = number;
  return OkStatus();
}

}  // namespace

Status SetRouteOption(const RouteOption& option, const std::vector<std::string>& values,
                      RouteOptions* options) {
  return std::visit(
      [&](auto member) -> Status {
        auto& value = options->*member;
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::vector<std::string>>) {
          value.insert(value.end(), values.begin(), values.end());
          return OkStatus();
        } else {
          return Set(option, values.empty() ? "true" : values.back(), &value);
        }
      },
      option.member);
}

std::string RouteOptionText(const RouteOption& option, const RouteOptions& options) {
  return std::visit(
      [&](auto member) -> std::string {
        const auto& value = options.*member;
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::vector<std::string>>) {
          return fmt::format("{}", fmt::join(value, " "));
        } else {
          return fmt::format("{}", value);
        }
      },
      option.member);
}

}  // namespace portico
