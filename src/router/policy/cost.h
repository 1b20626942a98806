// cost: the worker on which the request costs least, in tokens of prefill:
//
//   own       prompt tokens that the worker is not believed to have cached, 1 + kPlace + kEvict x f times, f = the share
//             of its KV cells that hold prefixes (0 if it does not report how many it has): the request waits until they
//             are computed, they take cells, and the fuller the cache is, the more of what they push out will have to be
//             computed again. Without kPlace a conversation leaves its worker for a short queue, and its copies
//             fill the caches of two; without f, what is new gathers on the workers that have the common beginning of all
//             prompts, while others have free cells
//   + queue   prompt tokens that are still to be computed there: of the prompts in flight whose answers have not begun,
//             those that were not believed to be cached when they were sent
//   + decode  kDecodeTokens for each request in flight: a step with one more sequence in it takes
//             longer, and the request's own tokens come at that pace. Requests of others (of another
//             gateway) are those that the worker has reported, within kReportAge, beyond this gateway's
//             own when the report came: these may have ended since, and are counted exactly
//   + memory  kMemoryTokens x p / (1 - p), p = how far the reported use of KV cells, with the tokens of
//             this request, is from kMemoryFrom on the way to full
//   + new     as much decode as the mean of the others has, falling to 0 during --slow-start seconds
//             after a worker has become healthy
//
// The least wins, one at random of those within kTie of it. What is cached is found in an index over
// hashes of blocks (index/prefix_index.h): 16 tokens a block, or bytes of text (block_hash.h). A worker's
// part of it is bounded by the KV cells that it reports and forgets as its cache does; all of it is
// bounded by --index-bytes. So a prefix that is wanted more often than one worker can serve spreads, as
// soon as the queue there is 2 to 6 times as long as the prefix, and no threshold has to be set.
//
// How many tokens a byte of text is, is the mean of what workers have counted (the usage in their answers) over the last
// kCountedBytes of prompts, and 1/4 until one has: English has 0.22, text whose words the tokenizer does not know 0.5, and with
// half of the truth the index would believe twice what the caches hold. A count above 1 is not one of text alone.
//
// Workers that tell what their caches take in and let go (KV-cache events) are believed: what they say corrects the index,
// and they forget nothing that they have not said. They tell of tokens; a prompt that is known as text when its worker is
// chosen is linked with its tokens afterwards (index/text_links.h), so what others have sent to a worker counts as soon as
// this gateway has seen the text once. From the first such worker on half of --index-bytes are the index's, the rest is what
// is told: an eighth each for blocks as workers name them and for links, a quarter for blocks of tokens. A worker with
// more blocks than their share allows is not believed, as if it told nothing. While nothing links text with tokens (workers
// over HTTP tokenize for themselves) what is known of a worker's text is guessed as before, within the cells that it
// reports, or else the most that it has told when it began to let go; that it is cleared or has restarted still counts.
//
// One lock for each group, held about 1 us for a prompt of 1,000 tokens among 64 workers. The numbers are
// the best of those tried in bench/fleet; docs/routing.md has the figures.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "router/index/block_hash.h"
#include "router/index/prefix_index.h"
#include "router/index/text_links.h"
#include "router/index/worker_blocks.h"
#include "router/policy/dice.h"
#include "router/policy/policy.h"
#include "router/policy/policy_options.h"

namespace portico::router {

class Cost final : public Policy {
 public:
  static constexpr double kDecodeTokens = 128;
  static constexpr double kPlace = 1;
  static constexpr double kEvict = 4;
  static constexpr double kMemoryTokens = 2048;
  static constexpr double kMemoryFrom = 0.8;
  static constexpr double kTie = 16;
  static constexpr double kCountedBytes = 256 << 10;

  explicit Cost(const PolicyOptions& options);

  std::string_view name() const override { return "cost"; }
  bool wants_prompt() const override { return true; }
  bool wants_reports() const override { return true; }
  Choice Choose(std::span<Worker* const> candidates, const RoutingKey& key) override;
  int64_t OnStart(Worker& worker, const RoutingKey& key) override;
  void OnPrompt(const RoutingKey& key, std::span<const int32_t> tokens) override;
  bool wants_usage() const override { return true; }
  void OnUsage(const RoutingKey& key, int64_t prompt_tokens) override;
  bool wants_kv_events() const override { return true; }
  bool OnKvEvents(const Worker& worker, const KvEventBatch& batch, bool reset) override;
  void OnKvEventsLost(const Worker& worker) override;
  void OnWorkerAdded(Worker& worker) override;
  void OnWorkerRemoved(Worker& worker) override;
  void OnWorkerLost(Worker& worker) override;

  size_t index_bytes() const;
  // Whether the worker is believed, which takes its telling all it has.
  bool Believes(const Worker& worker) const;

 private:
  struct Known {
    PrefixIndex::Place place = 0;
    ReportedLoad report;
    TimePoint looked{};  // when the report was taken from the worker
    // Of a worker that tells what it has.
    std::unique_ptr<WorkerBlocks> blocks;  // null: it does not
    PrefixIndex::Place told_place = 0;     // in told_
    bool told_too_much = false;
    bool many_ranks = false;
    bool lets_go = false;  // its cache is full, or was
    size_t told_most = 0;  // blocks in told_, at any time
  };
  // What workers tell.
  struct Told {
    explicit Told(size_t bytes)
        : blocks(bytes / 4),
          links(bytes / 8),
          max_blocks(bytes / 8 / WorkerBlocks::kBytesOfBlock) {}
    PrefixIndex blocks;  // of tokens
    TextLinks links;
    const size_t max_blocks;  // of all workers, as these name them
    size_t held = 0;
    bool linked = false;  // some text's tokens are known
  };

  struct Prompt {
    double size = 1;  // in tokens, or in bytes of text
    bool is_text = false;
    // Of the prompt, what its first so many blocks cover.
    double ShareOf(int32_t blocks) const;
  };

  // Of the request, what a worker that has this share of the prompt would compute, in tokens.
  double UncachedTokens(const RoutingKey& key, double share) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What a block of the index stands for.
  double BlockTokens() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_text_ ? kMeanTextBlockBytes * tokens_of_byte_ : kBlockTokens;
  }
  int64_t BlocksOf(int64_t tokens) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int64_t>(static_cast<double>(tokens) / BlockTokens());
  }
  // Fills `chain` with the hashes of the prompt's blocks.
  static Prompt HashPrompt(const RoutingKey& key, std::vector<uint64_t>* chain);
  Known& Know(const Worker& worker, TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What the index may believe of the worker, in tokens; 0: no limit.
  int64_t CapacityOf(const Known& known) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `worker` tells from now on, beginning with nothing.
  void BeginTold(Known* known) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndTold(Known* known) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeEvent(const KvEvent& event, int32_t rank, Known* known)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Blocks of the prompt that the worker has; `depths` are the index's, `told` those of told_.
  static int32_t DepthOf(const Known& known, const std::vector<int32_t>& depths,
                         const std::vector<int32_t>& told);
  double Memory(const Known& known, double tokens) const;
  // That the worker has reported beyond those which this gateway had there at that time.
  static double OthersRequests(const Known& known, TimePoint now);
  // The share of its cells that hold prefixes, 0..1.
  double FillOf(const Known& known) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  TimePoint (*const now_)();
  const Duration slow_start_;
  Dice dice_;
  mutable Mutex mutex_;
  const size_t bytes_;
  std::optional<PrefixIndex> index_ ABSL_GUARDED_BY(mutex_);  // always there
  std::unique_ptr<Told> told_ ABSL_GUARDED_BY(mutex_);        // null until a worker tells
  bool is_text_ ABSL_GUARDED_BY(mutex_) = false;              // how prompts come
  double tokens_of_byte_ ABSL_GUARDED_BY(mutex_) = kTokensOfByte;
  double counted_bytes_ ABSL_GUARDED_BY(mutex_) =
      0;  // of text; what tokens_of_byte_ is the mean of
  absl::flat_hash_map<uint64_t, Known> known_ ABSL_GUARDED_BY(mutex_);  // by number
};

}  // namespace portico::router
