#include "engine/llama/pooling_scheduler.h"

#include <algorithm>
#include <utility>

namespace portico::llama {
namespace {

// Texts that a step looks at to fill itself.
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
    tokens_left_ += text->size();
    Insert(tag + first, std::move(text));
    tag += size;
  }
}

void PoolingScheduler::Insert(uint64_t tag, std::unique_ptr<ScheduledText> text) {
  const Key key(tag, order_++);
  keys_[text->request.stream] = key;
  texts_.emplace(key, std::move(text));
}

int32_t PoolingScheduler::PieceOf(const ScheduledText& text) const {
  return options_.pieces ? std::min(text.left(), options_.batch_tokens) : text.left();
}

std::vector<Batch> PoolingScheduler::EmptyBatches() const {
  const int64_t paid = tokens_left_ / options_.min_tokens;
  const auto most = static_cast<int64_t>(options_.max_batches);
  return std::vector<Batch>(static_cast<size_t>(std::clamp<int64_t>(paid, 1, most)));
}

// The emptiest batch that a piece of `count` tokens may go into, if each may have `most`. Null: none.
Batch* PoolingScheduler::RoomFor(int32_t count, int32_t most, std::vector<Batch>* batches) const {
  Batch* room = nullptr;
  for (Batch& batch : *batches) {
    const bool first = &batch == &batches->front();
    if (!first && batch.tokens + count > options_.side_tokens) continue;
    if (batch.tokens > 0 && batch.tokens + count > most) continue;
    if (static_cast<int32_t>(batch.pieces.size()) >= options_.max_texts) continue;
    if (room == nullptr || batch.tokens < room->tokens) room = &batch;
  }
  return room;
}

std::vector<Batch> PoolingScheduler::Next() {
  if (texts_.empty()) return {};
  std::vector<Batch> batches = EmptyBatches();
  int32_t most = options_.batch_tokens;
  int looked = 0;
  for (auto& [key, text] : texts_) {
    const bool in_pieces = options_.pieces && text->size() > options_.batch_tokens;
    if (in_pieces && in_pieces_ != nullptr && in_pieces_ != text.get()) continue;
    const int32_t count = PieceOf(*text);
    Batch* batch = RoomFor(count, most, &batches);
    if (batch == nullptr) {
      // No room for one token: the step is full.
      if (RoomFor(1, most, &batches) == nullptr || ++looked > kLookAhead) break;
      continue;
    }
    if (batches[0].tokens == 0) clock_ = std::max(clock_, key.first);
    batch->pieces.push_back({text.get(), count});
    batch->tokens += count;
    most = std::max(most, count);
    if (in_pieces) in_pieces_ = text.get();
  }
  std::erase_if(batches, [](const Batch& batch) { return batch.tokens == 0; });
  const auto [least, greatest] =
      std::minmax_element(batches.begin(), batches.end(),
                          [](const Batch& a, const Batch& b) { return a.tokens < b.tokens; });
  if (batches.size() > 1 && least->tokens < greatest->tokens / 2) batches.resize(1);
  return batches;
}

void PoolingScheduler::Computed(const Batch& batch) {
  tokens_left_ -= batch.tokens;
  for (const Piece& piece : batch.pieces) {
    piece.text->computed += piece.count;
    if (piece.text->left() == 0) continue;
    auto node = texts_.extract(keys_.at(piece.text->request.stream));
    const uint64_t tag = node.key().first + static_cast<uint64_t>(PieceOf(*piece.text));
    Insert(tag, std::move(node.mapped()));
  }
}

std::unique_ptr<ScheduledText> PoolingScheduler::Finish(StreamId stream) {
  const auto key = keys_.find(stream);
  if (key == keys_.end()) return nullptr;
  auto node = texts_.extract(key->second);
  keys_.erase(key);
  tokens_left_ -= node.mapped()->left();
  if (in_pieces_ == node.mapped().get()) in_pieces_ = nullptr;
  return std::move(node.mapped());
}

void PoolingScheduler::Restart() {
  in_pieces_ = nullptr;
  for (auto& [key, text] : texts_) {
    tokens_left_ += text->computed;
    text->computed = 0;
  }
}

}  // namespace portico::llama
