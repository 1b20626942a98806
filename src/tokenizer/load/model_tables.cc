#include "tokenizer/load/model_tables.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace portico::tokenizer {
namespace {

namespace ondemand = simdjson::ondemand;

StatusOr<TokenId> CheckedId(uint64_t id) {
  if (id > INT32_MAX - 1) {
    return Error(StatusCode::kUnimplemented,
                 "the vocabulary has the id " + std::to_string(id) + ", which is too large");
  }
  return static_cast<TokenId>(id);
}

// Fills a table with merges that are told by the pairs' spellings, which must stay until Finish().
class MergeReader {
 public:
  MergeReader(const Vocabulary& vocabulary, size_t prefix_length, MergeTable* table)
      : vocabulary_(vocabulary), prefix_length_(prefix_length), table_(table) {}

  // An error may be that of an earlier merge.
  Status Add(std::string_view left, std::string_view right) {
    const size_t begin = joined_.size();
    joined_.append(left).append(right.substr(std::min(prefix_length_, right.size())));
    waiting_.push_back({left, right, begin, joined_.size() - begin});
    return waiting_.size() < kAtOnce ? OkStatus() : Finish();
  }

  Status Finish() {
    std::array<std::string_view, kAtOnce * 3> texts;
    std::array<TokenId, kAtOnce * 3> ids;
    for (size_t i = 0; i < waiting_.size(); ++i) {
      const Pair& pair = waiting_[i];
      texts[i * 3] = pair.left;
      texts[i * 3 + 1] = pair.right;
      texts[i * 3 + 2] = std::string_view(joined_).substr(pair.joined, pair.joined_size);
    }
    const size_t count = waiting_.size() * 3;
    vocabulary_.FindAll(std::span(texts).first(count), std::span(ids).first(count));
    for (size_t i = 0; i < count; ++i) {
      if (ids[i] == kNoToken) return OutOfVocabulary(texts[i]);
      if (i % 3 == 1) table_->Prefetch(ids[i - 1], ids[i]);
    }
    for (size_t i = 0; i < count; i += 3) table_->Add(ids[i], ids[i + 1], {rank_++, ids[i + 2]});
    waiting_.clear();
    joined_.clear();
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

  static constexpr size_t kAtOnce = 64;

  struct Pair {
    std::string_view left;
    std::string_view right;
    size_t joined;  // where both begin in joined_
    size_t joined_size;
  };

  const Vocabulary& vocabulary_;
  size_t prefix_length_;
  MergeTable* table_;
  std::vector<Pair> waiting_;
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
  if (auto error = item.type().get(type)) return BadJson(error, "merges");
  bool is_pair = type == ondemand::json_type::array;
  if (*first) *pairs = is_pair;
  *first = false;
  if (is_pair != *pairs) return mixed();
  if (!is_pair) {
    std::string_view line;
    if (type != ondemand::json_type::string) return mixed();
    if (auto error = item.get_string().get(line)) return BadJson(error, "merges");
    return reader->AddLine(line);
  }
  ondemand::array array;
  if (auto error = item.get_array().get(array)) return BadJson(error, "merges");
  std::string_view sides[2];
  size_t count = 0;
  for (auto side : array) {
    if (count == 2) return mixed();
    if (side.get_string().get(sides[count++])) return mixed();
  }
  if (count != 2) return mixed();
  return reader->Add(sides[0], sides[1]);
}

Status ReadMergeList(ondemand::array list, MergeReader* reader) {
  bool pairs = false;
  bool first = true;
  for (auto item : list) {
    ondemand::value value;
    if (auto error = std::move(item).get(value)) return BadJson(error, "merges");
    PORTICO_RETURN_IF_ERROR(ReadMerge(value, &pairs, &first, reader));
  }
  return OkStatus();
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

}  // namespace

Status BadJson(simdjson::error_code error, std::string_view what) {
  return Error(StatusCode::kInvalidArgument,
               std::string(what) + ": " + simdjson::error_message(error));
}

simdjson::padded_string_view Padded(std::string_view json) {
  return simdjson::padded_string_view(json.data(), json.size(),
                                      json.size() + simdjson::SIMDJSON_PADDING);
}

bool AtEnd(ondemand::document& document) {
  return document.current_location().error() == simdjson::OUT_OF_BOUNDS;
}

StatusOr<Vocabulary> ReadVocabulary(std::string_view json) {
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object object;
  if (auto error = parser.iterate(Padded(json)).get(document)) return BadJson(error, "vocab");
  if (auto error = document.get_object().get(object)) return BadJson(error, "vocab");
  Vocabulary vocabulary;
  for (auto field : object) {
    std::string_view token;
    uint64_t number = 0;
    if (auto error = field.unescaped_key().get(token)) return BadJson(error, "vocab");
    if (auto error = field.value().get_uint64().get(number)) return BadJson(error, "vocab");
    PORTICO_ASSIGN_OR_RETURN(TokenId id, CheckedId(number));
    vocabulary.Add(token, id);
  }
  if (!AtEnd(document)) return BadJson(simdjson::TRAILING_CONTENT, "vocab");
  vocabulary.Seal();
  return vocabulary;
}

StatusOr<MergeTable> ReadMerges(std::string_view json, const Vocabulary& vocabulary,
                                size_t prefix_length) {
  ondemand::parser parser;
  ondemand::document document;
  ondemand::array list;
  if (auto error = parser.iterate(Padded(json)).get(document)) return BadJson(error, "merges");
  if (document.get_array().get(list)) {
    return Error(StatusCode::kInvalidArgument,
                 "data did not match any variant of untagged enum MergeType");
  }
  size_t count = 0;
  if (auto error = list.count_elements().get(count)) return BadJson(error, "merges");
  MergeTable table;
  table.Reserve(count);
  MergeReader reader(vocabulary, prefix_length, &table);
  const Status read = ReadMergeList(list, &reader);
  PORTICO_RETURN_IF_ERROR(reader.Finish());  // its merges came before
  PORTICO_RETURN_IF_ERROR(read);
  if (!AtEnd(document)) return BadJson(simdjson::TRAILING_CONTENT, "merges");
  return table;
}

StatusOr<std::vector<double>> ReadScores(std::string_view json, Vocabulary* vocabulary) {
  ondemand::parser parser;
  ondemand::document document;
  ondemand::array list;
  if (auto error = parser.iterate(Padded(json)).get(document)) return BadJson(error, "vocab");
  if (auto error = document.get_array().get(list)) return BadJson(error, "vocab");
  std::vector<double> scores;
  for (auto item : list) {
    ondemand::array entry;
    if (auto error = item.get_array().get(entry)) return BadJson(error, "vocab");
    std::string_view token;
    double score = 0;
    size_t count = 0;
    for (auto part : entry) {
      auto error = count == 0   ? part.get_string().get(token)
                   : count == 1 ? ReadScore(part, &score)
                                : simdjson::INCORRECT_TYPE;
      if (error) return BadJson(error, "vocab");
      ++count;
    }
    if (count != 2) return BadJson(simdjson::INCORRECT_TYPE, "vocab");
    vocabulary->Add(token, static_cast<TokenId>(scores.size()), /*keep_old_id=*/true);
    scores.push_back(score);
  }
  if (!AtEnd(document)) return BadJson(simdjson::TRAILING_CONTENT, "vocab");
  vocabulary->Seal();
  return scores;
}

}  // namespace portico::tokenizer
