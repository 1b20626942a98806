#include "app/text/tokenize_component.h"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "app/command_tools.h"
#include "app/text/line_io.h"
#include "text/json.h"
#include "text/json_writer.h"
#include "text/utf8.h"
#include "tokenizer/decode/decoder.h"
#include "tokenizer/normalize/normalizer.h"
#include "tokenizer/split/pre_tokenizer.h"

namespace portico {
namespace {

using tokenizer::NormalizedString;

StatusOr<std::string> Normalized(const Json& request, const Json& component) {
  PORTICO_ASSIGN_OR_RETURN(auto normalizer, tokenizer::Normalizer::FromJson(component));
  NormalizedString text(request.GetString("text"));
  if (normalizer) PORTICO_RETURN_IF_ERROR(normalizer->Apply(&text));
  return text.text();
}

StatusOr<std::string> Decoded(const Json& request, const Json& component) {
  PORTICO_ASSIGN_OR_RETURN(auto decoder, tokenizer::Decoder::FromJson(component));
  const Json* list = request.Find("tokens");
  std::vector<std::string> tokens;
  if (list != nullptr && list->is_array()) {
    for (const Json& item : list->as_array()) {
      if (item.is_string()) tokens.push_back(item.as_string());
    }
  }
  if (decoder && !tokens.empty()) decoder->Apply(&tokens);
  std::string out;
  for (const std::string& token : tokens) out.append(token);
  return out;
}

Status WritePieces(const Json& request, const Json& component, JsonWriter* w) {
  PORTICO_ASSIGN_OR_RETURN(auto pre_tokenizer, tokenizer::PreTokenizer::FromJson(component));
  std::string text = request.GetString("text");
  tokenizer::Pieces pieces;
  pieces.push_back({NormalizedString(text), std::nullopt});
  if (pre_tokenizer) PORTICO_RETURN_IF_ERROR(pre_tokenizer->Apply(&pieces));
  auto chars_before = [&](uint32_t at) {
    return static_cast<int64_t>(CountCodePoints(std::string_view(text).substr(0, at)));
  };
  w->Key("pieces").BeginArray();
  for (const tokenizer::Piece& piece : pieces) {
    Span span = piece.text.original();
    w->BeginArray().String(piece.text.text());
    w->BeginArray().Int(chars_before(span.begin)).Int(chars_before(span.end)).EndArray().EndArray();
  }
  w->EndArray();
  return OkStatus();
}

Status AnswerRequest(const Json& request, JsonWriter* w) {
  if (const Json* component = request.Find("normalizer")) {
    PORTICO_ASSIGN_OR_RETURN(std::string text, Normalized(request, *component));
    w->Key("text").String(text);
  } else if (const Json* cutter = request.Find("pre_tokenizer")) {
    return WritePieces(request, *cutter, w);
  } else if (const Json* decoder = request.Find("decoder")) {
    PORTICO_ASSIGN_OR_RETURN(std::string text, Decoded(request, *decoder));
    w->Key("text").String(text);
  } else {
    return Error(StatusCode::kInvalidArgument,
                 "the request needs a normalizer, pre_tokenizer or decoder");
  }
  return OkStatus();
}

}  // namespace

int TokenizeComponents() {
  return AnswerEachLine("tokenize", stdin, stdout, [](InputLine line, std::string* out) {
    JsonWriter w(out);
    w.BeginObject();
    StatusOr<Json> request = Json::Parse(line.text);
    const bool is_object = request.ok() && request->is_object();
    const Json* id = request.ok() ? request->Find("id") : nullptr;
    w.Key("id").Raw(id ? id->Dump() : "null");
    if (!is_object) {
      w.Key("error").String(NoObject(line, request.status()));
    } else if (Status status = AnswerRequest(*request, &w); !status.ok()) {
      w.Key("error").String(MessageOf(status));
    }
    w.EndObject();
    return is_object;
  });
}

}  // namespace portico
