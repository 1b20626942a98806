#include "service/constraint/carried_constraint.h"

#include <gtest/gtest.h>

#include <string>

namespace portico {
namespace {

Constraint Of(ConstraintKind kind, std::string text) {
  Constraint constraint;
  constraint.kind = kind;
  constraint.text = std::move(text);
  constraint.field = "f";
  return constraint;
}

Constraint Strict(std::string text) {
  Constraint constraint = Of(ConstraintKind::kJsonSchema, std::move(text));
  constraint.closed = true;
  return constraint;
}

void ExpectRefused(const Constraint& constraint, std::string_view why) {
  const Status status = CheckCarried(constraint);
  EXPECT_EQ(FieldOf(status), "f") << constraint.text.substr(0, 80);
  EXPECT_NE(MessageOf(status).find(why), std::string::npos) << status;
}

std::string Repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(CheckCarried, ATextGoesAsItIs) {
  EXPECT_TRUE(CheckCarried(Of(ConstraintKind::kJsonSchema, R"({"type":"object"})")).ok());
  EXPECT_TRUE(CheckCarried(Of(ConstraintKind::kJsonSchema, "true")).ok());
  EXPECT_TRUE(CheckCarried(Of(ConstraintKind::kJsonObject, "")).ok());
  EXPECT_TRUE(CheckCarried(Of(ConstraintKind::kRegex, "(a|[b(])+\\(")).ok());
  EXPECT_TRUE(CheckCarried(Of(ConstraintKind::kEbnf, "root ::= \"a\"")).ok());
  EXPECT_TRUE(CheckCarried(Of(ConstraintKind::kChoice, R"(["a"])")).ok());
}

TEST(CheckCarried, WhatAnEngineWouldChokeOnIsRefusedBeforeIt) {
  ExpectRefused(Of(ConstraintKind::kJsonSchema, "{"), "JSON");
  ExpectRefused(Of(ConstraintKind::kJsonSchema, "[]"), "object");
  ExpectRefused(Of(ConstraintKind::kStructuralTag, "true"), "object");
  ExpectRefused(Of(ConstraintKind::kRegex, "\xff"), "UTF-8");
  ExpectRefused(Of(ConstraintKind::kRegex, std::string(300 << 10, 'a')), "longer");
  ExpectRefused(Of(ConstraintKind::kRegex, Repeated("(", 300) + "a" + Repeated(")", 300)), "deep");
  ExpectRefused(
      Of(ConstraintKind::kJsonSchema, Repeated(R"({"items":)", 100) + "true" + Repeated("}", 100)),
      "JSON");
}

TEST(CheckCarried, AStrictSchemaHasToSayItselfThatItsObjectsAreClosed) {
  EXPECT_TRUE(CheckCarried(Strict(R"({"type":"integer"})")).ok());
  EXPECT_TRUE(
      CheckCarried(
          Strict(R"({"properties":{"properties":{"type":"string"}},"additionalProperties":false,
                             "default":{"properties":1}})"))
          .ok());
  ExpectRefused(Strict(R"({"properties":{"a":true}})"), "additionalProperties");
  ExpectRefused(Strict(R"({"properties":{"a":{"properties":{}}},"additionalProperties":false})"),
                "additionalProperties");
  ExpectRefused(Strict(R"({"anyOf":[{"properties":{"a":true}}]})"), "additionalProperties");
}

TEST(CheckCarried, WhiteSpaceCannotBeForbiddenInText) {
  Constraint constraint = Of(ConstraintKind::kJsonSchema, "{}");
  constraint.compact = true;
  ExpectRefused(constraint, "white space");
}

}  // namespace
}  // namespace portico
