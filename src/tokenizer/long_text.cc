#include "tokenizer/long_text.h"

#include <string>
#include <utility>

#include "text/utf8.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/split/seams.h"

namespace portico {

using tokenizer::Seams;
using tokenizer::SpecialFrame;

LongTextEncoder::LongTextEncoder(std::shared_ptr<const Tokenizer> tokenizer, size_t part_bytes)
    : tokenizer_(std::move(tokenizer)), part_bytes_(part_bytes) {}

LongTextEncoder::~LongTextEncoder() = default;

Status LongTextEncoder::EncodeParts(std::string_view text, bool add_special_tokens,
                                    absl::FunctionRef<Status()> go_on,
                                    std::vector<TokenId>* ids) const {
  const SpecialFrame& frame = tokenizer_->pipeline().frame();
  if (add_special_tokens) ids->insert(ids->end(), frame.before.begin(), frame.before.end());
  for (size_t begin = 0; begin < text.size();) {
    PORTICO_RETURN_IF_ERROR(go_on());
    const size_t from = begin + part_bytes_;
    const size_t end = from < text.size() ? seams_->Find(text, from, text.size()) : text.size();
    PORTICO_RETURN_IF_ERROR(seams_->EncodePart(*tokenizer_, text, begin, end, {}, ids));
    begin = end;
  }
  if (add_special_tokens) ids->insert(ids->end(), frame.after.begin(), frame.after.end());
  return OkStatus();
}

Status LongTextEncoder::Encode(std::string_view text, bool add_special_tokens,
                               absl::FunctionRef<Status()> go_on, std::vector<TokenId>* ids) const {
  if (text.size() > part_bytes_) {
    absl::call_once(made_, [this] { seams_ = std::make_unique<Seams>(tokenizer_->pipeline()); });
  }
  if (text.size() <= part_bytes_ || !seams_->any() || !tokenizer_->pipeline().frame().known) {
    PORTICO_RETURN_IF_ERROR(go_on());
    return tokenizer_->TryEncode(text, add_special_tokens, ids);
  }
  // What is no UTF-8 could lie across a seam.
  std::string copy;
  if (!IsValidUtf8(text)) text = copy = ToValidUtf8(text);
  const size_t before = ids->size();
  Status status = EncodeParts(text, add_special_tokens, go_on, ids);
  if (!status.ok()) ids->resize(before);
  return status;
}

}  // namespace portico
