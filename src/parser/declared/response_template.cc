#include "parser/declared/response_template.h"

#include <algorithm>
#include <utility>

namespace portico::parser {
namespace {

Status Wrong(const std::string& where, const std::string& why) {
  return InvalidArgument("response_template", "response_template: " + where + ": " + why);
}

// Keys that nobody defined would change the meaning.
Status OnlyKeys(const Json& object, const std::string& where,
                std::initializer_list<std::string_view> keys) {
  if (!object.is_object()) return Wrong(where, "it must be an object");
  for (const auto& [key, value] : object.as_object()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      return Wrong(where, "`" + key + "` is not defined");
    }
  }
  return OkStatus();
}

// What is plain text in an expression: escapes of punctuation are taken off.
std::string PlainOf(std::string_view expression) {
  std::string out;
  for (size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] == '\\' && i + 1 < expression.size()) ++i;
    out.push_back(expression[i]);
  }
  return out;
}

// `key`, a text or a list of texts, or `key`_pattern, an expression.
StatusOr<std::optional<Pattern>> Delimiter(const Json& object, const std::string& where,
                                           const std::string& key,
                                           std::vector<std::string>* literals,
                                           std::vector<std::string>* markers) {
  const Json* plain = object.Find(key);
  const Json* pattern = object.Find(key + "_pattern");
  if (plain != nullptr && pattern != nullptr) {
    return Wrong(where, "both `" + key + "` and `" + key + "_pattern`");
  }
  if (pattern != nullptr) {
    if (!pattern->is_string()) return Wrong(where, "`" + key + "_pattern` must be a text");
    StatusOr<Pattern> made = Pattern::Make(pattern->as_string());
    if (!made.ok()) return Wrong(where, std::string(MessageOf(made.status())));
    markers->push_back(PlainOf(pattern->as_string()));
    return std::optional<Pattern>(*std::move(made));
  }
  if (plain == nullptr) return std::optional<Pattern>();
  if (plain->is_string()) {
    literals->push_back(plain->as_string());
  } else if (plain->is_array()) {
    for (const Json& one : plain->as_array()) {
      if (!one.is_string()) return Wrong(where, "`" + key + "` must hold texts");
      literals->push_back(one.as_string());
    }
  }
  if (literals->empty() || std::find(literals->begin(), literals->end(), "") != literals->end()) {
    return Wrong(where, "`" + key + "` must be a text or a list of texts, none of them empty");
  }
  markers->insert(markers->end(), literals->begin(), literals->end());
  StatusOr<Pattern> made = Pattern::OneOf(*literals);
  if (!made.ok()) return Wrong(where, "`" + key + "`: " + std::string(MessageOf(made.status())));
  return std::optional<Pattern>(*std::move(made));
}

// A placeholder of a transform: `{content}`, `{content.NAME}`, `{GROUP}`, and in each element of a list `{NAME}`.
StatusOr<CallPart> PartOf(const Json* placeholder, const Region& region, const std::string& where,
                          const std::string& what) {
  if (placeholder == nullptr || !placeholder->is_string()) {
    return Wrong(where, "transform.function." + what + " must be a placeholder");
  }
  std::string text = placeholder->as_string();
  if (text.size() < 3 || text.front() != '{' || text.back() != '}') {
    return Wrong(where, "transform.function." + what + " must be a placeholder");
  }
  text = text.substr(1, text.size() - 2);
  if (text == "content") return CallPart{CallPart::In::kWhole};
  constexpr std::string_view kContent = "content.";
  if (text.starts_with(kContent)) {
    text = text.substr(kContent.size());
    if (text.find('.') != std::string::npos) {
      return Wrong(where, "transform." + what + ": members of members cannot be told");
    }
    return CallPart{CallPart::In::kMember, text};
  }
  const std::vector<std::string>& groups = region.open->groups();
  if (std::find(groups.begin(), groups.end(), text) != groups.end()) {
    return CallPart{CallPart::In::kGroup, text};
  }
  if (region.each) return CallPart{CallPart::In::kMember, text};
  return Wrong(where, "transform: nothing is called {" + text + "}");
}

// `head(?P<value>.*?)tail`: the text up to the first tail is the value.
Status SplitTag(const std::string& expression, const std::string& where, Region* region) {
  constexpr std::string_view kValue = "(?P<value>";
  const size_t begin = expression.find(kValue);
  const std::string behind =
      begin == std::string::npos ? "" : expression.substr(begin + kValue.size());
  for (std::string_view body : {".*?)", ".+?)", "[\\s\\S]*?)", "[^<]*)", "[^<]*?)"}) {
    if (!behind.starts_with(body)) continue;
    StatusOr<Pattern> head = Pattern::Make(expression.substr(0, begin));
    StatusOr<Pattern> tail = Pattern::Make(behind.substr(body.size()));
    if (!head.ok()) return Wrong(where, std::string(MessageOf(head.status())));
    if (!tail.ok()) return Wrong(where, std::string(MessageOf(tail.status())));
    if (head->groups() != std::vector<std::string>{"key"}) {
      return Wrong(where, "content_args.tag_pattern: a group `key` must stand before `value`");
    }
    region->head = *std::move(head);
    region->tail = *std::move(tail);
    return OkStatus();
  }
  return Wrong(where, "content_args.tag_pattern: it must hold (?P<value>.*?)");
}

Status ReadValueParser(const Json* parser, const std::string& where, Region* region) {
  if (parser == nullptr) {
    region->strip = false;
    return OkStatus();
  }
  const std::string name = parser->GetString("name", "text");
  if (name != "text" && name != "json") {
    return Wrong(where, "content_args.value_parser: `" + name + "` is neither text nor json");
  }
  region->json_values = name == "json";
  const Json* args = parser->Find("args");
  region->strip = args == nullptr || args->GetBool("strip", true);
  return OkStatus();
}

Status ReadBody(const Json& field, const std::string& where, Region* region) {
  const std::string content = field.GetString("content", "text");
  const Json none{JsonObject{}};
  const Json* found = field.Find("content_args");
  const Json& args = found == nullptr ? none : *found;
  if (content == "json" || content == "text") {
    region->body = content == "json" ? Region::Body::kJson : Region::Body::kText;
    PORTICO_RETURN_IF_ERROR(
        OnlyKeys(args, where + ".content_args",
                 {"unquoted_keys", "string_delims", "allow_non_json", "strip"}));
    region->bare_keys = args.GetBool("unquoted_keys", false);
    const Json* quotes = args.Find("string_delims");
    if (quotes == nullptr) return OkStatus();
    if (!quotes->is_array()) return Wrong(where, "content_args.string_delims must be a list");
    for (const Json& pair : quotes->as_array()) {
      if (!pair.is_array() || pair.as_array().size() != 2 || !pair.as_array()[0].is_string() ||
          !pair.as_array()[1].is_string() || pair.as_array()[0].as_string().empty() ||
          pair.as_array()[1].as_string().empty()) {
        return Wrong(where, "content_args.string_delims must hold pairs of texts");
      }
      region->quotes.emplace_back(pair.as_array()[0].as_string(), pair.as_array()[1].as_string());
    }
    return OkStatus();
  }
  if (content == "xml-inline") {
    region->body = Region::Body::kTags;
    PORTICO_RETURN_IF_ERROR(
        OnlyKeys(args, where + ".content_args", {"tag_pattern", "value_parser"}));
    PORTICO_RETURN_IF_ERROR(SplitTag(args.GetString("tag_pattern"), where, region));
    return ReadValueParser(args.Find("value_parser"), where, region);
  }
  if (content == "kv-lines") {
    region->body = Region::Body::kLines;
    PORTICO_RETURN_IF_ERROR(
        OnlyKeys(args, where + ".content_args", {"line_sep", "kv_sep", "value_parser", "strip"}));
    region->line_end = args.GetString("line_sep", "\n");
    region->separator = args.GetString("kv_sep", ":");
    if (region->line_end.empty() || region->separator.empty()) {
      return Wrong(where, "content_args: a separator is empty");
    }
    return ReadValueParser(args.Find("value_parser"), where, region);
  }
  return Wrong(where, "calls cannot be `" + content + "`");
}

Status ReadCalls(const Json& field, const std::string& where, Region* region) {
  if (!region->open) return Wrong(where, "calls need `open` or `open_pattern`");
  PORTICO_RETURN_IF_ERROR(ReadBody(field, where, region));
  region->each = field.GetBool("transform_each", false);
  const Json* transform = field.Find("transform");
  if (transform == nullptr) {  // the text says all, as {"function": {"name", "arguments"}}
    region->name = {CallPart::In::kMember, "name"};
    region->arguments = {CallPart::In::kMember, "arguments"};
  } else {
    const Json* function = transform->Find("function");
    if (function == nullptr) return Wrong(where, "transform.function is missing");
    PORTICO_ASSIGN_OR_RETURN(region->name, PartOf(function->Find("name"), *region, where, "name"));
    PORTICO_ASSIGN_OR_RETURN(region->arguments,
                             PartOf(function->Find("arguments"), *region, where, "arguments"));
  }
  const bool json = region->body == Region::Body::kJson || region->body == Region::Body::kText;
  if (region->name.in == CallPart::In::kWhole ||
      (!json &&
       (region->name.in != CallPart::In::kGroup || region->arguments.in != CallPart::In::kWhole))) {
    return Wrong(where, "transform: the name must be a group of `open_pattern`");
  }
  return OkStatus();
}

Status ReadField(const std::string& name, const Json& field, ResponseTemplate* out) {
  const std::string where = "fields." + name;
  PORTICO_RETURN_IF_ERROR(
      OnlyKeys(field, where,
               {"open", "open_pattern", "close", "close_pattern", "content", "content_args",
                "repeats", "join", "optional", "transform", "transform_each"}));
  Region region;
  if (name == "thinking" || name == "reasoning_content" || name == "reasoning") {
    region.kind = Region::Kind::kReasoning;
  } else if (name == "tool_calls") {
    region.kind = Region::Kind::kCalls;
  } else if (name != "content") {
    return Wrong(where, "there are thinking, content and tool_calls");
  }
  PORTICO_ASSIGN_OR_RETURN(region.open,
                           Delimiter(field, where, "open", &region.opens, &out->markers));
  PORTICO_ASSIGN_OR_RETURN(region.close,
                           Delimiter(field, where, "close", &region.closes, &out->markers));
  if (region.kind == Region::Kind::kCalls) {
    PORTICO_RETURN_IF_ERROR(ReadCalls(field, where, &region));
  } else if (field.GetString("content", "text") != "text" || field.Find("transform") != nullptr) {
    return Wrong(where, "it must be text, as it is passed on while it arrives");
  }
  if (!region.open) {
    if (out->outside >= 0) return Wrong(where, "two fields have no `open`");
    out->outside = static_cast<int>(out->regions.size());
  }
  out->regions.push_back(std::move(region));
  return OkStatus();
}

}  // namespace

StatusOr<std::shared_ptr<const ResponseTemplate>> ResponseTemplate::Load(const Json& json) {
  PORTICO_RETURN_IF_ERROR(OnlyKeys(
      json, "it", {"version", "defaults", "fields", "start_anchor", "start_anchor_pattern"}));
  if (json.GetInt("version", 1) != 1) return Wrong("version", "it must be 1");
  auto out = std::make_shared<ResponseTemplate>();
  std::vector<std::string> literals;
  PORTICO_ASSIGN_OR_RETURN(std::optional<Pattern> anchor,
                           Delimiter(json, "it", "start_anchor", &literals, &out->markers));
  if (!anchor) return Wrong("start_anchor", "it is missing");
  out->anchor = *std::move(anchor);
  const Json* fields = json.Find("fields");
  if (fields == nullptr || !fields->is_object() || fields->as_object().empty()) {
    return Wrong("fields", "it must be an object with members");
  }
  for (const auto& [name, field] : fields->as_object()) {
    PORTICO_RETURN_IF_ERROR(ReadField(name, field, out.get()));
  }
  return std::shared_ptr<const ResponseTemplate>(std::move(out));
}

const Region* ResponseTemplate::Find(Region::Kind kind) const {
  auto found = std::find_if(regions.begin(), regions.end(),
                            [&](const Region& region) { return region.kind == kind; });
  return found == regions.end() ? nullptr : &*found;
}

}  // namespace portico::parser
