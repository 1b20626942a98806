#include "api/refusal_log.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"

namespace portico::api {
namespace {

constexpr size_t kMaxShown = 200;
constexpr size_t kMaxField = 64;
constexpr size_t kMaxId = 128;

// What is wrong with these is said in their own words: names in a schema, pieces of a pattern.
constexpr std::string_view kWrittenByClients[] = {"choice",          "ebnf",
                                                  "ebnf_grammar",    "guided_choice",
                                                  "guided_decoding", "guided_grammar",
                                                  "guided_json",     "guided_regex",
                                                  "json_schema",     "parallel_tool_calls",
                                                  "regex",           "response_format",
                                                  "structural_tag",  "structured_outputs",
                                                  "tool_choice",     "tools"};

// What is wrong with it is said in the client's words: "tools[0].function" is of "tools".
bool IsClients(std::string_view field) {
  field = field.substr(0, field.find_first_of(".["));
  return std::find(std::begin(kWrittenByClients), std::end(kWrittenByClients), field) !=
         std::end(kWrittenByClients);
}

// The message up to the first value of the request, which is in quotes or behind one of these.
std::string_view BeforeValues(std::string_view message) {
  for (const std::string_view mark :
       {", got ", "\"", "`", " '", ": ", " has no ", ", not ", " (content-"}) {
    message = message.substr(0, message.find(mark));
  }
  message = message.substr(0, kMaxShown);
  while (message.ends_with(' ')) message.remove_suffix(1);
  return message;
}

}  // namespace

std::string ShownReason(const Status& status) {
  const std::string field = FieldOf(status);
  const std::string code = ReasonOf(status);
  const std::string_view message = MessageOf(status);
  const bool ours = message.starts_with(field) && !IsClients(field);
  // Some fields have names that the client has made up.
  std::string shown = ours ? std::string(BeforeValues(message)) : field.substr(0, kMaxField);
  const bool cut =
      ours && shown.size() < message.size() && !message.substr(shown.size()).starts_with(", got ");
  if (cut) shown += " …";
  if (!code.empty()) shown.append("; code ").append(code);
  return shown;
}

void LogRefusal(const ApiContext& api, std::string_view what, std::string_view id,
                const Status& status) {
  // Whoever has no key, or asks for what is not there, hides nothing of others.
  static LogLimit strangers{10, std::chrono::seconds(1)};
  const bool stranger = status.code() == StatusCode::kUnauthenticated ||
                        (status.code() == StatusCode::kNotFound && FieldOf(status).empty());
  const auto others = (stranger ? strangers : api.refusal_lines).Take(Clock::now());
  if (!others) return;
  const auto is_plain = [](char c) { return c > ' ' && c <= '~'; };
  if (id.size() > kMaxId || !std::all_of(id.begin(), id.end(), is_plain)) id = {};
  LogInfo("{} {}: {}{}{}{}", HttpStatus(status.code()) < 500 ? "refused" : "failed", what,
          ShownReason(status), id.empty() ? "" : "; id ", id, AndOthers(*others));
}

}  // namespace portico::api
