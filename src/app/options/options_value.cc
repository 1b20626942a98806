// Values of options: from text, to text, and what they must satisfy.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "app/options/options_table.h"
#include "app/options/parser_names.h"
#include "engine/mock/mock_faults.h"
#include "message/request_media.h"

namespace portico {
namespace {

constexpr auto kMostMediaOfKind = static_cast<int64_t>(kMaxMediaOfKind);

Status Bad(std::string message) { return Error(StatusCode::kInvalidArgument, std::move(message)); }

Status CheckRange(const Option& option, double value, const std::string& text) {
  if (value >= option.min && value <= option.max) return OkStatus();
  if (option.bytes) {
    return Bad(fmt::format("{} is not in {:.0f}..{:.0f} bytes", text, option.min, option.max));
  }
  return Bad(fmt::format("{} is not in {:.0f}..{:.0f}", text, option.min, option.max));
}

StatusOr<int64_t> ParseWhole(const Option& option, const std::string& text) {
  if (option.bytes) return ParseBytes(text);
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) {
    // A number too long for 64 bits is out of range rather than no number.
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    if (digits) return CheckRange(option, HUGE_VAL, text);
    return Bad(fmt::format("`{}` is not a whole number", text));
  }
  return value;
}

template <typename Flag>
Status ParseFlag(const std::string& text, Flag* flag) {
  if (text != "true" && text != "false") {
    return Bad(fmt::format("`{}` is not true or false", text));
  }
  *flag = text == "true";
  return OkStatus();
}

std::string ChoiceList(std::string_view choices, std::string_view between = ", ") {
  std::string list(choices);
  for (size_t at = list.find('|'); at != std::string::npos; at = list.find('|', at)) {
    list.replace(at, 1, between);
  }
  return list;
}

bool IsChoice(std::string_view choices, std::string_view text) {
  const std::string all = fmt::format("|{}|", choices);
  return text.find('|') == std::string_view::npos &&
         all.find(fmt::format("|{}|", text)) != std::string::npos;
}

// The choice that a synonym stands for; other words stay.
std::string ChoiceOf(std::string_view synonyms, const std::string& text) {
  for (const std::string_view synonym : SplitAtBars(synonyms)) {
    const size_t equals = synonym.find('=');
    if (equals != std::string_view::npos && synonym.substr(0, equals) == text) {
      return std::string(synonym.substr(equals + 1));
    }
  }
  return text;
}

std::string BytesText(int64_t bytes) {
  static constexpr std::string_view kUnits[] = {"", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// Calls `visit` with the option's value.
template <typename Server, typename Model, typename Visitor>
auto VisitValue(const Option& option, Server* server, Model* model, Visitor visit) {
  return std::visit(
      [&](auto member) {
        if constexpr (std::is_invocable_v<decltype(member), const ModelOptions&>) {
          return visit(model->*member);
        } else {
          return visit(server->*member);
        }
      },
      option.member);
}

// An option of engines that no model has would be ignored without a word. Where one model has such an engine, what is said of every
// model may be meant for it.
Status CheckEngines(const std::vector<ModelOptions>& models) {
  const ServeOptions server;
  const ModelOptions unset;
  for (const Option& option : ServeOptionTable()) {
    if (option.engines.empty()) continue;
    bool said = false;
    bool taken = false;
    for (const ModelOptions& model : models) {
      said |= OptionText(option, server, model) != OptionText(option, server, unset);
      taken |= IsChoice(option.engines, model.engine);
    }
    if (said && !taken) {
      return Bad(
          fmt::format("--{} needs --engine {}", option.name, ChoiceList(option.engines, " or ")));
    }
  }
  return OkStatus();
}

Status CheckModels(const std::vector<ModelOptions>& models) {
  PORTICO_RETURN_IF_ERROR(CheckEngines(models));
  std::set<std::string> ids;
  for (const ModelOptions& model : models) {
    if (const auto faults = ParseMockFaults(model.mock_fault); !faults.ok()) {
      return Bad(fmt::format("--mock-fault: {}", MessageOf(faults.status())));
    }
    if (model.engine == "llama" && model.dtype == "float16") {
      return Bad(
          "--dtype: float16 needs --engine sglang; the embedded engine has auto, float32 and "
          "bfloat16");
    }
    PORTICO_RETURN_IF_ERROR(
        CheckToolCallParser("--tool-call-parser", model.tool_call_parser, OtherParserNames::kAuto));
    PORTICO_RETURN_IF_ERROR(CheckReasoningParser("--reasoning-parser", model.reasoning_parser,
                                                 OtherParserNames::kAuto));
    if (!ids.insert(ModelId(model)).second) {
      return Bad(
          fmt::format("two models are called `{}`; --served-model-name after each "
                      "--model-path gives them names of their own",
                      ModelId(model)));
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<int64_t> ParseBytes(const std::string& text) {
  struct Unit {
    std::string_view name;
    int shift;
  };
  static constexpr Unit kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30},
                                    {"K", 10},   {"M", 20},   {"G", 30}};
  std::string digits = text;
  int shift = 0;
  for (const Unit& unit : kUnits) {
    if (text.size() > unit.name.size() && text.ends_with(unit.name)) {
      digits.resize(text.size() - unit.name.size());
      shift = unit.shift;
      break;
    }
  }
  int64_t count = 0;
  if (!absl::SimpleAtoi(digits, &count) || count < 0 ||
      count > (std::numeric_limits<int64_t>::max() >> shift)) {
    return Bad(fmt::format("`{}` is not a number of bytes (1048576, 1024KiB, 1MiB)", text));
  }
  return count << shift;
}

Status SetOption(const Option& option, const std::string& text, ServeOptions* server,
                 ModelOptions* model) {
  // As an unset variable of a shell makes it: the server would be open.
  if (text.empty() && option.name.ends_with("api-key")) {
    return Bad("is empty; leave it out to serve without a key");
  }
  return VisitValue(
      option, server, model,
      Overloaded{[&](std::string& value) -> Status {
                   std::string choice = ChoiceOf(option.synonyms, text);
                   if (!option.choices.empty() && !IsChoice(option.choices, choice)) {
                     return Bad(
                         fmt::format("`{}` is not one of {}", text, ChoiceList(option.choices)));
                   }
                   value = std::move(choice);
                   return OkStatus();
                 },
                 [&](bool& value) { return ParseFlag(text, &value); },
                 [&](std::optional<bool>& value) { return ParseFlag(text, &value); },
                 [&](double& value) -> Status {
                   double number = 0;
                   if (!absl::SimpleAtod(text, &number) || std::isnan(number)) {
                     return Bad(fmt::format("`{}` is not a number", text));
                   }
                   PORTICO_RETURN_IF_ERROR(CheckRange(option, number, text));
                   value = number;
                   return OkStatus();
                 },
                 [&](auto& value) -> Status {
                   PORTICO_ASSIGN_OR_RETURN(const int64_t number, ParseWhole(option, text));
                   PORTICO_RETURN_IF_ERROR(CheckRange(option, static_cast<double>(number), text));
                   value = static_cast<std::decay_t<decltype(value)>>(number);
                   return OkStatus();
                 }});
}

std::string OptionText(const Option& option, const ServeOptions& server,
                       const ModelOptions& model) {
  return VisitValue(
      option, &server, &model,
      Overloaded{[](const std::string& value) { return value; },
                 [](const bool& value) -> std::string { return value ? "true" : "false"; },
                 [](const std::optional<bool>& value) -> std::string {
                   return value.value_or(false) ? "true" : "false";
                 },
                 [&](const int64_t& value) {
                   return option.bytes ? BytesText(value) : fmt::format("{}", value);
                 },
                 [](const auto& value) { return fmt::format("{}", value); }});
}

Json OptionJson(const Option& option, const ServeOptions& server, const ModelOptions& model) {
  return VisitValue(
      option, &server, &model,
      Overloaded{[](const std::optional<bool>& value) { return Json(value.value_or(false)); },
                 [](const auto& value) { return Json(value); }});
}

Status CheckOptions(const ServeOptions& options) {
  if (options.ssl_keyfile.empty() != options.ssl_certfile.empty()) {
    return Bad(options.ssl_keyfile.empty() ? "--ssl-certfile needs --ssl-keyfile"
                                           : "--ssl-keyfile needs --ssl-certfile");
  }
  if (options.ssl_certfile.empty() && !options.ssl_ca_certs.empty()) {
    return Bad("--ssl-ca-certs needs --ssl-certfile");
  }
  if (options.disable_grpc && options.grpc_port != 0) {
    return Bad("--grpc-port and --disable-grpc exclude each other");
  }
  if (options.max_inflight_body_bytes < options.max_body_bytes) {
    return Bad("--max-inflight-body-bytes is less than --max-body-bytes");
  }
  if (!options.enable_metrics) {
    return Bad("--enable-metrics: metrics cannot be turned off");
  }
  const std::string& media = options.limit_mm_data_per_request;
  if (const auto limits = Json::Parse(media); !media.empty()) {
    if (!limits.ok() || !limits->is_object()) {
      return Bad("--limit-mm-data-per-request: is not a JSON object");
    }
    for (const auto& [kind, most] : limits->as_object()) {
      if (!FindMediaKind(kind, &MediaWords::name)) {
        return Bad(fmt::format(
            "--limit-mm-data-per-request: {:.64} is none of image, video and audio", kind));
      }
      if (most.is_int() && most.as_int() >= 0 && most.as_int() <= kMostMediaOfKind) continue;
      return Bad(fmt::format("--limit-mm-data-per-request: {} is not a whole number in 0..{}", kind,
                             kMostMediaOfKind));
    }
  }
  return CheckModels(options.models);
}

}  // namespace portico
