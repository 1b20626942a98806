// Which texts make the next micro-batches of a pooling engine. Pure policy: no model, no thread, no clock.
//
// Requests share the model fairly by tokens (self-clocked fair queueing; Golestani, INFOCOM 1994). The clock counts
// tokens. A text's tag is the clock at its request's arrival plus the tokens of its request up to it, shortest texts
// first, and texts are computed in the order of their tags. So a short text that comes behind a request of a thousand
// long ones waits for one or two of those and not for all, and a long one that waits is overtaken by ever fewer:
// later ones start from a later clock.
//
// A batch is the text with the least tag and, in the order of tags, those behind it that fit into batch_tokens with it.
// libllama's attention is computed between all tokens of a batch, of one text or not, and its layers use the caches
// worse the more tokens there are, so that a larger batch costs more a token. A text longer than a batch is computed
// alone; with `pieces` in several steps, each with a tag of its own so that others come between, and one such text at
// a time.
//
// A step has several batches, of min_tokens each, where so much waits; they are computed side by side and end together,
// so they are of like size: each text goes into the emptiest, and beside a long text the others may be as large. Where
// that fails the step is the first batch alone.
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

// What is computed together.
struct Batch {
  std::vector<Piece> pieces;
  int32_t tokens = 0;
};

struct PoolingSchedulerOptions {
  int32_t batch_tokens = 256;
  int32_t max_texts = 256;    // a batch
  bool pieces = false;        // the model can go on with a text in a later step
  int32_t min_tokens = 64;    // what pays a batch beside others
  size_t max_batches = 1;     // a step; 1 with `pieces`
  int32_t side_tokens = 256;  // the most that batches other than a step's first may have
};

class PoolingScheduler {
 public:
  explicit PoolingScheduler(const PoolingSchedulerOptions& options) : options_(options) {}

  // The texts of one request. Their streams are unlike all others here.
  void Add(std::vector<std::unique_ptr<ScheduledText>> request);

  // Empty if there is no text, and no batch is. The texts stay here until Finish().
  std::vector<Batch> Next();
  // The batch has been computed: moves its texts on. The complete ones are to be finished then.
  void Computed(const Batch& batch);

  // Takes a text out; null if it is unknown.
  std::unique_ptr<ScheduledText> Finish(StreamId stream);

  // Texts that are computed in part start again.
  void Restart();

  // Any text, or null if there is none.
  const ScheduledText* Any() const {
    return texts_.empty() ? nullptr : texts_.begin()->second.get();
  }
  bool empty() const { return texts_.empty(); }
  // Whether what waits is enough for every batch of a step.
  bool fills_step() const {
    return tokens_left_ >=
           int64_t{options_.batch_tokens} * static_cast<int64_t>(options_.max_batches);
  }

 private:
  // Tag, and order of arrival among equals.
  using Key = std::pair<uint64_t, uint64_t>;

  int32_t PieceOf(const ScheduledText& text) const;
  void Insert(uint64_t tag, std::unique_ptr<ScheduledText> text);
  std::vector<Batch> EmptyBatches() const;
  Batch* RoomFor(int32_t count, int32_t most, std::vector<Batch>* batches) const;

  const PoolingSchedulerOptions options_;
  std::map<Key, std::unique_ptr<ScheduledText>> texts_;
  absl::flat_hash_map<StreamId, Key> keys_;
  const ScheduledText* in_pieces_ = nullptr;  // the one that has been begun
  uint64_t clock_ = 0;                        // the greatest tag that a step has begun with
  uint64_t order_ = 0;
  int64_t tokens_left_ = 0;  // of all texts
};

}  // namespace portico::llama
