#include <cstring>
#include <string>
#include <utility>

#include "tokenizer/load/load.h"
#include "tokenizer/load/sentencepiece_parts.h"

namespace portico::tokenizer {
namespace {

using Kind = SentencePieceSource::Kind;

// The fields of a protobuf message, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  // False at the end, or where the message is damaged.
  bool Next() {
    uint64_t tag = 0;
    if (rest_.empty() || !Varint(&tag)) return Stop();
    number_ = tag >> 3;
    switch (tag & 7) {
      case 0:
        return Varint(&value_) || Stop();
      case 1:
        return Fixed(8) || Stop();
      case 2: {
        uint64_t size = 0;
        if (!Varint(&size) || size > rest_.size()) return Stop();
        bytes_ = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return true;
      }
      case 5:
        return Fixed(4) || Stop();
      default:
        return Stop();
    }
  }

  uint64_t number() const { return number_; }
  uint64_t value() const { return value_; }
  bool flag() const { return value_ != 0; }
  std::string_view bytes() const { return bytes_; }
  float real() const {
    auto bits = static_cast<uint32_t>(value_);
    float out = 0;
    std::memcpy(&out, &bits, sizeof(out));
    return out;
  }
  bool damaged() const { return damaged_; }

 private:
  bool Stop() {
    damaged_ = damaged_ || !rest_.empty();
    rest_ = {};
    return false;
  }
  bool Varint(uint64_t* out) {
    *out = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      *out |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    damaged_ = true;
    return false;
  }
  bool Fixed(size_t width) {
    if (rest_.size() < width) return false;
    value_ = 0;
    std::memcpy(&value_, rest_.data(), width);
    rest_.remove_prefix(width);
    return true;
  }

  std::string_view rest_;
  uint64_t number_ = 0;
  uint64_t value_ = 0;
  std::string_view bytes_;
  bool damaged_ = false;
};

// Without `all`, only of the special ones.
bool ReadPiece(std::string_view message, bool all, SentencePieceSource* source) {
  SentencePieceSource::Piece piece;
  Fields fields(message);
  while (fields.Next()) {
    if (fields.number() == 1) piece.text = std::string(fields.bytes());
    if (fields.number() == 2) piece.score = fields.real();
    if (fields.number() == 3 && fields.value() >= 1 && fields.value() <= 6) {
      piece.kind = static_cast<Kind>(fields.value());
    }
  }
  if (all || IsSpecialPiece(piece.kind)) source->pieces.push_back(std::move(piece));
  return !fields.damaged();
}

bool ReadTrainer(std::string_view message, uint64_t* model_type, SentencePieceSource* source) {
  Fields fields(message);
  while (fields.Next()) {
    if (fields.number() == 3) *model_type = fields.value();
    if (fields.number() == 24) source->treat_whitespace_as_suffix = fields.flag();
    if (fields.number() == 35) source->byte_fallback = fields.flag();
    if (fields.number() == 44) source->unk_surface = std::string(fields.bytes());
  }
  return !fields.damaged();
}

bool ReadNormalizer(std::string_view message, SentencePieceSource* source) {
  Fields fields(message);
  while (fields.Next()) {
    if (fields.number() == 2) source->charsmap = std::string(fields.bytes());
    if (fields.number() == 3) source->add_dummy_prefix = fields.flag();
    if (fields.number() == 4) source->remove_extra_whitespaces = fields.flag();
    if (fields.number() == 5) source->escape_whitespaces = fields.flag();
  }
  return !fields.damaged();
}

}  // namespace

StatusOr<PipelineParts> PartsFromSentencePiece(std::string_view file,
                                               std::unique_ptr<const Model> model) {
  SentencePieceSource source;
  constexpr uint64_t kUnigram = 1;
  constexpr uint64_t kBpe = 2;
  uint64_t model_type = kUnigram;
  bool ok = true;
  Fields fields(file);
  while (ok && fields.Next()) {
    if (fields.number() == 1) ok = ReadPiece(fields.bytes(), !model, &source);
    if (fields.number() == 2) ok = ReadTrainer(fields.bytes(), &model_type, &source);
    if (fields.number() == 3) ok = ReadNormalizer(fields.bytes(), &source);
  }
  if (!ok || fields.damaged() || (source.pieces.empty() && !model)) {
    return Error(StatusCode::kInvalidArgument,
                 "this is not a SentencePiece model, or a damaged one");
  }
  if (model_type != kUnigram && model_type != kBpe) {
    return Error(StatusCode::kUnimplemented,
                 "SentencePiece word and character models are not supported");
  }
  source.unigram = model_type == kUnigram;
  return PartsOf(std::move(source), std::move(model));
}

}  // namespace portico::tokenizer
