#include "grammar/tag/tag_space.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "text/json.h"

namespace portico::grammar {
namespace {

// Deeper than any tag that is compiled.
constexpr size_t kMaxTagDepth = 1024;

// Whether an expression may match white space: one without escapes, negations and characters below those of numbers cannot.
bool MayMatchSpace(std::string_view pattern) {
  return !std::all_of(pattern.begin(), pattern.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("[](){}|,+*?-_").find(c) != std::string_view::npos;
  });
}

class TagSpace {
 public:
  void Look(const Json& part) {
    if (part.is_array()) {
      for (const Json& one : part.as_array()) Look(one);
    }
    if (!part.is_object()) return;
    const std::string type = part.GetString("type");
    if (part.Find("grammar") != nullptr || MayMatchSpace(part.GetString("pattern"))) own_ = true;
    const bool is_text = type == "any_text" || type == "any_tokens" || type == "exclude_token" ||
                         type == "regex" || type.ends_with("dispatch") ||
                         type.ends_with("triggered_tags") || part.Find("triggers") != nullptr;
    const bool is_styled =
        type == "qwen_xml_parameter" || part.GetString("style", "json") != "json";
    if (is_text || is_styled) json_ = false;
    for (const auto& [key, value] : part.as_object()) {
      // Schemas have members of these names too.
      if (key != "json_schema" && key != "schema") Look(value);
    }
  }

  SpaceRule rule() const {
    if (own_) return SpaceRule::kFree;
    return json_ ? SpaceRule::kJson : SpaceRule::kNarrow;
  }

 private:
  bool own_ = false;  // white space that the client's own grammar takes
  bool json_ = true;  // all is JSON and fixed text
};

}  // namespace

SpaceRule SpaceRuleOfTag(std::string_view tag) {
  const StatusOr<Json> parsed = Json::Parse(tag, Json::Limits{.max_depth = kMaxTagDepth});
  if (!parsed.ok()) return SpaceRule::kFree;
  TagSpace space;
  space.Look(*parsed);
  return space.rule();
}

}  // namespace portico::grammar
