#include "grammar/compile/vocabulary.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace portico::grammar {
namespace {

constexpr char kNoText = '\xFF';

void Append(uint32_t value, std::string* out) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out->append(bytes, sizeof value);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  uint32_t Number() {
    uint32_t value = 0;
    if (rest_.size() < sizeof value) {
      good_ = false;
      return 0;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }

  std::string_view Text() {
    const uint32_t size = Number();
    if (size > rest_.size()) {
      good_ = false;
      return {};
    }
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }

  bool good() const { return good_; }
  bool at_end() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace

Vocabulary MakeVocabulary(const Tokenizer& tokenizer, int32_t size, std::vector<TokenId> stops) {
  Vocabulary vocabulary;
  vocabulary.texts.resize(std::max(size, tokenizer.vocab_size()));
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.IsSpecial(id) || std::find(stops.begin(), stops.end(), id) != stops.end()) {
      vocabulary.texts[id] = kNoText + std::string(tokenizer.IdToToken(id));
      vocabulary.special.push_back(id);
    } else {
      vocabulary.texts[id] = tokenizer.TokenBytes(id);
    }
  }
  std::erase_if(stops, [&vocabulary](TokenId id) {
    return id < 0 || static_cast<size_t>(id) >= vocabulary.texts.size();
  });
  vocabulary.stops = std::move(stops);
  return vocabulary;
}

std::string Serialized(const Vocabulary& vocabulary) {
  std::string out;
  Append(static_cast<uint32_t>(vocabulary.texts.size()), &out);
  for (const std::string& text : vocabulary.texts) {
    Append(static_cast<uint32_t>(text.size()), &out);
    out += text;
  }
  for (const auto* const ids : {&vocabulary.special, &vocabulary.stops}) {
    Append(static_cast<uint32_t>(ids->size()), &out);
    for (const TokenId id : *ids) Append(static_cast<uint32_t>(id), &out);
  }
  return out;
}

StatusOr<Vocabulary> ReadVocabulary(std::string_view bytes) {
  Reader reader(bytes);
  Vocabulary vocabulary;
  const uint32_t size = reader.Number();
  for (uint32_t i = 0; i < size && reader.good(); ++i) vocabulary.texts.emplace_back(reader.Text());
  for (auto* const ids : {&vocabulary.special, &vocabulary.stops}) {
    const uint32_t count = reader.Number();
    for (uint32_t i = 0; i < count && reader.good(); ++i) {
      ids->push_back(static_cast<TokenId>(reader.Number()));
    }
  }
  if (!reader.at_end()) return Error(StatusCode::kInvalidArgument, "no vocabulary");
  return vocabulary;
}

}  // namespace portico::grammar
