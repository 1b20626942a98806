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
  return options_.pieces ? std::min(text.left(), options_.step_tokens) : text.left();
}

std::vector<Piece> PoolingScheduler::Next() {
  std::vector<Piece> pieces;
  int32_t left = options_.step_tokens;
  int looked = 0;
  for (auto& [key, text] : texts_) {
    const bool in_pieces = options_.pieces && text->size() > options_.step_tokens;
    if (in_pieces && in_pieces_ != nullptr && in_pieces_ != text.get()) continue;
    const int32_t count = PieceOf(*text);
    if (pieces.empty()) {
      clock_ = std::max(clock_, key.first);
    } else if (count > left) {
      if (++looked > kLookAhead) break;
      continue;
    }
    pieces.push_back({text.get(), count});
    left -= count;
    if (in_pieces) in_pieces_ = text.get();
    if (left <= 0 || static_cast<int32_t>(pieces.size()) >= options_.max_texts) break;
  }
  return pieces;
}

void PoolingScheduler::Computed(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
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
  if (in_pieces_ == node.mapped().get()) in_pieces_ = nullptr;
  return std::move(node.mapped());
}

void PoolingScheduler::Restart() {
  in_pieces_ = nullptr;
  for (auto& [key, text] : texts_) text->computed = 0;
}

}  // namespace portico::llama
