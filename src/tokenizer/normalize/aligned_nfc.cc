#include "tokenizer/normalize/aligned_nfc.h"

#include <algorithm>
#include <span>

#include "text/normalization.h"
#include "tokenizer/normalize/normalized_string.h"

namespace portico::tokenizer {

std::optional<AlignedNfc> AlignedNfc::Of(std::string_view text) {
  std::vector<NormalizedChar> chars;
  const std::vector<NfcPart> parts = NfcPartsOf(text, &chars);
  AlignedNfc out;
  out.text_.reserve(text.size() + 16);
  size_t done = 0;
  std::span<const NormalizedChar> rest = chars;
  for (const NfcPart& part : parts) {
    out.text_.append(text.substr(done, part.begin - done));
    done = part.end;
    const std::span<const NormalizedChar> becomes = rest.first(part.chars);
    rest = rest.subspan(part.chars);
    const std::string_view source = text.substr(part.begin, part.end - part.begin);
    const auto begin = static_cast<uint32_t>(out.text_.size());
    const auto first = static_cast<uint32_t>(out.origin_.size());
    if (!AppendAligned(source, becomes, static_cast<uint32_t>(part.begin), &out.text_,
                       &out.origin_)) {
      return std::nullopt;
    }
    const bool same = std::string_view(out.text_).substr(begin) == source &&
                      std::all_of(becomes.begin(), becomes.end(),
                                  [](const NormalizedChar& c) { return c.change == 0; });
    if (same) {
      out.origin_.resize(first);
    } else {
      out.parts_.push_back(
          {begin, static_cast<uint32_t>(out.text_.size()), first, static_cast<uint32_t>(part.end)});
    }
  }
  out.text_.append(text.substr(done));
  return out;
}

void AlignedNfc::ToOriginal(std::vector<Span>* spans) const {
  size_t next = 0;  // the first part that ends behind the place
  uint32_t shift = 0;
  auto pass = [&](uint32_t at, size_t* part, uint32_t* by) {
    for (; *part < parts_.size() && parts_[*part].end <= at; ++*part) {
      *by = parts_[*part].original_end - parts_[*part].end;
    }
    return *part < parts_.size() && parts_[*part].begin <= at;  // inside of it
  };
  for (Span& span : *spans) {
    const bool begins_inside = pass(span.begin, &next, &shift);
    const uint32_t begin = begins_inside
                               ? origin_[parts_[next].first + span.begin - parts_[next].begin].begin
                               : span.begin + shift;
    size_t last = next;
    uint32_t last_shift = shift;
    const uint32_t last_byte = span.end - 1;
    const bool ends_inside = pass(last_byte, &last, &last_shift);
    span = {begin, ends_inside ? origin_[parts_[last].first + last_byte - parts_[last].begin].end
                               : span.end + last_shift};
  }
}

}  // namespace portico::tokenizer
