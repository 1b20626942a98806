// Which texts make the next micro-batch of a pooling engine. Pure policy: no model, no thread, no clock.
//
// Requests share the model fairly by tokens (self-clocked fair queueing; Golestani, INFOCOM 1994). The clock counts
// tokens. A text's tag is the clock at its request's arrival plus the tokens of its request up to it, shortest texts
// first, and texts are computed in the order of their tags. So a short text that comes behind a request of a thousand
// long ones waits for one or two of those and not for all, and a long one that waits is overtaken by ever fewer:
// later ones start from a later clock.
//
// A step is the text with the least tag and, in the order of tags, those behind it that fit into step_tokens with it.
// libllama's attention is computed between all tokens of a batch, of one text or not, so that a larger step costs
// more a token. A text longer than a step is computed alone; with `pieces` in several steps, each with a tag of its
// own so that others come between, and one such text at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "message/pooling.h"

namespace portico::llama {

// One text as the scheduler sees it; the engine derives its own from it.
struct ScheduledText {
  virtual ~ScheduledText() = default;

  PoolingRequest request;
  int32_t computed = 0;  // of its tokens, in earlier steps

  int32_t size() const { return static_cast<int32_t>(request.tokens->size()); }
  int32_t left() const { return size() - computed; }
};

// Tokens [text->computed, text->computed + count) of a text.
struct Piece {
  ScheduledText* text = nullptr;
  int32_t count = 0;

  bool last() const { return count == text->left(); }
};

struct PoolingSchedulerOptions {
  int32_t step_tokens = 256;
  int32_t max_texts = 256;  // a step
  bool pieces = false;      // the model can go on with a text in a later step
};

class PoolingScheduler {
 public:
  explicit PoolingScheduler(const PoolingSchedulerOptions& options) : options_(options) {}

  // The texts of one request. Their streams are unlike all others here.
  void Add(std::vector<std::unique_ptr<ScheduledText>> request);

  // Empty if there is no text. They stay here until Finish().
  std::vector<Piece> Next();
  // The pieces have been computed: moves their texts on. The complete ones are to be finished then.
  void Computed(const std::vector<Piece>& pieces);

  // Takes a text out; null if it is unknown.
  std::unique_ptr<ScheduledText> Finish(StreamId stream);

  // Texts that are computed in part start again.
  void Restart();

  // Any text, or null if there is none.
  const ScheduledText* Any() const {
    return texts_.empty() ? nullptr : texts_.begin()->second.get();
  }
  bool empty() const { return texts_.empty(); }

 private:
  // Tag, and order of arrival among equals.
  using Key = std::pair<uint64_t, uint64_t>;

  int32_t PieceOf(const ScheduledText& text) const;
  void Insert(uint64_t tag, std::unique_ptr<ScheduledText> text);

  const PoolingSchedulerOptions options_;
  std::map<Key, std::unique_ptr<ScheduledText>> texts_;
  absl::flat_hash_map<StreamId, Key> keys_;
  const ScheduledText* in_pieces_ = nullptr;  // the one that has been begun
  uint64_t clock_ = 0;                        // the greatest tag that a step has begun with
  uint64_t order_ = 0;
};

}  // namespace portico::llama
