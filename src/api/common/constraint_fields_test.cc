#include "api/common/constraint_fields.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace portico::api {
namespace {

// Reads the members of an object as fields; true where all are constraints' and good.
Status Read(const std::string& json, GenerationOptions* options) {
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(json);
  const simdjson::dom::object object = parser.parse(padded);
  for (auto [key, value] : object) {
    Status status;
    EXPECT_TRUE(ReadConstraintField(key, value, options, &status)) << key;
    PORTICO_RETURN_IF_ERROR(status);
  }
  return OkStatus();
}

Constraint Of(const std::string& json) {
  GenerationOptions options;
  const Status status = Read(json, &options);
  EXPECT_TRUE(status.ok()) << status << json;
  if (options.constraint == nullptr) return {};
  return *options.constraint;
}

TEST(ConstraintFields, EachFieldSaysItsKindAndKeepsItsText) {
  struct Row {
    const char* json;
    ConstraintKind kind;
    const char* text;
  };
  for (const Row& row : {
           Row{R"({"json_schema":"{ }"})", ConstraintKind::kJsonSchema, "{ }"},
           Row{R"({"json_schema":{"a": [1, 2.50]}})", ConstraintKind::kJsonSchema,
               R"({"a":[1,2.5]})"},
           Row{R"({"guided_json":true})", ConstraintKind::kJsonSchema, "true"},
           Row{R"({"regex":""})", ConstraintKind::kRegex, ""},
           Row{R"({"guided_regex":"a"})", ConstraintKind::kRegex, "a"},
           Row{R"({"guided_grammar":"a"})", ConstraintKind::kEbnf, "a"},
           Row{R"({"structural_tag":{}})", ConstraintKind::kStructuralTag, "{}"},
           Row{R"({"guided_choice":["a"]})", ConstraintKind::kChoice, R"(["a"])"},
           Row{R"({"response_format":{"type":"json_object"}})", ConstraintKind::kJsonObject, ""},
           Row{R"({"structured_outputs":{"json":{},"regex":null}})", ConstraintKind::kJsonSchema,
               "{}"},
           Row{R"({"guided_decoding":{"regex":"a","backend":"xgrammar"}})", ConstraintKind::kRegex,
               "a"},
           Row{R"({"guided_json_object":true})", ConstraintKind::kJsonObject, ""},
           Row{R"({"response_format":{"type":"json_object","schema":{"type":"null"}}})",
               ConstraintKind::kJsonSchema, R"({"type":"null"})"},
           Row{R"({"response_format":{"type":"json_object","schema":{}}})",
               ConstraintKind::kJsonObject, ""},
           Row{R"({"response_format":{"type":"json_object","schema":null}})",
               ConstraintKind::kJsonObject, ""},
       }) {
    const Constraint constraint = Of(row.json);
    EXPECT_EQ(constraint.kind, row.kind) << row.json;
    EXPECT_EQ(constraint.text, row.text) << row.json;
    EXPECT_FALSE(constraint.closed || constraint.compact) << row.json;
  }
  EXPECT_EQ(Of(R"({"response_format":{"type":"text"}})").field, "");
}

TEST(ConstraintFields, StrictAndVllmsSwitchesAreKept) {
  EXPECT_TRUE(
      Of(R"({"response_format":{"type":"json_schema","json_schema":{"schema":{},"strict":true}}})")
          .closed);
  const Constraint constraint = Of(
      R"({"structured_outputs":{"disable_any_whitespace":true,"disable_additional_properties":true,
          "json":{}}})");
  EXPECT_TRUE(constraint.closed && constraint.compact);
}

TEST(ConstraintFields, OtherServersNamesAreNeverIgnored) {
  // guided_decoding, guided_json_object and the schema of a json_object were unknown fields: the answer had any form.
  GenerationOptions options;
  for (const char* const json :
       {R"({"guided_decoding":{}})", R"({"guided_decoding":{"backend":"a"}})",
        R"({"guided_decoding":{"regex":"a","whitespace_pattern":"b"}})",
        R"({"guided_json_object":"yes"})",
        R"({"response_format":{"type":"json_object","schema":7}})",
        R"({"structured_outputs":{"regex":"a","backend":"xgrammar"}})"}) {
    EXPECT_EQ(Read(json, &options).code(), StatusCode::kInvalidArgument) << json;
    options = {};
  }
  EXPECT_TRUE(Read(R"({"guided_json_object":false})", &options).ok());
  EXPECT_EQ(options.constraint, nullptr);
}

TEST(ConstraintFields, ASecondConstraintIsRefused) {
  for (const char* const json :
       {R"({"regex":"a","json_schema":"{}"})", R"({"structured_outputs":{"regex":"a","json":{}}})",
        R"({"response_format":{"type":"json_object"},"guided_choice":["a"]})"}) {
    GenerationOptions options;
    EXPECT_EQ(Read(json, &options).code(), StatusCode::kInvalidArgument) << json;
  }
}

}  // namespace
}  // namespace portico::api
