// Templates rendered in one call, for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "template/template.h"

namespace portico {

inline Json Parsed(std::string_view text) {
  auto json = Json::Parse(text);
  EXPECT_TRUE(json.ok()) << text;
  return json.ok() ? *json : Json();
}

// `context` is a JSON object.
inline StatusOr<std::string> TryRender(std::string source, std::string_view context = "{}",
                                       const RenderOptions& options = {}) {
  auto parsed = Template::Parse(std::move(source));
  if (!parsed.ok()) return parsed.status();
  return (*parsed)->Render(Parsed(context), options);
}

// The text, or "error: " and why there is none.
inline std::string Render(std::string source, std::string_view context = "{}") {
  auto text = TryRender(std::move(source), context);
  return text.ok() ? *text : "error: " + std::string(MessageOf(text.status()));
}

// What an expression prints.
inline std::string Printed(const std::string& expression) {
  return Render("{{ " + expression + " }}");
}

}  // namespace portico
