#include "tokenizer/decode/stream_decoder.h"

#include <algorithm>

#include "text/utf8.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/split/char_begins.h"

namespace portico {
namespace {

using tokenizer::DecodePlan;
using tokenizer::DecodeTable;

// The general way holds at most this many ids back before it takes their text as it is.
constexpr size_t kMaxHeldIds = 64;

// What follows a prompt depends on this many of its last tokens: enough for a character, and for text behind which no
// decoder takes spaces off.
constexpr size_t kPromptTokens = 8;
// Where many of its last tokens are left out, no more than this many are searched for them.
constexpr size_t kMaxSearchedTokens = 256;

// How many bytes at the end of `bytes` begin a character that more bytes may finish; 0 … 3.
size_t UnfinishedTail(std::string_view bytes) {
  for (size_t length = 1; length <= 3 && length <= bytes.size(); ++length) {
    std::string_view tail = bytes.substr(bytes.size() - length);
    if (IsTailByte(tail[0])) continue;
    auto b = static_cast<unsigned char>(tail[0]);
    size_t want = b >= 0xF0 && b <= 0xF4  ? 4
                  : b >= 0xE0 && b < 0xF0 ? 3
                  : b >= 0xC2 && b < 0xE0 ? 2
                                          : 1;
    if (want <= length) return 0;
    // A start like E0 80 can never become a character.
    std::string filled(tail);
    for (unsigned char filler : {0x80, 0x90, 0xA0}) {
      filled.resize(length);
      filled.push_back(static_cast<char>(length == 1 ? filler : 0x80));
      filled.resize(want, '\x80');
      if (Utf8SequenceLength(filled) == want) return length;
    }
    return 0;
  }
  return 0;
}

// Without `head`, where the text begins with it.
void AppendBehind(std::string_view head, std::string_view text, std::string* out) {
  out->append(text.starts_with(head) ? text.substr(head.size()) : text);
}

bool EndsWithReplacement(std::string_view text) { return text.ends_with(kReplacementCharacter); }

}  // namespace

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens)
    : pipeline_(&tokenizer.pipeline()), skip_special_tokens_(skip_special_tokens) {}

void StreamDecoder::Continue(std::span<const TokenId> prompt, bool skip_special_tokens) {
  const DecodeTable& table = pipeline_->decode_table();
  if (prompt.size() > kMaxSearchedTokens) prompt = prompt.last(kMaxSearchedTokens);
  std::vector<TokenId> tokens;  // the last one first
  while (!prompt.empty()) {
    const TokenId id = prompt.back();
    prompt = prompt.first(prompt.size() - 1);
    if (!table.Shows(id, skip_special_tokens)) continue;
    tokens.push_back(id);
    if (tokens.size() >= kPromptTokens && !BeginsInsideCharacter(id)) break;
  }
  std::string text;
  std::for_each(tokens.rbegin(), tokens.rend(), [&](TokenId id) { Push(id, &text); });
  if (pending_.empty() && context_.size() == context_sent_) return;
  StreamDecoder(*this).Flush(&prompt_end_);
  ends_prompt_ = !prompt_end_.empty();
}

StreamDecoder StreamDecoder::WithSpecialTokens() const {
  StreamDecoder all = *this;
  all.skip_special_tokens_ = false;
  return all;
}

// A run of byte tokens that is cut there would be no text.
bool StreamDecoder::BeginsInsideCharacter(TokenId id) const {
  const int byte = tokenizer::ByteOfFallbackToken(pipeline_->IdToToken(id));
  return byte >= 0 && IsTailByte(static_cast<char>(byte));
}

// The first text may begin with what is the prompt's.
void StreamDecoder::PushFirst(TokenId id, std::string* out) {
  ends_prompt_ = false;
  std::string text;
  Push(id, &text);
  if (text.empty()) {
    ends_prompt_ = true;
  } else {
    AppendBehind(prompt_end_, text, out);
  }
}

std::string StreamDecoder::TokenBytes(TokenId id) const {
  const DecodeTable& table = pipeline_->decode_table();
  if (!table.Has(id)) return {};
  std::string_view bytes = table.Bytes(table.At(id));
  const DecodePlan& plan = pipeline_->parts().decode_plan;
  switch (plan.kind) {
    case DecodePlan::Kind::kByteLevel:
      break;
    case DecodePlan::Kind::kFallback:
      if (!stripping_ || !pending_.empty()) break;
      for (size_t n = stripped_; n < plan.strip_count && bytes.starts_with(plan.stripped); ++n) {
        bytes.remove_prefix(plan.stripped.size());
      }
      break;
    case DecodePlan::Kind::kTokenwise:
      if (at_start_) return pipeline_->DecodeGeneral({&id, 1}, false);
      break;
    case DecodePlan::Kind::kGeneral:
      return GeneralTokenBytes(id);
  }
  return std::string(bytes);
}

std::string StreamDecoder::GeneralTokenBytes(TokenId id) const {
  std::string alone = pipeline_->DecodeGeneral({&id, 1}, false);
  // A decoder that reads byte tokens shows a part of a character as U+FFFD.
  const int byte = tokenizer::ByteOfFallbackToken(pipeline_->IdToToken(id));
  if (byte >= 0 && alone == kReplacementCharacter) return std::string(1, static_cast<char>(byte));
  if (context_.empty()) return alone;
  std::vector<TokenId> ids = context_;
  const std::string before = pipeline_->DecodeGeneral(ids, false);
  ids.push_back(id);
  std::string after = pipeline_->DecodeGeneral(ids, false);
  return after.starts_with(before) ? after.substr(before.size()) : alone;
}

void StreamDecoder::Push(TokenId id, std::string* out) {
  const DecodeTable& table = pipeline_->decode_table();
  if (!table.Shows(id, skip_special_tokens_)) return;
  if (ends_prompt_) [[unlikely]]
    return PushFirst(id, out);
  switch (pipeline_->parts().decode_plan.kind) {
    case DecodePlan::Kind::kByteLevel:
      return PushByteLevel(id, out);
    case DecodePlan::Kind::kFallback:
      return PushFallback(id, out);
    case DecodePlan::Kind::kTokenwise:
      return PushTokenwise(id, out);
    case DecodePlan::Kind::kGeneral:
      return PushGeneral(id, out);
  }
}

void StreamDecoder::PushByteLevel(TokenId id, std::string* out) {
  const DecodeTable& table = pipeline_->decode_table();
  std::string_view bytes = table.Bytes(table.At(id));
  if (!pending_.empty()) {
    pending_.append(bytes);
    bytes = pending_;
  } else if (tokenizer::IsAscii(bytes)) {
    out->append(bytes);
    return;
  }
  size_t tail = UnfinishedTail(bytes);
  std::string_view whole = bytes.substr(0, bytes.size() - tail);
  if (IsValidUtf8(whole)) {
    out->append(whole);
  } else {
    out->append(ToValidUtf8(whole));
  }
  pending_ = std::string(bytes.substr(bytes.size() - tail));
}

// Text after the characters that the decoder takes off the start.
void StreamDecoder::EmitText(std::string_view text, std::string* out) {
  const DecodePlan& plan = pipeline_->parts().decode_plan;
  while (stripping_ && !text.empty()) {
    if (stripped_ < plan.strip_count && text.starts_with(plan.stripped)) {
      text.remove_prefix(plan.stripped.size());
      ++stripped_;
    } else {
      stripping_ = false;
    }
  }
  out->append(text);
}

// A run of byte tokens: all of it is text, or each byte of it is U+FFFD. Text is sent as it becomes complete.
void StreamDecoder::EmitRun(bool at_end, std::string* out) {
  if (!run_bad_ && IsValidUtf8(pending_)) {
    EmitText(pending_, out);
    pending_.clear();
  } else if (run_bad_ || at_end || UnfinishedTail(pending_) != pending_.size()) {
    for (size_t i = 0; i < pending_.size(); ++i) EmitText(kReplacementCharacter, out);
    pending_.clear();
    run_bad_ = true;
  }
  if (at_end) run_bad_ = false;
}

void StreamDecoder::PushFallback(TokenId id, std::string* out) {
  const DecodeTable& table = pipeline_->decode_table();
  const DecodeTable::Entry& e = table.At(id);
  if (e.is_byte) {
    pending_.append(table.Bytes(e));
    EmitRun(/*at_end=*/false, out);
    return;
  }
  if (run_bad_ || !pending_.empty()) EmitRun(/*at_end=*/true, out);
  EmitText(table.Bytes(e), out);
}

void StreamDecoder::PushTokenwise(TokenId id, std::string* out) {
  const DecodeTable& table = pipeline_->decode_table();
  if (at_start_) {
    out->append(pipeline_->DecodeGeneral({&id, 1}, skip_special_tokens_));
  } else {
    out->append(table.Bytes(table.At(id)));
  }
  at_start_ = false;
}

void StreamDecoder::PushGeneral(TokenId id, std::string* out) {
  context_.push_back(id);
  std::string text = pipeline_->DecodeGeneral(context_, skip_special_tokens_);
  bool held = EndsWithReplacement(text) && context_.size() - context_sent_ < kMaxHeldIds;
  if (held || text.size() < context_text_.size()) return;
  out->append(text, context_text_.size());
  // The ids sent last stay, so that what follows is decoded as a continuation.
  context_.erase(context_.begin(), context_.begin() + static_cast<ptrdiff_t>(context_sent_));
  context_sent_ = context_.size();
  context_text_ = pipeline_->DecodeGeneral(context_, skip_special_tokens_);
}

void StreamDecoder::Flush(std::string* out) {
  if (ends_prompt_) {
    ends_prompt_ = false;
    std::string text;
    Flush(&text);
    return AppendBehind(prompt_end_, text, out);
  }
  switch (pipeline_->parts().decode_plan.kind) {
    case DecodePlan::Kind::kByteLevel:
      out->append(ToValidUtf8(pending_));
      break;
    case DecodePlan::Kind::kFallback:
      EmitRun(/*at_end=*/true, out);
      break;
    case DecodePlan::Kind::kTokenwise:
      break;
    case DecodePlan::Kind::kGeneral:
      if (context_.size() > context_sent_) {
        std::string text = pipeline_->DecodeGeneral(context_, skip_special_tokens_);
        if (text.size() > context_text_.size()) out->append(text, context_text_.size());
      }
      break;
  }
  pending_.clear();
  run_bad_ = false;
  at_start_ = true;
  stripped_ = 0;
  stripping_ = true;
  context_.clear();
  context_sent_ = 0;
  context_text_.clear();
}

}  // namespace portico
