// Which texts make the next micro-batches of a pooling engine. Pure policy: no model, no thread, no clock.
//
// Requests share the model fairly by tokens (self-clocked fair queueing; Golestani, INFOCOM 1994). The clock counts
// tokens. A text's tag is the clock at its request's arrival plus the tokens of its request up to it, shortest texts
// first, and texts are computed in the order of their tags. So a short text that comes behind a request of a thousand
// long ones waits for one or two of those and not for all, and a long one that waits is overtaken by ever fewer:
// later ones start from a later clock.
//
// A batch is the text with the least tag and, in the order of tags, those behind it that fit into batch_tokens with it.
// A larger batch gains nothing: what is between two layers leaves the caches, and libllama's own attention is computed
// between all tokens of a batch, of one text or not. A text longer than a batch is computed
// alone; with `pieces` in several batches, each with a tag of its own so that others come between, and one such text at
// a time.
//
// Several batches may be computed side by side. Where less waits than would fill those that may begin, it is divided
// among them, as long as each has min_tokens.
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
  int32_t max_texts = 256;  // a batch
  bool pieces = false;      // the model can go on with a text in a later step
  int32_t min_tokens = 64;  // what pays a batch beside others
};

class PoolingScheduler {
 public:
  explicit PoolingScheduler(const PoolingSchedulerOptions& options) : options_(options) {}

  // The texts of one request. Their streams are unlike all others here.
  void Add(std::vector<std::unique_ptr<ScheduledText>> request);

  // Into how many batches what waits is worth dividing, of at most `room`; 0: into none.
  size_t Batches(size_t room) const;
  // The first of so many batches that begin now; none of its texts is longer than most_tokens. Without pieces, no text
  // that waits is that short. Its texts wait no more.
  Batch Next(size_t batches, int32_t most_tokens);
  // The batch has been computed: moves its texts on. Those that have tokens left wait again; the complete ones are to be
  // finished then.
  void Computed(const Batch& batch);

  // The text, if it is in a batch; else null.
  ScheduledText* InBatch(StreamId stream) const;
  // Takes a text out; null if it is unknown. One that is in a batch must not be computed any more.
  std::unique_ptr<ScheduledText> Finish(StreamId stream);

  // Texts that wait and are computed in part start again.
  void Restart();

  // Any text that waits, or null if there is none.
  const ScheduledText* Any() const {
    return waiting_.empty() ? nullptr : waiting_.begin()->second.get();
  }
  // Whether what waits fills so many batches.
  bool Fills(size_t batches) const {
    return tokens_waiting_ >= int64_t{options_.batch_tokens} * static_cast<int64_t>(batches);
  }

 private:
  // Tag, and order of arrival among equals.
  using Key = std::pair<uint64_t, uint64_t>;

  int32_t PieceOf(const ScheduledText& text) const;
  void Wait(uint64_t tag, std::unique_ptr<ScheduledText> text);
  bool Fits(const Batch& batch, int32_t count, int32_t most) const;

  const PoolingSchedulerOptions options_;
  std::map<Key, std::unique_ptr<ScheduledText>> waiting_;
  absl::flat_hash_map<StreamId, Key> keys_;  // of what waits
  // With the tag that its batch gave it.
  absl::flat_hash_map<StreamId, std::pair<uint64_t, std::unique_ptr<ScheduledText>>> in_batch_;
  const ScheduledText* in_pieces_ = nullptr;  // the one that has been begun
  uint64_t clock_ = 0;                        // the greatest tag that a batch has begun with
  uint64_t order_ = 0;
  int64_t tokens_waiting_ = 0;
};

}  // namespace portico::llama
