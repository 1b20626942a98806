#include "tokenizer/load_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "text/json.h"
#include "tokenizer/bpe.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/unigram.h"
#include "tokenizer/word_models.h"

namespace portico::tokenizer {
namespace {

namespace ondemand = simdjson::ondemand;
using simdjson::padded_string_view;

Status Bad(simdjson::error_code error, std::string_view what) {
  return Error(StatusCode::kInvalidArgument,
               std::string(what) + ": " + simdjson::error_message(error));
}

padded_string_view Padded(std::string_view json) {
  return padded_string_view(json.data(), json.size(), json.size() + simdjson::SIMDJSON_PADDING);
}

bool AtEnd(ondemand::document& document) {
  return document.current_location().error() == simdjson::OUT_OF_BOUNDS;
}

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

StatusOr<TokenId> CheckedId(uint64_t id) {
  if (id > INT32_MAX - 1) {
    return Error(StatusCode::kUnimplemented,
                 "the vocabulary has the id " + std::to_string(id) + ", which is too large");
  }
  return static_cast<TokenId>(id);
}

// {"token": id, …}
StatusOr<Vocabulary> ReadVocabulary(std::string_view json) {
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object object;
  if (auto error = parser.iterate(Padded(json)).get(document)) return Bad(error, "vocab");
  if (auto error = document.get_object().get(object)) return Bad(error, "vocab");
  Vocabulary vocabulary;
  for (auto field : object) {
    std::string_view token;
    uint64_t number = 0;
    if (auto error = field.unescaped_key().get(token)) return Bad(error, "vocab");
    if (auto error = field.value().get_uint64().get(number)) return Bad(error, "vocab");
    PORTICO_ASSIGN_OR_RETURN(TokenId id, CheckedId(number));
    vocabulary.Add(token, id);
  }
  if (!AtEnd(document)) return Bad(simdjson::TRAILING_CONTENT, "vocab");
  vocabulary.Seal();
  return vocabulary;
}

// One merge: the pair's two spellings.
class MergeReader {
 public:
  MergeReader(const Vocabulary& vocabulary, size_t prefix_length, MergeTable* table)
      : vocabulary_(vocabulary), prefix_length_(prefix_length), table_(table) {}

  Status Add(std::string_view left, std::string_view right) {
    std::optional<TokenId> a = vocabulary_.Find(left);
    if (!a) return OutOfVocabulary(left);
    std::optional<TokenId> b = vocabulary_.Find(right);
    if (!b) return OutOfVocabulary(right);
    joined_.assign(left);
    joined_.append(right.substr(std::min(prefix_length_, right.size())));
    std::optional<TokenId> whole = vocabulary_.Find(joined_);
    if (!whole) return OutOfVocabulary(joined_);
    table_->Add(*a, *b, {rank_++, *whole});
    return OkStatus();
  }

  // "left right", the older form.
  Status AddLine(std::string_view line) {
    if (line.starts_with("#version")) return OkStatus();
    ++line_;
    size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
      return Error(StatusCode::kInvalidArgument,
                   "Merges text file invalid at line " + std::to_string(line_));
    }
    return Add(line.substr(0, space), line.substr(space + 1));
  }

 private:
  static Status OutOfVocabulary(std::string_view token) {
    return Error(StatusCode::kInvalidArgument,
                 "Token `" + std::string(token) + "` out of vocabulary");
  }

  const Vocabulary& vocabulary_;
  size_t prefix_length_;
  MergeTable* table_;
  std::string joined_;
  uint32_t rank_ = 0;
  size_t line_ = 0;
};

Status ReadMerge(ondemand::value item, bool* pairs, bool* first, MergeReader* reader) {
  auto mixed = [] {
    return Error(StatusCode::kInvalidArgument,
                 "data did not match any variant of untagged enum MergeType");
  };
  ondemand::json_type type;
  if (auto error = item.type().get(type)) return Bad(error, "merges");
  bool is_pair = type == ondemand::json_type::array;
  if (*first) *pairs = is_pair;
  *first = false;
  if (is_pair != *pairs) return mixed();
  if (!is_pair) {
    std::string_view line;
    if (type != ondemand::json_type::string) return mixed();
    if (auto error = item.get_string().get(line)) return Bad(error, "merges");
    return reader->AddLine(line);
  }
  ondemand::array array;
  if (auto error = item.get_array().get(array)) return Bad(error, "merges");
  std::string_view sides[2];
  size_t count = 0;
  for (auto side : array) {
    if (count == 2) return mixed();
    if (side.get_string().get(sides[count++])) return mixed();
  }
  if (count != 2) return mixed();
  return reader->Add(sides[0], sides[1]);
}

StatusOr<MergeTable> ReadMerges(std::string_view json, const Vocabulary& vocabulary,
                                size_t prefix_length) {
  ondemand::parser parser;
  ondemand::document document;
  ondemand::array list;
  if (auto error = parser.iterate(Padded(json)).get(document)) return Bad(error, "merges");
  if (document.get_array().get(list)) {
    return Error(StatusCode::kInvalidArgument,
                 "data did not match any variant of untagged enum MergeType");
  }
  size_t count = 0;
  if (auto error = list.count_elements().get(count)) return Bad(error, "merges");
  MergeTable table;
  table.Reserve(count);
  MergeReader reader(vocabulary, prefix_length, &table);
  bool pairs = false;
  bool first = true;
  for (auto item : list) {
    ondemand::value value;
    if (auto error = std::move(item).get(value)) return Bad(error, "merges");
    PORTICO_RETURN_IF_ERROR(ReadMerge(value, &pairs, &first, &reader));
  }
  if (!AtEnd(document)) return Bad(simdjson::TRAILING_CONTENT, "merges");
  return table;
}

// A number as the reference's JSON library reads it: the digits as one integer, divided by a power of ten, which may
// differ from the nearest double in the last bit. Equal sums of scores must be equal here as well.
double ScoreOf(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  uint64_t digits = 0;
  int exponent = 0;
  bool fraction = false;
  bool full = false;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.') {
      fraction = true;
      continue;
    }
    if (text[at] < '0' || text[at] > '9') break;
    auto digit = static_cast<uint64_t>(text[at] - '0');
    full = full || digits > (UINT64_MAX - digit) / 10;
    if (full) {
      exponent += fraction ? 0 : 1;
    } else {
      digits = digits * 10 + digit;
      exponent -= fraction ? 1 : 0;
    }
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    int written = 0;
    size_t sign = at + 1 < text.size() && text[at + 1] == '+' ? 2 : 1;
    std::from_chars(text.data() + at + sign, text.data() + text.size(), written);
    exponent += std::clamp(written, -10000, 10000);
  }
  auto value = static_cast<double>(digits);
  for (; exponent < -308 && value != 0; exponent += 308) value /= 1e308;
  double power = std::pow(10.0, std::min(std::abs(exponent), 308));
  value = exponent >= 0 ? value * power : value / power;
  return text.starts_with('-') ? -value : value;
}

simdjson::error_code ReadScore(simdjson::simdjson_result<ondemand::value> item, double* score) {
  ondemand::value value;
  if (auto error = std::move(item).get(value)) return error;
  std::string_view text = value.raw_json_token();
  double checked = 0;
  if (auto error = value.get_double().get(checked)) return error;
  *score = ScoreOf(text);
  return simdjson::SUCCESS;
}

// [["token", score], …]
StatusOr<std::vector<double>> ReadScores(std::string_view json, Vocabulary* vocabulary) {
  ondemand::parser parser;
  ondemand::document document;
  ondemand::array list;
  if (auto error = parser.iterate(Padded(json)).get(document)) return Bad(error, "vocab");
  if (auto error = document.get_array().get(list)) return Bad(error, "vocab");
  std::vector<double> scores;
  for (auto item : list) {
    ondemand::array entry;
    if (auto error = item.get_array().get(entry)) return Bad(error, "vocab");
    std::string_view token;
    double score = 0;
    size_t count = 0;
    for (auto part : entry) {
      auto error = count == 0   ? part.get_string().get(token)
                   : count == 1 ? ReadScore(part, &score)
                                : simdjson::INCORRECT_TYPE;
      if (error) return Bad(error, "vocab");
      ++count;
    }
    if (count != 2) return Bad(simdjson::INCORRECT_TYPE, "vocab");
    vocabulary->Add(token, static_cast<TokenId>(scores.size()), /*keep_old_id=*/true);
    scores.push_back(score);
  }
  if (!AtEnd(document)) return Bad(simdjson::TRAILING_CONTENT, "vocab");
  vocabulary->Seal();
  return scores;
}

using Fields = std::map<std::string, std::string_view, std::less<>>;

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

}  // namespace

Status ForEachField(const padded_string_view& json,
                    const std::function<Status(std::string_view, std::string_view)>& visit) {
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object object;
  if (auto error = parser.iterate(json).get(document)) return Bad(error, "the file");
  if (auto error = document.get_object().get(object)) return Bad(error, "the file");
  for (auto field : object) {
    std::string_view key;
    std::string_view raw;
    if (auto error = field.unescaped_key().get(key)) return Bad(error, "the file");
    // The key lies in a buffer that the value may reuse.
    std::string name(key);
    ondemand::value value;
    if (auto error = field.value().get(value)) return Bad(error, "the file");
    if (auto error = RawJson(value).get(raw)) return Bad(error, "the file");
    PORTICO_RETURN_IF_ERROR(visit(name, raw));
  }
  if (!AtEnd(document)) return Bad(simdjson::TRAILING_CONTENT, "the file");
  return OkStatus();
}

StatusOr<std::unique_ptr<const Model>> ModelFromJson(std::string_view json) {
  Fields fields;
  PORTICO_RETURN_IF_ERROR(
      ForEachField(Padded(json), [&](std::string_view key, std::string_view value) {
        fields[std::string(key)] = value;
        return OkStatus();
      }));
  PORTICO_ASSIGN_OR_RETURN(std::string type, TextField(fields, "type", ""));
  if (type.empty()) {
    // Older files name no type: the first whose fields are all there.
    bool list = fields.contains("vocab") && fields["vocab"].starts_with('[');
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
