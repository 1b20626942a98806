// Strict reading of JSON bodies: nothing is converted, "7" is no number and 1.5 no integer. Errors
// are INVALID_ARGUMENT in plain words, name the field and show what came instead.
#pragma once

#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "message/native_generate.h"
#include "message/sampling.h"
#include "message/sampling_ranges.h"
#include "text/json_outline.h"

namespace portico::api {

using Element = simdjson::dom::element;
using portico::IntRange;
using portico::kMaxInt32;
using portico::NumberRange;

// Deeper bodies are refused. Everything that walks a request recursively relies on it. A schema whose objects are 64 deep has
// two levels for each.
inline constexpr size_t kMaxBodyDepth = 160;

// The members of a body by name; of doubled ones the last; null is the same as absent.
using FieldList = std::vector<std::pair<std::string_view, Element>>;

// Lends the parser to one body. What ParseBody gives lives as long as this. A parser keeps about
// ten bytes for each of its largest body; what a huge one took is given back here.
class BodyReader {
 public:
  explicit BodyReader(simdjson::dom::parser& parser) : parser_(parser) {}
  ~BodyReader();
  BodyReader(const BodyReader&) = delete;
  BodyReader& operator=(const BodyReader&) = delete;

  // Fails, naming no field, unless the body is one JSON object.
  StatusOr<FieldList> Read(const std::string& body);

 private:
  simdjson::dom::parser& parser_;
};

// How to read one field into a request under construction.
template <typename Target>
struct FieldReader {
  std::string_view name;  // what `read` is given
  Status (*read)(std::string_view name, Element value, Target* target);
  bool is_long = false;  // left out by ReadShortFields()
};

// The reader for `name` in a table sorted by name, or null.
template <typename Target, size_t kSize>
const FieldReader<Target>* FindReader(const FieldReader<Target> (&table)[kSize],
                                      std::string_view name) {
  // Nearly all differ in length or first byte, and to see that is cheaper than a search's comparisons.
  for (const FieldReader<Target>& reader : table) {
    if (reader.name.size() == name.size() && reader.name.front() == name.front() &&
        reader.name == name) {
      return &reader;
    }
  }
  return nullptr;
}

template <typename Table>
constexpr bool IsSortedByName(const Table& table) {
  return std::is_sorted(std::begin(table), std::end(table),
                        [](const auto& a, const auto& b) { return a.name < b.name; });
}

// Reads the members of a body into `target`: those of the table by their readers, each other one by
// `other(name, value)`, which gives a Status. The first failure ends it.
template <typename Target, size_t kSize, typename Other>
Status ReadBody(const std::string& body, simdjson::dom::parser& parser,
                const FieldReader<Target> (&table)[kSize], Target* target, Other other) {
  BodyReader reader(parser);
  PORTICO_ASSIGN_OR_RETURN(const FieldList fields, reader.Read(body));
  for (auto [name, value] : fields) {
    const auto* field = FindReader(table, name);
    PORTICO_RETURN_IF_ERROR(field ? field->read(field->name, value, target) : other(name, value));
  }
  return OkStatus();
}

// Reads the short members of a long body alone. What is left out; nothing where the body is no object, which ReadBody() then
// says.
template <typename Target, size_t kSize, typename Other>
StatusOr<std::optional<std::vector<LeftOutMember>>> ReadShortFields(
    const std::string& body, simdjson::dom::parser& parser,
    const FieldReader<Target> (&table)[kSize], Target* target, Other other) {
  auto outline = OutlineOf(body, [&table](std::string_view name) {
    const auto* field = FindReader(table, name);
    return field != nullptr && field->is_long;
  });
  if (!outline) return std::optional<std::vector<LeftOutMember>>();
  const Status read = ReadBody(outline->text, parser, table, target, other);
  if (!read.ok() && FieldOf(read).empty()) return std::optional<std::vector<LeftOutMember>>();
  PORTICO_RETURN_IF_ERROR(read);
  return std::optional(std::move(outline->left_out));
}

// `temperature must be a number of at least 0, got "7"`.
Status WrongValue(std::string_view name, std::string_view expected, Element got);
// The same for a place within the field: `stop[3] must be …`, naming `field`.
Status WrongValueAt(std::string_view field, std::string_view place, std::string_view expected,
                    Element got);
// A short text for a value in a message: scalars as JSON, cut off; "a list"; "an object".
std::string Describe(Element value);

Status ReadBool(std::string_view name, Element value, bool* out);
Status ReadString(std::string_view name, Element value, std::string* out);
Status ReadInt64(std::string_view name, Element value, IntRange range, int64_t* out);
Status ReadInt64(std::string_view name, Element value, IntRange range, std::optional<int64_t>* out);
Status ReadInt32(std::string_view name, Element value, IntRange range, int32_t* out);
Status ReadInt32(std::string_view name, Element value, IntRange range, std::optional<int32_t>* out);
// Positive numbers too small or too large for a float become its smallest or largest: they stay
// inside open ranges.
Status ReadNumber(std::string_view name, Element value, const NumberRange& range,
                  std::optional<float>* out);
// One token id, at least 0, of a list in `field`.
Status ReadTokenId(std::string_view field, std::string_view place, Element value, TokenId* out);
// A list of them that is not empty; `place` is where it stands in `field`.
Status ReadTokenIds(std::string_view field, const std::string& place, Element list,
                    std::vector<TokenId>* ids);
// Before any of a list or an object is read: it may have `most` members, `things`.
Status CheckMembers(std::string_view name, size_t members, size_t most, std::string_view things);
// A client's name for its request: at most kMaxRidBytes.
Status ReadRequestName(std::string_view name, Element value, std::string* out);

// For tables: reads a member of the target.
template <typename Target, auto kMember>
Status ReadFlag(std::string_view name, Element value, Target* target) {
  bool flag = false;
  PORTICO_RETURN_IF_ERROR(ReadBool(name, value, &flag));
  target->*kMember = flag;
  return OkStatus();
}
template <typename Target, auto kMember>
Status ReadText(std::string_view name, Element value, Target* target) {
  return ReadString(name, value, &(target->*kMember));
}
template <typename Target, auto kMember>
Status ReadName(std::string_view name, Element value, Target* target) {
  return ReadRequestName(name, value, &(target->*kMember));
}

// One value, or a list of values, each with `read(place, value, &out)`.
template <typename T, typename Read>
Status ReadOneOrEach(std::string_view name, Element value, OneOrEach<T>* out, Read read) {
  simdjson::dom::array list;
  if (value.get(list)) {
    T one{};
    PORTICO_RETURN_IF_ERROR(read(name, value, &one));
    out->values.push_back(std::move(one));
    return OkStatus();
  }
  out->is_list = true;
  for (Element item : list) {
    T one{};
    PORTICO_RETURN_IF_ERROR(read(name, item, &one));
    out->values.push_back(std::move(one));
  }
  return OkStatus();
}
Status ExpectObject(std::string_view name, Element value);
Status ExpectList(std::string_view name, Element value);

// Appends a name for the debug log, cut off; a few at most.
void NoteUnknown(std::string_view name, std::vector<std::string>* unknown_fields);

}  // namespace portico::api
