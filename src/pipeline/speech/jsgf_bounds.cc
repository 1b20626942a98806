#include "pipeline/speech/jsgf_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace portico::pipeline {
namespace {

constexpr size_t kMaxRuleDepth = 256;

Status BadJsgf(std::string_view message) {
  return InvalidArgument("stage_params", fmt::format("the grammar {}", message));
}

// A word, a reference "<x>", a weight "/0.5/" or one of "=;|()[]*+"; empty at the end.
class JsgfReader {
 public:
  explicit JsgfReader(std::string_view text) : text_(text) {}

  std::string_view Next() {
    while (!text_.empty()) {
      const char first = text_.front();
      if (kSigns.find(first) != std::string_view::npos) return Take(1);
      if (text_.starts_with("//")) {
        DropThrough("\n");
      } else if (text_.starts_with("/*")) {
        DropThrough("*/");
      } else if (first == '{') {
        DropThrough("}");
      } else if (first == '/') {
        if (const size_t end = text_.find_first_not_of("0123456789.", 1);
            end != std::string_view::npos && end > 1 && text_[end] == '/') {
          return Take(end + 1);
        }
        text_.remove_prefix(1);
      } else if (first == '<') {
        const size_t end = text_.find_first_of("<>", 1);
        const bool closed = end != std::string_view::npos && text_[end] == '>' && end > 1;
        if (closed) return Take(end + 1);
        text_.remove_prefix(1);
      } else if (kDropped.find(first) != std::string_view::npos) {
        text_.remove_prefix(1);
      } else {
        return Take(std::min(text_.find_first_of(kEnds), text_.size()));
      }
    }
    return {};
  }

 private:
  static constexpr std::string_view kSigns = "=;|()[]*+";
  static constexpr std::string_view kDropped = "\"\\>} \t\r\n\f\v";
  static constexpr std::string_view kEnds = "=;|()[]*+<{/\"\\>} \t\r\n\f\v";

  std::string_view Take(size_t length) {
    const std::string_view token = text_.substr(0, length);
    text_.remove_prefix(length);
    return token;
  }
  void DropThrough(std::string_view end) {
    const size_t at = text_.find(end, std::min<size_t>(2, text_.size()) - (end == "}" ? 1 : 0));
    text_.remove_prefix(at == std::string_view::npos ? text_.size() : at + end.size());
  }

  std::string_view text_;
};

struct JsgfRule {
  std::vector<std::string_view> body;
  enum { kNew, kOpen, kDone } state = kNew;
  size_t items = 0;
  size_t skips = 0;
  size_t depth = 0;  // of the rules within it
};

class JsgfRules {
 public:
  Status Read(const std::vector<std::string_view>& tokens) {
    auto begin = tokens.begin();
    while (begin != tokens.end()) {
      const auto end = std::find(begin, tokens.end(), ";");
      PORTICO_RETURN_IF_ERROR(Add({begin, end}));
      begin = end == tokens.end() ? end : end + 1;
    }
    return rules_.empty() ? BadJsgf("has no rule") : OkStatus();
  }

  Status Measure() {
    for (const std::string_view name : names_) {
      PORTICO_RETURN_IF_ERROR(Measure(name, &rules_.at(name), 0));
    }
    return OkStatus();
  }

 private:
  // "<grammar.rule>" and "<rule>" are the same.
  static std::string_view ShortName(std::string_view reference) {
    const std::string_view name = reference.substr(1, reference.size() - 2);
    const size_t dot = name.rfind('.');
    return dot == std::string_view::npos ? name : name.substr(dot + 1);
  }

  static Status TooDeep() { return BadJsgf("has too many rules within rules"); }

  Status Add(const std::vector<std::string_view>& statement) {
    if (std::find(statement.begin(), statement.end(), "import") != statement.end()) {
      return BadJsgf("must not import others");
    }
    const auto equals = std::find(statement.begin(), statement.end(), "=");
    if (equals == statement.end()) return OkStatus();  // its heading
    if (equals == statement.begin() || !(equals - 1)->starts_with('<')) {
      return BadJsgf("has an `=` without a rule's name before it");
    }
    JsgfRule rule;
    rule.body.assign(equals + 1, statement.end());
    const std::string_view name = ShortName(*(equals - 1));
    if (!rules_.emplace(name, std::move(rule)).second) {
      return BadJsgf(fmt::format("defines the rule <{}> twice", name));
    }
    names_.push_back(name);
    return OkStatus();
  }

  Status Measure(std::string_view name, JsgfRule* rule, size_t depth) {
    if (rule->state == JsgfRule::kDone) return OkStatus();
    if (depth > kMaxRuleDepth) return TooDeep();
    rule->state = JsgfRule::kOpen;
    for (size_t i = 0; i < rule->body.size(); ++i) {
      const std::string_view token = rule->body[i];
      ++rule->items;
      if (token == "[" || token == "*" || token == "<NULL>") ++rule->skips;
      if (token.starts_with('<') && token != "<NULL>" && token != "<VOID>") {
        PORTICO_RETURN_IF_ERROR(AddReference(ShortName(token), IsLast(rule->body, i), rule, depth));
      }
      if (rule->items > kMaxJsgfItems) {
        return BadJsgf(
            fmt::format("is too large: <{}> has more than {} words and groups when its rules are "
                        "written out",
                        name, kMaxJsgfItems));
      }
      if (rule->skips > kMaxJsgfSkips) {
        return BadJsgf(fmt::format("is too costly: <{}> has more than {} optional parts", name,
                                   kMaxJsgfSkips));
      }
    }
    rule->state = JsgfRule::kDone;
    return OkStatus();
  }

  Status AddReference(std::string_view name, bool last, JsgfRule* rule, size_t depth) {
    const auto found = rules_.find(name);
    if (found == rules_.end()) return BadJsgf(fmt::format("has no rule <{}>", name));
    JsgfRule& inner = found->second;
    if (inner.state == JsgfRule::kOpen) {
      if (last) return OkStatus();  // goes back to that rule's beginning
      return BadJsgf(fmt::format("uses <{}> within itself; only at its end it may", name));
    }
    PORTICO_RETURN_IF_ERROR(Measure(name, &inner, depth + 1));
    rule->items += inner.items;
    rule->skips += inner.skips;
    rule->depth = std::max(rule->depth, inner.depth + 1);
    return rule->depth > kMaxRuleDepth ? TooDeep() : OkStatus();
  }

  static bool IsLast(const std::vector<std::string_view>& body, size_t at) {
    return at + 1 == body.size() || body[at + 1] == "|" || body[at + 1] == ")" ||
           body[at + 1] == "]";
  }

  std::unordered_map<std::string_view, JsgfRule> rules_;
  std::vector<std::string_view> names_;  // as they are defined
};

}  // namespace

StatusOr<std::string> BoundedJsgf(std::string_view grammar) {
  if (grammar.size() > kMaxJsgfBytes) {
    return BadJsgf(
        fmt::format("has {} bytes; at most {} are supported", grammar.size(), kMaxJsgfBytes));
  }
  std::vector<std::string_view> tokens;
  JsgfReader reader(grammar);
  for (std::string_view token = reader.Next(); !token.empty(); token = reader.Next()) {
    tokens.push_back(token);
  }
  JsgfRules rules;
  PORTICO_RETURN_IF_ERROR(rules.Read(tokens));
  PORTICO_RETURN_IF_ERROR(rules.Measure());
  return fmt::format("{}", fmt::join(tokens, " "));
}

}  // namespace portico::pipeline
