#include "api/common/field_reader.h"

#include <fmt/format.h>

#include <cfloat>
#include <cmath>

#include "text/json_fault.h"
#include "text/json_writer.h"
#include "text/utf8.h"

namespace portico::api {
namespace {

using simdjson::dom::element_type;

constexpr size_t kKeptParserBytes = 1 << 20;
constexpr size_t kShownBytes = 48;
constexpr size_t kMaxUnknown = 16;

// At most `bytes` of valid UTF-8, without half a character at the end.
std::string_view Cut(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && IsTailByte(text[bytes])) --bytes;
  return text.substr(0, bytes);
}

// Where the body stops being JSON, for the end of a message. Of large bodies it is not sought: this is a shard.
std::string AtFault(std::string_view body) {
  if (body.size() > kKeptParserBytes) return "";
  const std::string place = TextPlace(body, JsonFaultOffset(body));
  return place.empty() ? "" : " at " + place;
}

Status BadBody(simdjson::error_code error, std::string_view body) {
  switch (error) {
    case simdjson::EMPTY:
      return InvalidArgument("", "the body is empty; a JSON object is expected");
    case simdjson::DEPTH_ERROR:
      return InvalidArgument(
          "", fmt::format("the body is nested too deeply (more than {} levels)", kMaxBodyDepth));
    case simdjson::UTF8_ERROR:
      return InvalidArgument("", "the body is not valid UTF-8");
    case simdjson::NUMBER_ERROR:
      return InvalidArgument(
          "", fmt::format("the body is not valid JSON: a number is malformed or too large{}",
                          AtFault(body)));
    case simdjson::STRING_ERROR:
    case simdjson::UNCLOSED_STRING:
    case simdjson::UNESCAPED_CHARS:
      return InvalidArgument(
          "", fmt::format("the body is not valid JSON: a string is malformed{}", AtFault(body)));
    case simdjson::MEMALLOC:
    case simdjson::CAPACITY:
      return Error(StatusCode::kUnavailable, "not enough memory to read the body");
    default:
      return InvalidArgument("", fmt::format("the body is not valid JSON{}", AtFault(body)));
  }
}

bool ToInt64(Element value, int64_t* out) {
  return value.type() == element_type::INT64 && value.get(*out) == simdjson::SUCCESS;
}

// What is far below the end of a range that no request reaches need not hear of that end.
std::string RangeText(IntRange range, Element got) {
  double number = 0;
  const bool beyond = got.is_number() && !got.get(number) && number > kMaxInt32;
  if (range.max == INT64_MAX && range.min > INT64_MIN && !beyond) {
    return fmt::format("an integer of at least {}", range.min);
  }
  return fmt::format("an integer from {} to {}", range.min, range.max);
}

float ToFloat(double value) {
  double size = std::abs(value);
  if (size == 0) return 0.0f;
  double fitting = std::clamp(size, static_cast<double>(FLT_MIN), static_cast<double>(FLT_MAX));
  return static_cast<float>(std::copysign(fitting, value));
}

}  // namespace

BodyReader::~BodyReader() {
  if (parser_.capacity() > kKeptParserBytes) parser_ = simdjson::dom::parser();
}

StatusOr<FieldList> BodyReader::Read(const std::string& body) {
  constexpr size_t kParserDepth = kMaxBodyDepth + 1;
  if (parser_.max_depth() != kParserDepth) {
    if (auto error = parser_.allocate(simdjson::dom::MINIMAL_DOCUMENT_CAPACITY, kParserDepth)) {
      return BadBody(error, body);
    }
  }
  Element root;
  if (auto error = parser_.parse(body).get(root)) return BadBody(error, body);
  simdjson::dom::object object;
  if (root.get(object)) {
    return InvalidArgument("",
                           fmt::format("the body must be a JSON object, got {}", Describe(root)));
  }
  FieldList fields;
  fields.reserve(object.size());
  for (auto [name, value] : object) fields.emplace_back(name, value);
  // simdjson lays names out in the order of the text, so of doubled ones the last comes last.
  std::sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) {
    int compared = a.first.compare(b.first);
    return compared != 0 ? compared < 0 : a.first.data() < b.first.data();
  });
  size_t kept = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    bool is_last = i + 1 == fields.size() || fields[i + 1].first != fields[i].first;
    if (is_last && !fields[i].second.is_null()) fields[kept++] = fields[i];
  }
  fields.resize(kept);
  return fields;
}

std::string Describe(Element value) {
  switch (value.type()) {
    case element_type::ARRAY:
      return "a list";
    case element_type::OBJECT:
      return "an object";
    case element_type::STRING: {
      std::string_view text(value);
      std::string_view shown = Cut(text, kShownBytes);
      std::string quoted;
      AppendJsonString(shown, &quoted);
      if (shown.size() < text.size()) quoted += "…";
      return quoted;
    }
    default:
      return simdjson::minify(value);
  }
}

Status WrongValue(std::string_view name, std::string_view expected, Element got) {
  return WrongValueAt(name, name, expected, got);
}

Status WrongValueAt(std::string_view field, std::string_view place, std::string_view expected,
                    Element got) {
  return InvalidArgument(field,
                         fmt::format("{} must be {}, got {}", place, expected, Describe(got)));
}

Status ReadBool(std::string_view name, Element value, bool* out) {
  if (value.get(*out)) return WrongValue(name, "true or false", value);
  return OkStatus();
}

Status ReadString(std::string_view name, Element value, std::string* out) {
  std::string_view text;
  if (value.get(text)) return WrongValue(name, "a string", value);
  *out = text;
  return OkStatus();
}

Status ReadInt64(std::string_view name, Element value, IntRange range, int64_t* out) {
  int64_t number = 0;
  if (!ToInt64(value, &number) || number < range.min || number > range.max) {
    return WrongValue(name, RangeText(range, value), value);
  }
  *out = number;
  return OkStatus();
}

Status ReadInt64(std::string_view name, Element value, IntRange range,
                 std::optional<int64_t>* out) {
  int64_t number = 0;
  PORTICO_RETURN_IF_ERROR(ReadInt64(name, value, range, &number));
  *out = number;
  return OkStatus();
}

Status ReadInt32(std::string_view name, Element value, IntRange range, int32_t* out) {
  int64_t number = 0;
  PORTICO_RETURN_IF_ERROR(ReadInt64(name, value, range, &number));
  *out = static_cast<int32_t>(number);
  return OkStatus();
}

Status ReadInt32(std::string_view name, Element value, IntRange range,
                 std::optional<int32_t>* out) {
  int32_t number = 0;
  PORTICO_RETURN_IF_ERROR(ReadInt32(name, value, range, &number));
  *out = number;
  return OkStatus();
}

Status ReadNumber(std::string_view name, Element value, const NumberRange& range,
                  std::optional<float>* out) {
  double number = 0;
  bool fits = value.is_number() && !value.get(number) && range.Holds(number);
  if (!fits) return WrongValue(name, range.text, value);
  *out = ToFloat(number);
  return OkStatus();
}

Status ReadTokenId(std::string_view field, std::string_view place, Element value, TokenId* out) {
  int64_t id = 0;
  if (!ToInt64(value, &id) || id < 0 || id > kMaxInt32) {
    return WrongValueAt(field, place, kTokenIdText, value);
  }
  *out = static_cast<TokenId>(id);
  return OkStatus();
}

Status CheckMembers(std::string_view name, size_t members, size_t most, std::string_view things) {
  if (members <= most) return OkStatus();
  return InvalidArgument(
      name, fmt::format("{} must hold at most {} {}, got {}", name, most, things, members));
}

Status ReadTokenIds(std::string_view field, const std::string& place, Element list,
                    std::vector<TokenId>* ids) {
  const simdjson::dom::array items(list);
  if (items.size() == 0) return InvalidArgument(field, place + " must not be an empty list");
  ids->reserve(items.size());
  for (Element item : items) {
    TokenId id = 0;
    int64_t number = 0;
    if (item.is_int64() && !item.get(number) && number >= 0 && number <= kMaxInt32) {
      id = static_cast<TokenId>(number);
    } else {
      return ReadTokenId(field, fmt::format("{}[{}]", place, ids->size()), item, &id);
    }
    ids->push_back(id);
  }
  return OkStatus();
}

Status ReadRequestName(std::string_view name, Element value, std::string* out) {
  PORTICO_RETURN_IF_ERROR(ReadString(name, value, out));
  if (out->size() <= kMaxRidBytes) return OkStatus();
  return InvalidArgument(name, fmt::format("{} must be at most {} bytes long", name, kMaxRidBytes));
}

Status ExpectObject(std::string_view name, Element value) {
  return value.is_object() ? OkStatus() : WrongValue(name, "an object", value);
}

Status ExpectList(std::string_view name, Element value) {
  return value.is_array() ? OkStatus() : WrongValue(name, "a list", value);
}

void NoteUnknown(std::string_view name, std::vector<std::string>* unknown_fields) {
  if (!unknown_fields || unknown_fields->size() >= kMaxUnknown) return;
  unknown_fields->emplace_back(Cut(name, kShownBytes));
}

}  // namespace portico::api
