#include "engine/llama/pooling/pooling_scheduler.h"

#include <algorithm>
#include <utility>

namespace portico::llama {
namespace {

// Texts that a batch looks at to fill itself.
constexpr int kLookAhead = 512;

}  // namespace

void PoolingScheduler::Add(std::vector<std::unique_ptr<ScheduledText>> request) {
  std::sort(request.begin(), request.end(), [](const auto& a, const auto& b) {
    return std::pair(a->size(), a->request.stream) < std::pair(b->size(), b->request.stream);
  });
  uint64_t tag = clock_;
  for (std::unique_ptr<ScheduledText>& text : request) {
    const auto size = static_cast<uint64_t>(text->size());
    const auto first = static_cast<uint64_t>(PieceOf(*text));
    Wait(tag + first, std::move(text));
    tag += size;
  }
}

void PoolingScheduler::Wait(uint64_t tag, std::unique_ptr<ScheduledText> text) {
  const Key key(tag, order_++);
  keys_[text->request.stream] = key;
  tokens_waiting_ += text->left();
  waiting_.emplace(key, std::move(text));
}

int32_t PoolingScheduler::PieceOf(const ScheduledText& text) const {
  return options_.pieces ? std::min(text.left(), options_.batch_tokens) : text.left();
}

size_t PoolingScheduler::Batches(size_t room) const {
  if (waiting_.empty() || room == 0) return 0;
  const auto paid = static_cast<size_t>(tokens_waiting_ / options_.min_tokens);
  return std::clamp<size_t>(std::min(paid, waiting_.size()), 1, room);
}

bool PoolingScheduler::Fits(const Batch& batch, int32_t count, int32_t most) const {
  if (batch.tokens == 0) return true;
  return batch.tokens + count <= most &&
         static_cast<int32_t>(batch.pieces.size()) < options_.max_texts;
}

Batch PoolingScheduler::Next(size_t batches, int32_t most_tokens) {
  const auto divided = static_cast<int64_t>(batches);
  const auto share = static_cast<int32_t>(std::min<int64_t>(
      (tokens_waiting_ + divided - 1) / divided, std::min(options_.batch_tokens, most_tokens)));
  Batch batch;
  int looked = 0;
  for (auto it = waiting_.begin(); it != waiting_.end() && Fits(batch, 1, share);) {
    const auto here = it++;
    ScheduledText* text = here->second.get();
    const bool in_pieces = options_.pieces && text->size() > options_.batch_tokens;
    if (in_pieces && in_pieces_ != nullptr && in_pieces_ != text) continue;
    const int32_t count = PieceOf(*text);
    if (count > most_tokens || !Fits(batch, count, share)) {
      if (++looked > kLookAhead) break;
      continue;
    }
    const uint64_t tag = here->first.first;
    if (batch.tokens == 0) clock_ = std::max(clock_, tag);
    if (in_pieces) in_pieces_ = text;
    batch.pieces.push_back({text, count});
    batch.tokens += count;
    tokens_waiting_ -= text->left();
    keys_.erase(text->request.stream);
    in_batch_.emplace(text->request.stream, std::pair(tag, std::move(here->second)));
    waiting_.erase(here);
  }
  return batch;
}

void PoolingScheduler::Computed(const Batch& batch) {
  for (const Piece& piece : batch.pieces) {
    piece.text->computed += piece.count;
    if (piece.text->left() == 0) continue;
    auto node = in_batch_.extract(piece.text->request.stream);
    const uint64_t tag = node.mapped().first + static_cast<uint64_t>(PieceOf(*piece.text));
    Wait(tag, std::move(node.mapped().second));
  }
}

ScheduledText* PoolingScheduler::InBatch(StreamId stream) const {
  const auto text = in_batch_.find(stream);
  return text == in_batch_.end() ? nullptr : text->second.second.get();
}

std::unique_ptr<ScheduledText> PoolingScheduler::Finish(StreamId stream) {
  std::unique_ptr<ScheduledText> text;
  if (const auto key = keys_.find(stream); key != keys_.end()) {
    text = std::move(waiting_.extract(key->second).mapped());
    keys_.erase(key);
    tokens_waiting_ -= text->left();
  } else if (auto node = in_batch_.extract(stream)) {
    text = std::move(node.mapped().second);
  }
  if (text != nullptr && in_pieces_ == text.get()) in_pieces_ = nullptr;
  return text;
}

void PoolingScheduler::Restart() {
  in_pieces_ = nullptr;
  for (auto& [key, text] : waiting_) {
    tokens_waiting_ += text->computed;
    text->computed = 0;
  }
}

}  // namespace portico::llama
