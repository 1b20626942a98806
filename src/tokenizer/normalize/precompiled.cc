#include "tokenizer/normalize/precompiled.h"

#include <utf8proc.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/utf8.h"
#include "tokenizer/load/json_fields.h"

namespace portico::tokenizer {
namespace {

bool Replace(const Charsmap& map, std::string_view part, std::vector<NormalizedChar>* chars) {
  std::optional<std::string_view> found = map.Shortest(part);
  if (!found) return false;
  std::vector<uint32_t> replacement = CodePointsOf(*found);
  auto difference =
      static_cast<ptrdiff_t>(replacement.size()) - static_cast<ptrdiff_t>(CountCodePoints(part));
  for (uint32_t c : replacement) chars->push_back({c, 0});
  if (difference > 0) {
    auto count = static_cast<size_t>(difference);
    for (size_t i = chars->size() - count; i < chars->size(); ++i) (*chars)[i].change = 1;
  } else if (difference < 0 && !chars->empty()) {
    chars->back().change += static_cast<int32_t>(difference);
  }
  return true;
}

class PrecompiledNormalizer : public Normalizer {
 public:
  explicit PrecompiledNormalizer(Charsmap map) : map_(std::move(map)) {}

  Status Apply(NormalizedString* text) const override {
    std::string_view source = text->text();
    std::vector<NormalizedChar> chars;
    bool changed = false;
    for (size_t at = 0; at < source.size();) {
      size_t length = GraphemeLength(source.substr(at));
      changed |= AppendPrecompiled(map_, source.substr(at, length), &chars);
      at += length;
    }
    if (changed) text->Transform(chars, 0);
    return OkStatus();
  }
  void AppendSteps(std::vector<NormalizerStep>* out) const override {
    NormalizerStep step;
    step.kind = NormalizerStep::Kind::kPrecompiled;
    step.charsmap = &map_;
    out->push_back(step);
  }

 private:
  Charsmap map_;
};

}  // namespace

std::unique_ptr<const Normalizer> MakePrecompiled(Charsmap map) {
  return std::make_unique<PrecompiledNormalizer>(std::move(map));
}

size_t GraphemeLength(std::string_view text) {
  size_t at = Utf8SequenceLength(text);
  auto previous = static_cast<utf8proc_int32_t>(Utf8Decode(text, at));
  utf8proc_int32_t state = 0;
  while (at < text.size()) {
    size_t length = Utf8SequenceLength(text.substr(at));
    auto c = static_cast<utf8proc_int32_t>(Utf8Decode(text.substr(at), length));
    // Between two ASCII characters only CR LF stays together.
    bool cut = c < 0x80 && previous < 0x80 ? !(previous == '\r' && c == '\n')
                                           : utf8proc_grapheme_break_stateful(previous, c, &state);
    if (cut) break;
    previous = c;
    at += length;
  }
  return at;
}

void AppendPrecompiled(const Charsmap& map, std::string_view grapheme, std::string* out) {
  if (grapheme.size() < kMaxCluster) {
    if (std::optional<std::string_view> found = map.Shortest(grapheme)) {
      out->append(*found);
      return;
    }
  }
  while (!grapheme.empty()) {
    std::string_view one = grapheme.substr(0, Utf8SequenceLength(grapheme));
    out->append(map.Shortest(one).value_or(one));
    grapheme.remove_prefix(one.size());
  }
}

bool AppendPrecompiled(const Charsmap& map, std::string_view grapheme,
                       std::vector<NormalizedChar>* chars) {
  if (grapheme.size() < kMaxCluster && Replace(map, grapheme, chars)) return true;
  bool changed = false;
  while (!grapheme.empty()) {
    const size_t length = Utf8SequenceLength(grapheme);
    if (Replace(map, grapheme.substr(0, length), chars)) {
      changed = true;
    } else {
      chars->push_back({Utf8Decode(grapheme, length), 0});
    }
    grapheme.remove_prefix(length);
  }
  return changed;
}

StatusOr<std::unique_ptr<const Normalizer>> ParsePrecompiled(const Json& json) {
  PORTICO_ASSIGN_OR_RETURN(std::string text, StringField(json, "precompiled_charsmap"));
  PORTICO_ASSIGN_OR_RETURN(std::string blob, DecodeBase64(text));
  PORTICO_ASSIGN_OR_RETURN(Charsmap map, Charsmap::Parse(blob));
  return MakePrecompiled(std::move(map));
}

}  // namespace portico::tokenizer
