#include <algorithm>
#include <unordered_map>
#include <utility>

#include "text/utf8.h"
#include "tokenizer/model/sentencepiece_model.h"
#include "tokenizer/model/space_symbol.h"

namespace portico::tokenizer {
namespace {

using SourceKind = SentencePieceSource::Kind;

class SentencePieceDecoder : public Decoder {
 public:
  explicit SentencePieceDecoder(const SentencePieceSource& source)
      : unk_surface_(source.unk_surface),
        strips_space_(source.add_dummy_prefix || source.remove_extra_whitespaces),
        strips_all_(source.remove_extra_whitespaces) {
    for (const auto& piece : source.pieces) {
      if (piece.kind == SourceKind::kControl || piece.kind == SourceKind::kUnknown ||
          piece.kind == SourceKind::kByte) {
        special_.emplace(piece.text, piece.kind);
      }
    }
  }

  void Apply(std::vector<std::string>* tokens) const override {
    std::string out;
    std::string bytes;
    bool at_start = true;
    bool saw_space = false;
    for (const std::string& token : *tokens) {
      auto it = special_.find(token);
      SourceKind kind = it == special_.end() ? SourceKind::kNormal : it->second;
      int byte = kind == SourceKind::kByte ? ByteOfFallbackToken(token) : -1;
      if (byte >= 0) {
        bytes.push_back(static_cast<char>(byte));
        continue;
      }
      AppendBytes(&bytes, &out);
      if (saw_space || !out.empty()) at_start = false;
      saw_space = false;
      if (kind == SourceKind::kControl) continue;
      if (kind == SourceKind::kUnknown) {
        out.append(unk_surface_);
        continue;
      }
      std::string_view text = token;
      if (at_start && strips_space_ && text.starts_with(kSpaceSymbol)) {
        text.remove_prefix(kSpaceSymbol.size());
        saw_space = !strips_all_;
      }
      AppendText(text, &out);
    }
    AppendBytes(&bytes, &out);
    *tokens = {std::move(out)};
  }

 private:
  static void AppendText(std::string_view text, std::string* out) {
    while (!text.empty()) {
      size_t found = text.find(kSpaceSymbol);
      out->append(text.substr(0, found));
      if (found == std::string_view::npos) return;
      out->push_back(' ');
      text.remove_prefix(found + kSpaceSymbol.size());
    }
  }

  // Characters where the bytes are some, U+FFFD for every byte that is not part of one.
  static void AppendBytes(std::string* bytes, std::string* out) {
    std::string_view rest = *bytes;
    while (!rest.empty()) {
      size_t length = Utf8SequenceLength(rest);
      out->append(length > 0 ? rest.substr(0, length) : kReplacementCharacter);
      rest.remove_prefix(std::max<size_t>(length, 1));
    }
    bytes->clear();
  }

  std::string unk_surface_;
  bool strips_space_;
  bool strips_all_;
  std::unordered_map<std::string, SourceKind> special_;
};

}  // namespace

std::unique_ptr<const Decoder> MakeSentencePieceDecoder(const SentencePieceSource& source) {
  return std::make_unique<SentencePieceDecoder>(source);
}

}  // namespace portico::tokenizer
