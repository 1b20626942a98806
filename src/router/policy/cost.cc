#include "router/policy/cost.h"

#include <algorithm>
#include <limits>

#include "router/index/block_hash.h"
#include "router/policy/worker_load.h"

namespace portico::router {
namespace {

constexpr double kFewRequests = 4;
constexpr size_t kMaxBlocks = 1 << 16;
// Longer ones come cut off, so that their tokens are not those of the whole.
constexpr size_t kMaxLinkedText = kMaxPromptText;
// Of shorter ones the template's own tokens are too many.
constexpr size_t kLeastCountedText = 512;
// How often a worker's report is copied.
constexpr Duration kLookInterval = std::chrono::milliseconds(100);

// Kept for their capacity; a policy's calls do not nest.
thread_local std::vector<uint64_t> prompt_chain;
thread_local std::vector<int32_t> prompt_depths;
thread_local std::vector<int32_t> told_depths;
thread_local std::vector<int32_t> index_depths;
thread_local std::vector<uint64_t> token_chain;
thread_local std::vector<uint64_t> blocks_added;
thread_local std::vector<uint64_t> blocks_removed;
thread_local std::vector<double> costs;

// As far as prompts are looked at.
std::span<const int32_t> IndexedTokens(const RoutingKey& key) {
  return key.tokens.first(std::min(key.tokens.size(), kMaxBlocks * kBlockTokens));
}

// The prompt's blocks as workers tell them, which name no model.
void HashTold(const RoutingKey& key, std::vector<uint64_t>* chain) {
  chain->clear();
  HashTokenBlocks(IndexedTokens(key), kNoModelSalt, chain);
}

}  // namespace

Cost::Cost(const PolicyOptions& options)
    : now_(options.now),
      slow_start_(options.slow_start),
      dice_(options.seed),
      bytes_(static_cast<size_t>(options.index_bytes)) {
  index_.emplace(bytes_);
}

// Of a call with several prompts the first one's tokens are known, and only their share is cached.
double Cost::UncachedTokens(const RoutingKey& key, double share) const {
  auto all = static_cast<double>(std::max<int64_t>(1, key.prompt_tokens));
  if (!key.tokens.empty()) {
    return all - share * std::min(all, static_cast<double>(key.tokens.size()));
  }
  if (!key.text.empty()) all *= tokens_of_byte_ / kTokensOfByte;
  return all - share * all;
}

Cost::Prompt Cost::HashPrompt(const RoutingKey& key, std::vector<uint64_t>* chain) {
  chain->clear();
  const uint64_t salt = key.model.empty() ? kNoModelSalt : HashText(key.model);
  if (!key.tokens.empty()) {
    HashTokenBlocks(IndexedTokens(key), salt, chain);
    return {.size = static_cast<double>(key.tokens.size()), .is_text = false};
  }
  constexpr size_t kMaxText = BytesOfTextBlocks(kMaxBlocks);
  if (!key.text.empty()) HashTextBlocks(key.text.substr(0, kMaxText), ~salt, chain);
  return {.size = std::max(1.0, static_cast<double>(key.text.size())), .is_text = true};
}

double Cost::Prompt::ShareOf(int32_t blocks) const {
  const double covered = is_text ? static_cast<double>(BytesOfTextBlocks(blocks))
                                 : static_cast<double>(blocks) * kBlockTokens;
  return std::min(1.0, covered / size);
}

Cost::Known& Cost::Know(const Worker& worker, TimePoint now) {
  const auto [it, added] = known_.try_emplace(worker.number());
  Known& known = it->second;
  if (added) known.place = index_->AddWorker(0);
  if (added || now - known.looked > kLookInterval) {
    known.looked = now;
    known.report = worker.report();
    index_->SetCapacity(known.place, BlocksOf(CapacityOf(known)));
  }
  return known;
}

int64_t Cost::CapacityOf(const Known& known) const {
  const auto reported = static_cast<int64_t>(std::max(0.0, known.report.total_tokens));
  if (known.blocks == nullptr) return reported;
  // Who tells what it lets go is not guessed about, as far as that can be understood.
  if (told_->linked || !is_text_) return 0;
  if (reported > 0 || !known.lets_go) return reported;
  return static_cast<int64_t>(known.told_most) * kBlockTokens;
}

double Cost::Memory(const Known& known, double tokens) const {
  const ReportedLoad& report = known.report;
  if (report.total_tokens <= 0) return 0;
  const double used = report.used_tokens >= 0
                          ? report.used_tokens
                          : std::max(0.0, report.token_usage) * report.total_tokens;
  const double usage = (used + tokens) / report.total_tokens;
  if (usage <= kMemoryFrom) return 0;
  const double p = std::min((usage - kMemoryFrom) / (1 - kMemoryFrom), 0.99);
  return kMemoryTokens * p / (1 - p);
}

double Cost::OthersRequests(const Known& known, TimePoint now) {
  const ReportedLoad& report = known.report;
  if (report.at == TimePoint{} || now - report.at > kReportAge) return 0;
  const double all =
      std::max(0.0, report.running_requests) + std::max(0.0, report.waiting_requests);
  // A report is a little older than what is in flight here, and a request of several choices is several to some workers.
  return std::max(0.0, all - static_cast<double>(report.own_requests) - kFewRequests);
}

double Cost::FillOf(const Known& known) const {
  if (known.report.total_tokens <= 0) return 0;
  const double held =
      known.blocks != nullptr
          ? static_cast<double>(told_->blocks.blocks_of(known.told_place)) * kBlockTokens
          : static_cast<double>(index_->blocks_of(known.place)) * BlockTokens();
  return std::min(1.0, held / known.report.total_tokens);
}

Choice Cost::Choose(std::span<Worker* const> candidates, const RoutingKey& key) {
  const Prompt prompt = HashPrompt(key, &prompt_chain);
  int64_t requests = 0;
  for (const Worker* worker : candidates) requests += worker->requests();
  const double mean_requests =
      static_cast<double>(requests) / static_cast<double>(candidates.size());
  const TimePoint now = now_();

  costs.clear();
  double least = std::numeric_limits<double>::infinity();
  const MutexLock lock(&mutex_);
  if (!prompt_chain.empty()) is_text_ = prompt.is_text;
  index_->Match(prompt_chain, &prompt_depths);
  told_depths.clear();
  if (told_ != nullptr && !prompt.is_text) {
    if (!key.model.empty()) HashTold(key, &token_chain);
    told_->blocks.Match(key.model.empty() ? prompt_chain : token_chain, &told_depths);
  }
  for (Worker* const worker : candidates) {
    const Known& known = Know(*worker, now);
    const int32_t depth = DepthOf(known, prompt_depths, told_depths);
    const double uncached = UncachedTokens(key, prompt.ShareOf(depth));
    const double own = uncached * (1 + kPlace + kEvict * FillOf(known));
    const auto queue = static_cast<double>(worker->tokens());
    double decode = static_cast<double>(worker->requests()) + OthersRequests(known, now);
    if (const Duration age = now - worker->healthy_since(); age < slow_start_) {
      decode += (mean_requests + 1) * (1 - Seconds(age) / Seconds(slow_start_));
    }
    const double cost = own + queue + kDecodeTokens * decode + Memory(known, uncached + queue);
    costs.push_back(cost);
    least = std::min(least, cost);
  }
  size_t best = 0;
  size_t ties = 0;
  for (size_t i = 0; i < costs.size(); ++i) {
    if (costs[i] <= least + kTie && dice_.Below(++ties) == 0) best = i;
  }
  const Known& chosen = Know(*candidates[best], now);
  const int32_t depth = DepthOf(chosen, prompt_depths, told_depths);
  const double matched = prompt.ShareOf(depth);
  return {.index = best, .reason = matched > 0 ? "cached" : "least cost", .matched = matched};
}

int32_t Cost::DepthOf(const Known& known, const std::vector<int32_t>& depths,
                      const std::vector<int32_t>& told) {
  // Know() may have made places that Match() has not seen: nothing is cached there.
  const int32_t depth = known.place < depths.size() ? depths[known.place] : 0;
  if (known.blocks == nullptr || known.told_place >= told.size()) return depth;
  return std::max(depth, told[known.told_place]);
}

int64_t Cost::OnStart(Worker& worker, const RoutingKey& key) {
  const Prompt prompt = HashPrompt(key, &prompt_chain);
  const MutexLock lock(&mutex_);
  // Not there: the worker has been removed since it was chosen.
  const auto found = known_.find(worker.number());
  if (found == known_.end()) return key.prompt_tokens;
  Known& known = found->second;
  index_->Match(prompt_chain, &prompt_depths);
  told_depths.clear();
  const bool links = told_ != nullptr && !prompt.is_text && !key.model.empty();
  if (links) HashTold(key, &token_chain);
  if (told_ != nullptr && !prompt.is_text) {
    told_->blocks.Match(links ? token_chain : prompt_chain, &told_depths);
  }
  const double share = prompt.ShareOf(DepthOf(known, prompt_depths, told_depths));
  index_->Insert(known.place, prompt_chain);
  for (size_t i = 0; links && i < prompt_chain.size(); ++i) {
    told_->links.Link(token_chain[i], prompt_chain[i]);
  }
  return static_cast<int64_t>(UncachedTokens(key, share));
}

void Cost::OnPrompt(const RoutingKey& key, std::span<const int32_t> tokens) {
  if (key.text.empty() || tokens.empty() || key.text.size() >= kMaxLinkedText) return;
  if (!key.tokens.empty()) return;  // found directly
  OnUsage(key, static_cast<int64_t>(tokens.size()));
  const MutexLock lock(&mutex_);
  if (told_ == nullptr) return;
  told_->linked = true;
  HashPrompt(key, &prompt_chain);
  token_chain.clear();
  HashTokenBlocks(tokens, kNoModelSalt, &token_chain);
  const double tokens_of_byte =
      static_cast<double>(tokens.size()) / static_cast<double>(key.text.size());
  // By block of text: blocks of tokens that end before it does.
  std::vector<int32_t>& ends = prompt_depths;
  ends.clear();
  for (size_t i = 0; i < prompt_chain.size(); ++i) {
    const auto bytes = static_cast<double>(BytesOfTextBlocks(static_cast<int64_t>(i) + 1));
    const auto end = static_cast<size_t>(bytes * tokens_of_byte) / kBlockTokens;
    ends.push_back(static_cast<int32_t>(std::min(end, token_chain.size())));
    if (ends.back() > 0) {
      told_->links.Link(token_chain[static_cast<size_t>(ends.back()) - 1], prompt_chain[i]);
    }
  }
  // Who has the tokens has the text, whoever has sent it there.
  told_->blocks.Match(token_chain, &told_depths);
  std::vector<int32_t>& text_depths = index_depths;
  index_->Match(prompt_chain, &text_depths);
  for (const auto& [number, known] : known_) {
    if (known.blocks == nullptr || known.told_place >= told_depths.size()) continue;
    const int32_t told = told_depths[known.told_place];
    const auto held = std::upper_bound(ends.begin(), ends.end(), told) - ends.begin();
    if (told == 0 || held <= text_depths[known.place]) continue;
    index_->Insert(known.place, std::span(prompt_chain).first(static_cast<size_t>(held)));
  }
}

void Cost::OnUsage(const RoutingKey& key, int64_t prompt_tokens) {
  if (!key.tokens.empty() || key.text.size() < kLeastCountedText) return;
  if (key.text.size() >= kMaxLinkedText) return;
  const auto bytes = static_cast<double>(key.text.size());
  // Images, tools and further prompts of a list are counted too. A text has at most one token a byte, which scripts that the
  // vocabulary does not have come near to.
  if (static_cast<double>(prompt_tokens) > bytes) return;
  const double ratio = std::max(static_cast<double>(prompt_tokens) / bytes, 1.0 / 16);
  const MutexLock lock(&mutex_);
  counted_bytes_ = std::min(counted_bytes_ + bytes, kCountedBytes);
  tokens_of_byte_ += (ratio - tokens_of_byte_) * bytes / counted_bytes_;
}

void Cost::BeginTold(Known* known) {
  if (told_ == nullptr) {
    told_ = std::make_unique<Told>(bytes_);
    index_.emplace(bytes_ / 2);
    for (auto& [number, each] : known_) {
      each.place = index_->AddWorker(0);
      each.looked = {};
    }
  }
  EndTold(known);
  known->blocks = std::make_unique<WorkerBlocks>();
  known->told_place = told_->blocks.AddWorker(0);
  known->told_too_much = false;
  known->many_ranks = false;
  known->lets_go = false;
  known->told_most = 0;
  index_->SetCapacity(known->place, BlocksOf(CapacityOf(*known)));
}

void Cost::EndTold(Known* known) {
  if (known->blocks == nullptr) return;
  told_->held -= known->blocks->size();
  told_->blocks.RemoveWorker(known->told_place);
  known->blocks.reset();
  known->looked = {};
}

void Cost::TakeEvent(const KvEvent& event, int32_t rank, Known* known) {
  // Of one of several ranks it is the blocks that are known.
  if (event.kind == KvEvent::Kind::kCleared && (rank < 0 || !known->many_ranks)) {
    rank = -1;
    told_->blocks.RemoveWorker(known->told_place);
    known->told_place = told_->blocks.AddWorker(0);
    index_->RemoveWorker(known->place);
    known->place = index_->AddWorker(0);
  }
  blocks_added.clear();
  blocks_removed.clear();
  told_->held -= known->blocks->size();
  known->blocks->Apply(event, rank, &blocks_added, &blocks_removed);
  told_->held += known->blocks->size();
  for (const uint64_t block : blocks_removed) {
    told_->blocks.Remove(known->told_place, block);
    index_->Remove(known->place, block);  // where prompts come as tokens
    for (const uint64_t text : told_->links.Of(block)) {
      if (text != 0) index_->Remove(known->place, text);
    }
  }
  known->lets_go |= event.kind == KvEvent::Kind::kRemoved;
  for (const uint64_t block : blocks_added) {
    told_->blocks.Add(known->told_place, block);
    for (const uint64_t text : told_->links.Of(block)) {
      if (text != 0) index_->Add(known->place, text);
    }
  }
}

bool Cost::OnKvEvents(const Worker& worker, const KvEventBatch& batch, bool reset) {
  const MutexLock lock(&mutex_);
  const auto found = known_.find(worker.number());
  if (found == known_.end()) return true;
  Known& known = found->second;
  if (reset) BeginTold(&known);
  if (known.blocks == nullptr) return known.told_too_much;
  known.many_ranks |= batch.rank > 0;
  for (const KvEvent& event : batch.events) {
    TakeEvent(event, batch.rank, &known);
    if (told_->held > told_->max_blocks) {
      EndTold(&known);
      known.told_too_much = true;
      return true;
    }
  }
  const auto told = static_cast<size_t>(told_->blocks.blocks_of(known.told_place));
  known.told_most = std::max(known.told_most, told);
  return true;
}

void Cost::OnKvEventsLost(const Worker& worker) {
  const MutexLock lock(&mutex_);
  const auto found = known_.find(worker.number());
  if (found != known_.end()) EndTold(&found->second);
}

bool Cost::Believes(const Worker& worker) const {
  const MutexLock lock(&mutex_);
  const auto found = known_.find(worker.number());
  return found != known_.end() && found->second.blocks != nullptr;
}

void Cost::OnWorkerAdded(Worker& worker) {
  const MutexLock lock(&mutex_);
  Know(worker, now_());
}

void Cost::OnWorkerRemoved(Worker& worker) {
  const MutexLock lock(&mutex_);
  const auto it = known_.find(worker.number());
  if (it == known_.end()) return;
  EndTold(&it->second);
  index_->RemoveWorker(it->second.place);
  known_.erase(it);
}

// One that tells what it has does so anew.
void Cost::OnWorkerLost(Worker& worker) {
  const MutexLock lock(&mutex_);
  const auto it = known_.find(worker.number());
  if (it == known_.end()) return;
  EndTold(&it->second);
  index_->RemoveWorker(it->second.place);
  known_.erase(it);
  Know(worker, now_());
}

size_t Cost::index_bytes() const {
  const MutexLock lock(&mutex_);
  return index_->bytes() + (told_ == nullptr ? 0
                                             : told_->blocks.bytes() + told_->links.bytes() +
                                                   told_->held * WorkerBlocks::kBytesOfBlock);
}

}  // namespace portico::router
