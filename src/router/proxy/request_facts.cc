#include "router/proxy/request_facts.h"

#include <utility>

#include "text/utf8.h"
#include "text/white_space.h"

namespace portico::router {
namespace {

namespace ondemand = simdjson::ondemand;

void AppendText(std::string_view text, RequestFacts* facts) {
  if (facts->text.size() >= RequestFacts::kMaxText) return;
  facts->text.append(text.substr(0, RequestFacts::kMaxText - facts->text.size()));
}

void AppendToken(ondemand::value value, RequestFacts* facts) {
  int64_t token = -1;
  if (value.get_int64().get(token) != simdjson::SUCCESS || token < 0 || token > INT32_MAX) {
    token = -1;  // the worker will say what is wrong
  }
  ++facts->token_count;
  if (facts->tokens.size() < RequestFacts::kMaxTokens) {
    facts->tokens.push_back(static_cast<int32_t>(token));
  }
}

// The text of a string, empty if an escape in it means nothing (half of a surrogate pair): its
// worker may take it. False: it is no string.
bool ReadText(ondemand::value value, std::string_view* text) {
  const auto error = value.get_string().get(*text);
  if (error == simdjson::STRING_ERROR) *text = {};
  return error == simdjson::SUCCESS || error == simdjson::STRING_ERROR;
}

// Likewise of a field. False: the JSON is broken.
bool TakeField(simdjson::simdjson_result<ondemand::field> field, std::string_view* key,
               ondemand::value* value) {
  ondemand::field read;
  if (std::move(field).get(read) != simdjson::SUCCESS) return false;
  if (read.unescaped_key().get(*key) != simdjson::SUCCESS) *key = {};
  *value = read.value();
  return true;
}

// Numbers are the tokens of one prompt if they stand in one list.
constexpr int kNoTokens = -2;
constexpr int kTokensOf = 0;
// Lists in lists; no API's prompt has as many. simdjson skips what is deeper without recursion.
constexpr int kMaxPromptLists = 16;

bool AppendItem(ondemand::value value, RequestFacts* facts);

// A string, or an array of strings, of numbers (their digits), or of items. False if the JSON is
// broken.
bool AppendPrompt(ondemand::value value, RequestFacts* facts, int depth,
                  int lists = kMaxPromptLists) {
  ondemand::json_type type;
  if (value.type().get(type) != simdjson::SUCCESS) return false;
  if (type == ondemand::json_type::string) {
    std::string_view text;
    if (!ReadText(value, &text)) return false;
    AppendText(text, facts);
    facts->only_tokens = false;
    return true;
  }
  if (type == ondemand::json_type::number) {
    AppendText(value.raw_json_token(), facts);
    AppendText(",", facts);
    depth == kTokensOf + 1 ? AppendToken(value, facts) : void(facts->only_tokens = false);
    return true;
  }
  if (type == ondemand::json_type::object) return AppendItem(value, facts);
  if (type != ondemand::json_type::array || lists == 0) return true;
  ondemand::array array;
  if (value.get_array().get(array) != simdjson::SUCCESS) return false;
  const int below = depth == kNoTokens ? kNoTokens : depth + 1;
  for (auto element : array) {
    ondemand::value item;
    if (std::move(element).get(item) != simdjson::SUCCESS ||
        !AppendPrompt(item, facts, below, lists - 1)) {
      return false;
    }
  }
  return true;
}

// A message's content: text, or parts of which those of text count.
bool AppendContent(ondemand::value value, RequestFacts* facts) {
  ondemand::json_type type;
  if (value.type().get(type) != simdjson::SUCCESS) return false;
  if (type != ondemand::json_type::array) {
    return type != ondemand::json_type::string || AppendPrompt(value, facts, kNoTokens);
  }
  ondemand::array parts;
  if (value.get_array().get(parts) != simdjson::SUCCESS) return false;
  for (auto part : parts) {
    ondemand::object object;
    if (part.get_object().get(object) != simdjson::SUCCESS) continue;
    std::string_view text;
    if (object["text"].get_string().get(text) == simdjson::SUCCESS) AppendText(text, facts);
  }
  return true;
}

// Of the Responses API: a message, a call's arguments or its output.
bool AppendItem(ondemand::value value, RequestFacts* facts) {
  facts->only_tokens = false;
  ondemand::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) return false;
  for (auto field : object) {
    std::string_view key;
    ondemand::value member;
    if (!TakeField(std::move(field), &key, &member)) return false;
    const bool is_text = key == "content" || key == "text" || key == "arguments" || key == "output";
    if (is_text && !AppendContent(member, facts)) return false;
  }
  return true;
}

bool AppendMessages(ondemand::value value, RequestFacts* facts) {
  ondemand::array messages;
  if (value.get_array().get(messages) != simdjson::SUCCESS) return true;
  for (auto message : messages) {
    ondemand::object object;
    if (message.get_object().get(object) != simdjson::SUCCESS) return false;
    ondemand::value content;
    if (object["content"].get(content) != simdjson::SUCCESS) continue;
    if (!AppendContent(content, facts)) return false;
  }
  return true;
}

// False if the JSON is broken.
bool ReadField(std::string_view key, ondemand::value value, bool wants_text, const char* body,
               RequestFacts* facts) {
  if (key == "model" || key == "user" || key == "session_id" || key == "routing_key") {
    std::string_view text;
    const std::string_view raw = key == "model" ? value.raw_json_token() : std::string_view();
    const auto error = value.get_string().get(text);
    if (error == simdjson::INCORRECT_TYPE || error == simdjson::STRING_ERROR) return true;
    if (error != simdjson::SUCCESS) return false;
    (key == "model" ? facts->model : facts->session) = text;
    if (key != "model") return true;
    facts->model_at = static_cast<size_t>(raw.data() - body);
    facts->model_size = raw.find_last_of('"') + 1;
    return true;
  }
  if (key == "session_params") {
    ondemand::object params;
    ondemand::value named;
    if (value.get_object().get(params) != simdjson::SUCCESS ||
        params["id"].get(named) != simdjson::SUCCESS) {
      return true;
    }
    std::string_view id;
    const std::string_view raw = named.raw_json_token();
    if (named.get_string().get(id) != simdjson::SUCCESS) return true;
    facts->opened = id;
    facts->opened_end = static_cast<size_t>(raw.data() - body) + raw.find_last_of('"') + 1;
    return true;
  }
  if (key == "stream") {
    bool stream = false;
    if (value.get_bool().get(stream) == simdjson::SUCCESS) facts->stream = stream;
    return true;
  }
  if (!wants_text) return true;
  if (key == "messages") {
    facts->only_tokens = false;
    return AppendMessages(value, facts);
  }
  if (key == "system" || key == "instructions") {
    // In front of the messages, wherever the body has it.
    facts->only_tokens = false;
    const std::string behind = std::exchange(facts->text, {});
    const bool read = AppendContent(value, facts);
    AppendText(behind, facts);
    return read;
  }
  if (key == "prompt" || key == "input_ids") return AppendPrompt(value, facts, kTokensOf);
  if (key == "text" || key == "input" || key == "query") {
    return AppendPrompt(value, facts, kNoTokens);
  }
  return true;
}

void ReadBody(ondemand::parser& parser, const std::string& body, bool wants_text,
              RequestFacts* facts) {
  ondemand::document document;
  ondemand::object object;
  if (parser.iterate(body.data(), body.size(), body.capacity()).get(document) !=
          simdjson::SUCCESS ||
      document.get_object().get(object) != simdjson::SUCCESS) {
    return;
  }
  for (auto field : object) {
    std::string_view key;
    ondemand::value value;
    if (!TakeField(std::move(field), &key, &value) ||
        !ReadField(key, value, wants_text, body.data(), facts)) {
      return;
    }
  }
}

// The bytes of a cut body that can be read: no part of a character and no part of an escape at the end.
// *in_string: they end within a string.
size_t ReadableBytes(std::string_view body, bool* in_string) {
  // Two escapes may be one character.
  constexpr size_t kLongestEscapes = 12;
  size_t end = body.size();
  while (end > 0 && body.size() - end < 3 && IsTailByte(body[end - 1])) --end;
  if (end > 0 && static_cast<unsigned char>(body[end - 1]) >= 0xC0) --end;
  constexpr size_t kNoEscape = std::string_view::npos;
  size_t escape = kNoEscape, escape_before = kNoEscape;
  bool inside = false;
  for (size_t i = 0; i < end; ++i) {
    if (body[i] == '"') {
      inside = !inside;
    } else if (inside && body[i] == '\\') {
      escape_before = std::exchange(escape, i++);
    }
  }
  *in_string = inside;
  for (const size_t last : {escape_before, escape}) {
    if (inside && last != kNoEscape && end - last <= kLongestEscapes) return last;
  }
  return end;
}

// The beginning of an object, closed so that simdjson reads it as far as it goes.
std::string CloseCut(std::string_view body, size_t readable, bool in_string) {
  std::string closed;
  closed.reserve(readable + 2 + simdjson::SIMDJSON_PADDING);
  closed.append(body.substr(0, readable));
  closed.append(in_string ? "\"}" : "}");
  return closed;
}

void ReadCutBody(ondemand::parser& parser, const std::string& body, bool wants_text,
                 RequestFacts* facts) {
  // The parser's memory grows with what it is given.
  constexpr size_t kMaxRead = RequestFacts::kMaxText + RequestFacts::kMaxText / 2;
  const size_t first = body.find_first_not_of(kWhiteSpace);
  if (first == std::string::npos || body[first] != '{') return;
  bool in_string = false;
  const std::string_view read = std::string_view(body).substr(0, kMaxRead);
  const size_t readable = ReadableBytes(read, &in_string);
  const std::string closed = CloseCut(body, readable, in_string);
  ReadBody(parser, closed, wants_text, facts);
  if (facts->opened_end > readable) facts->opened.clear();
  if (facts->model_at + facts->model_size <= readable) return;
  facts->model.clear();
  facts->model_at = facts->model_size = 0;
}

}  // namespace

RequestFacts ReadRequestFacts(ondemand::parser& parser, const std::string& body, bool wants_text,
                              bool cut) {
  RequestFacts facts;
  if (body.empty() || body.capacity() < body.size() + simdjson::SIMDJSON_PADDING) return facts;
  cut ? ReadCutBody(parser, body, wants_text, &facts) : ReadBody(parser, body, wants_text, &facts);
  if (facts.only_tokens) return facts;
  facts.tokens.clear();
  facts.token_count = 0;
  return facts;
}

}  // namespace portico::router
