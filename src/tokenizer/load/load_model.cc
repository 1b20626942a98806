#include "tokenizer/load/load_model.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/json.h"
#include "tokenizer/load/json_fields.h"
#include "tokenizer/load/model_tables.h"
#include "tokenizer/model/bpe.h"
#include "tokenizer/model/unigram.h"
#include "tokenizer/model/word_models.h"

namespace portico::tokenizer {
namespace {

namespace ondemand = simdjson::ondemand;
using simdjson::padded_string_view;

simdjson::simdjson_result<std::string_view> RawJson(ondemand::value value) {
  ondemand::json_type type;
  if (auto error = value.type().get(type)) return error;
  if (type == ondemand::json_type::array) {
    ondemand::array array;
    if (auto error = value.get_array().get(array)) return error;
    return array.raw_json();
  }
  if (type == ondemand::json_type::object) {
    ondemand::object object;
    if (auto error = value.get_object().get(object)) return error;
    return object.raw_json();
  }
  return value.raw_json_token();
}

using Fields = ModelFields;

StatusOr<Json> FieldValue(const Fields& fields, std::string_view name) {
  auto it = fields.find(name);
  if (it == fields.end()) return Json();
  return Json::Parse(it->second);
}

StatusOr<std::string> TextField(const Fields& fields, std::string_view name,
                                std::optional<std::string> fallback) {
  PORTICO_ASSIGN_OR_RETURN(Json value, FieldValue(fields, name));
  if (value.is_null() && fallback) return *fallback;
  if (!value.is_string()) {
    return Error(StatusCode::kInvalidArgument,
                 "the model needs '" + std::string(name) + "' to be a string");
  }
  return std::move(value.as_string());
}

StatusOr<bool> FlagField(const Fields& fields, std::string_view name) {
  PORTICO_ASSIGN_OR_RETURN(Json value, FieldValue(fields, name));
  if (value.is_null()) return false;
  if (!value.is_bool()) {
    return Error(StatusCode::kInvalidArgument,
                 "the model needs '" + std::string(name) + "' to be true or false");
  }
  return value.as_bool();
}

StatusOr<std::unique_ptr<const Model>> MakeBpe(const Fields& fields) {
  if (!fields.contains("vocab") || !fields.contains("merges")) {
    return Error(StatusCode::kInvalidArgument, "Missing vocab/merges");
  }
  PORTICO_ASSIGN_OR_RETURN(Json dropout, FieldValue(fields, "dropout"));
  if (!dropout.is_null() && !(dropout.is_number() && dropout.as_double() == 0)) {
    return Error(StatusCode::kUnimplemented,
                 "the model has a dropout: its tokens would be drawn at random");
  }
  BpeOptions options;
  PORTICO_ASSIGN_OR_RETURN(Json unk, FieldValue(fields, "unk_token"));
  if (!unk.is_null()) {
    PORTICO_ASSIGN_OR_RETURN(options.unk_token, TextField(fields, "unk_token", std::nullopt));
  }
  PORTICO_ASSIGN_OR_RETURN(options.continuing_subword_prefix,
                           TextField(fields, "continuing_subword_prefix", ""));
  PORTICO_ASSIGN_OR_RETURN(options.end_of_word_suffix, TextField(fields, "end_of_word_suffix", ""));
  PORTICO_ASSIGN_OR_RETURN(options.fuse_unk, FlagField(fields, "fuse_unk"));
  PORTICO_ASSIGN_OR_RETURN(options.byte_fallback, FlagField(fields, "byte_fallback"));
  PORTICO_ASSIGN_OR_RETURN(options.ignore_merges, FlagField(fields, "ignore_merges"));
  PORTICO_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabulary(fields.find("vocab")->second));
  PORTICO_ASSIGN_OR_RETURN(MergeTable merges, ReadMerges(fields.find("merges")->second, vocabulary,
                                                         options.continuing_subword_prefix.size()));
  return std::unique_ptr<const Model>(
      new Bpe(std::move(vocabulary), std::move(merges), std::move(options)));
}

StatusOr<std::unique_ptr<const Model>> MakeUnigram(const Fields& fields) {
  if (!fields.contains("vocab")) return Error(StatusCode::kInvalidArgument, "Missing vocab");
  PORTICO_ASSIGN_OR_RETURN(Json unk, FieldValue(fields, "unk_id"));
  std::optional<TokenId> unk_id;
  if (unk.is_int() && unk.as_int() >= 0 && unk.as_int() < INT32_MAX) {
    unk_id = static_cast<TokenId>(unk.as_int());
  } else if (!unk.is_null()) {
    return Error(StatusCode::kInvalidArgument, "the model needs 'unk_id' to be an id");
  }
  PORTICO_ASSIGN_OR_RETURN(bool byte_fallback, FlagField(fields, "byte_fallback"));
  Vocabulary vocabulary;
  PORTICO_ASSIGN_OR_RETURN(std::vector<double> scores,
                           ReadScores(fields.find("vocab")->second, &vocabulary));
  return Unigram::Make(std::move(vocabulary), std::move(scores), unk_id, byte_fallback);
}

StatusOr<std::unique_ptr<const Model>> MakeWordPiece(const Fields& fields) {
  for (std::string_view name :
       {"vocab", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word"}) {
    if (!fields.contains(name)) {
      return Error(StatusCode::kInvalidArgument, "missing field `" + std::string(name) + "`");
    }
  }
  WordPieceOptions options;
  PORTICO_ASSIGN_OR_RETURN(options.unk_token, TextField(fields, "unk_token", std::nullopt));
  PORTICO_ASSIGN_OR_RETURN(options.continuing_subword_prefix,
                           TextField(fields, "continuing_subword_prefix", std::nullopt));
  PORTICO_ASSIGN_OR_RETURN(Json longest, FieldValue(fields, "max_input_chars_per_word"));
  if (!longest.is_int() || longest.as_int() < 0) {
    return Error(StatusCode::kInvalidArgument, "max_input_chars_per_word must be a number");
  }
  options.max_input_chars_per_word = static_cast<uint64_t>(longest.as_int());
  PORTICO_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabulary(fields.find("vocab")->second));
  return std::unique_ptr<const Model>(new WordPiece(std::move(vocabulary), std::move(options)));
}

StatusOr<std::unique_ptr<const Model>> MakeWordLevel(const Fields& fields) {
  if (!fields.contains("vocab") || !fields.contains("unk_token")) {
    return Error(StatusCode::kInvalidArgument, "a WordLevel model needs vocab and unk_token");
  }
  PORTICO_ASSIGN_OR_RETURN(std::string unk, TextField(fields, "unk_token", std::nullopt));
  PORTICO_ASSIGN_OR_RETURN(Vocabulary vocabulary, ReadVocabulary(fields.find("vocab")->second));
  return std::unique_ptr<const Model>(new WordLevel(std::move(vocabulary), std::move(unk)));
}

Status VisitMembers(ondemand::object object, const FieldVisitor& visit, ModelFields* model) {
  for (auto field : object) {
    std::string_view key;
    if (auto error = field.unescaped_key().get(key)) return BadJson(error, "the file");
    // The key lies in a buffer that the value may reuse.
    const std::string name(key);
    ondemand::value value;
    if (auto error = field.value().get(value)) return BadJson(error, "the file");
    if (model != nullptr && name == "model") {
      ondemand::object members;
      if (auto error = value.get_object().get(members)) return BadJson(error, "the file");
      model->clear();  // of two, the later counts
      auto keep = [&](std::string_view member, std::string_view json) {
        (*model)[std::string(member)] = json;
        return OkStatus();
      };
      PORTICO_RETURN_IF_ERROR(VisitMembers(members, keep, nullptr));
      continue;
    }
    std::string_view raw;
    if (auto error = RawJson(value).get(raw)) return BadJson(error, "the file");
    PORTICO_RETURN_IF_ERROR(visit(name, raw));
  }
  return OkStatus();
}

}  // namespace

Status ForEachField(const padded_string_view& json, const FieldVisitor& visit, ModelFields* model) {
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object object;
  if (auto error = parser.iterate(json).get(document)) return BadJson(error, "the file");
  if (auto error = document.get_object().get(object)) return BadJson(error, "the file");
  PORTICO_RETURN_IF_ERROR(VisitMembers(object, visit, model));
  if (!AtEnd(document)) return BadJson(simdjson::TRAILING_CONTENT, "the file");
  return OkStatus();
}

StatusOr<std::unique_ptr<const Model>> ModelFromFields(const ModelFields& fields) {
  PORTICO_ASSIGN_OR_RETURN(std::string type, TextField(fields, "type", ""));
  if (!fields.contains("type")) {
    // Older files name no type: the first whose fields are all there.
    const auto vocab = fields.find("vocab");
    const bool list = vocab != fields.end() && vocab->second.starts_with('[');
    type = fields.contains("merges")                     ? "BPE"
           : fields.contains("max_input_chars_per_word") ? "WordPiece"
           : list                                        ? "Unigram"
                                                         : "WordLevel";
  }
  if (type == "BPE") return MakeBpe(fields);
  if (type == "Unigram") return MakeUnigram(fields);
  if (type == "WordPiece") return MakeWordPiece(fields);
  if (type == "WordLevel") return MakeWordLevel(fields);
  return Error(StatusCode::kInvalidArgument, "unknown model type '" + type + "'");
}

}  // namespace portico::tokenizer
