#include "api/refusal_log.h"

#include <algorithm>
#include <iterator>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"

namespace portico::api {
namespace {

constexpr size_t kMaxShown = 200;

// What is wrong with these is said in their own words: names in a schema, pieces of a pattern.
constexpr std::string_view kWrittenByClients[] = {"ebnf",
                                                  "guided_choice",
                                                  "guided_decoding",
                                                  "guided_grammar",
                                                  "guided_json",
                                                  "guided_regex",
                                                  "json_schema",
                                                  "regex",
                                                  "response_format",
                                                  "structural_tag",
                                                  "structured_outputs",
                                                  "tools"};

// The message up to the first value of the request, which is in quotes or behind "got".
std::string_view BeforeValues(std::string_view message) {
  for (const std::string_view mark : {", got ", "\"", "`", " '"}) {
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
  const bool ours = message.starts_with(field) &&
                    std::find(std::begin(kWrittenByClients), std::end(kWrittenByClients), field) ==
                        std::end(kWrittenByClients);
  std::string shown = ours ? std::string(BeforeValues(message)) : field;
  const bool cut =
      ours && shown.size() < message.size() && !message.substr(shown.size()).starts_with(", got ");
  if (cut) shown += " …";
  if (!code.empty()) shown.append("; code ").append(code);
  return shown;
}

void LogRefusal(const ApiContext& api, std::string_view what, std::string_view id,
                const Status& status) {
  const auto others = api.refusal_lines.Take(Clock::now());
  if (!others) return;
  LogInfo("{} {}: {}{}{}{}", HttpStatus(status.code()) < 500 ? "refused" : "failed", what,
          ShownReason(status), id.empty() ? "" : "; id ", id, AndOthers(*others));
}

}  // namespace portico::api
