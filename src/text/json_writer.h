// Appends JSON to a string. No tree, no allocation but the string's own growth.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace portico {

// Appends `text` as a JSON string with its quotes. `text` should be UTF-8; bytes that are not are written as
// U+FFFD, so the output is always valid JSON.
void AppendJsonString(std::string_view text, std::string* out);
// The same without the quotes.
void AppendJsonEscaped(std::string_view text, std::string* out);
// Shortest text that reads back as the same double; NaN and infinities become null.
void AppendJsonDouble(double value, std::string* out);
void AppendJsonInt(int64_t value, std::string* out);
// The same for a float, whose shortest text is shorter.
void AppendJsonFloat(float value, std::string* out);
// Appends `[0.25,-1.5]`.
void AppendJsonFloats(std::span<const float> values, std::string* out);

// Writes objects and arrays with the commas in the right places.
//   JsonWriter w(&out);
//   w.BeginObject().Key("id").String("x").Key("n").Int(3).EndObject();
class JsonWriter {
 public:
  explicit JsonWriter(std::string* out) : out_(out) {}

  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view key);
  JsonWriter& String(std::string_view value);
  JsonWriter& Int(int64_t value);
  JsonWriter& Double(double value);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  // `json` is one whole JSON value already.
  JsonWriter& Raw(std::string_view json);

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void BeforeValue();

  std::string* out_;
  bool comma_ = false;  // the next value or key needs a comma before it
};

}  // namespace portico
