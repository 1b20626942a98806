// A format of answers that a checkpoint declares: `response_template` of tokenizer_config.json, as transformers reads it
// (transformers/utils/chat_parsing, version 1).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "parser/declared/pattern.h"
#include "text/json.h"

namespace portico::parser {

// Where a part of a call stands: in the value of the region's text, or in a group of the pattern that opens it.
struct CallPart {
  enum class In { kWhole, kMember, kGroup };
  In in = In::kWhole;
  std::string name = {};  // of the member or group
};

// One of a message's fields: the text between two delimiters, and what it means.
struct Region {
  enum class Kind { kContent, kReasoning, kCalls };
  enum class Body { kText, kJson, kTags, kLines };

  Kind kind = Kind::kContent;
  std::optional<Pattern> open;          // none: text outside of other regions is this one
  std::optional<Pattern> close;         // none: it ends with the text
  std::vector<std::string> opens = {};  // where they are plain texts
  std::vector<std::string> closes = {};

  // Of calls:
  Body body = Body::kJson;
  CallPart name = {};
  CallPart arguments = {};
  bool each = false;  // the value is a list of calls
  // Body::kJson, beside JSON: other quotes, keys without quotes.
  std::vector<std::pair<std::string, std::string>> quotes = {};
  bool bare_keys = false;
  // Body::kTags: before a value, with the group `key`, and behind it. Body::kLines: the separators.
  std::optional<Pattern> head;
  std::optional<Pattern> tail;
  std::string line_end = "\n";
  std::string separator = ":";
  bool json_values = false;  // of kTags and kLines; else they are text
  bool strip = true;         // white space around them is no part of them
};

struct ResponseTemplate {
  // INVALID_ARGUMENT for what is no such template, or means what cannot be told while the text arrives.
  static StatusOr<std::shared_ptr<const ResponseTemplate>> Load(const Json& json);

  // The region of what stands outside of others, or -1.
  int outside = -1;
  std::vector<Region> regions;
  Pattern anchor;  // a message begins
  // Delimiters and what is plain text in their patterns.
  std::vector<std::string> markers;

  const Region* Find(Region::Kind kind) const;
};

}  // namespace portico::parser
