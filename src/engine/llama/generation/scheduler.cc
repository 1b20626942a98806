#include "engine/llama/generation/scheduler.h"

#include <algorithm>

namespace portico::llama {
namespace {

// Room that every running request should have left when another is admitted, so that it is not
// retracted at once.
constexpr int32_t kGrowth = 32;
// Sharing this much is worth a wait, or a quarter of what would have to be computed.
constexpr int32_t kMuchShared = 64;

int32_t SizeOf(std::span<const TokenId> tokens) { return static_cast<int32_t>(tokens.size()); }

bool WantsRows(const ScheduledRequest& request) {
  return request.next_logprob < SizeOf(*request.prompt);
}

// How much of the cache may serve: the last token is always computed, for its logits, and so is all
// from the first position whose log-probability is wanted.
int32_t MatchLimit(const ScheduledRequest& request) {
  const int32_t size = SizeOf(request.known());
  return std::min(size - 1, WantsRows(request) ? request.next_logprob - 1 : size);
}

int32_t CommonPrefix(const ScheduledRequest& a, const ScheduledRequest& b) {
  if (a.prompt == b.prompt && a.tokens.size() <= a.prompt->size()) return SizeOf(*a.prompt);
  const auto x = a.known();
  const auto y = b.known();
  return static_cast<int32_t>(std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first -
                              x.begin());
}

int32_t GrowthOf(const ScheduledRequest& request) {
  const int32_t drawn = SizeOf(request.known()) - SizeOf(*request.prompt);
  return std::clamp(request.max_new_tokens - drawn, 0, kGrowth);
}

// Prompts' tokens in a step beside requests that decode: the prompts' share of the requests, at
// least a quarter. A larger step costs less a token, and delays more who decodes.
int32_t PromptTokens(int32_t most, int64_t prompts, int64_t decoding) {
  if (decoding == 0 || prompts == 0) return most;
  const int64_t share = most * prompts / (prompts + decoding);
  return std::max(static_cast<int32_t>(share), std::max(most / 4, 1));
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, KvCache* cache)
    : options_(options), cache_(cache) {}

void Scheduler::Add(std::unique_ptr<ScheduledRequest> request) {
  waiting_.push_back(std::move(request));
}

Step Scheduler::Next() {
  Admit();
  Step step;
  PlanDecodes(&step);
  PlanPrefills(&step);
  // Prompts may hold all cells between them so that none can go on: the youngest makes room.
  while (step.chunks.empty() && step.too_long.empty() && !running_.empty()) {
    if (!Retract(&step)) break;
    PlanPrefills(&step);
  }
  return step;
}

void Scheduler::Admit() {
  int32_t passed_over = 0;
  for (size_t i = 0; i < waiting_.size() && running() < options_.max_running;) {
    ScheduledRequest& request = *waiting_[i];
    const KvCache::Lookup found = cache_->Find(request.known(), MatchLimit(request));
    if (WorthWaiting(request, found)) {
      if (++passed_over >= options_.max_running) break;
      ++i;
      continue;
    }
    if (!Fits(request, found)) break;
    Start(std::move(waiting_[i]));
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
  }
}

bool Scheduler::Fits(const ScheduledRequest& request, const KvCache::Lookup& found) const {
  if (running_.empty()) return true;  // alone it may have all there is
  int64_t needed = SizeOf(request.known()) - found.length + found.unpinned + GrowthOf(request);
  for (const auto& other : running_) needed += other->pending() + GrowthOf(*other);
  return needed <= cache_->available();
}

bool Scheduler::WorthWaiting(const ScheduledRequest& request, const KvCache::Lookup& found) const {
  if (!cache_->sharing()) return false;
  const int32_t limit = MatchLimit(request);
  const int32_t missing = SizeOf(request.known()) - found.length;
  return std::any_of(running_.begin(), running_.end(), [&](const auto& other) {
    if (other->pending() <= 1) return false;
    const int32_t gain = std::min(CommonPrefix(request, *other), limit) - found.length;
    return gain > 0 && (gain >= kMuchShared || gain >= missing / 4);
  });
}

void Scheduler::Start(std::unique_ptr<ScheduledRequest> request) {
  ScheduledRequest& r = *request;
  r.branch = cache_->Open(r.known(), MatchLimit(r));
  if (r.tokens.empty()) r.tokens = *r.prompt;
  if (r.cached_tokens < 0) {
    r.cached_tokens = r.branch.length;
    prompt_tokens_ += r.prompt->size();
    cached_tokens_ += static_cast<uint64_t>(r.branch.length);
  }
  if (r.admission > 0) --retracted_;
  r.admission = ++admissions_;
  running_.push_back(std::move(request));
}

void Scheduler::PlanDecodes(Step* step) {
  const auto decoding = [](const auto& request) { return request->decoding(); };
  while (!cache_->Reserve(std::count_if(running_.begin(), running_.end(), decoding))) {
    if (!Retract(step)) return;
  }
  for (const auto& request : running_) {
    if (request->decoding()) Take(request.get(), 1, step);
  }
}

void Scheduler::PlanPrefills(Step* step) {
  auto behind = std::count_if(running_.begin(), running_.end(),
                              [](const auto& r) { return r->pending() > 0 && !r->decoding(); });
  int32_t budget =
      PromptTokens(options_.prefill_tokens, behind, static_cast<int64_t>(step->chunks.size()));
  int32_t rows = options_.max_rows;
  for (const Chunk& chunk : step->chunks) rows -= chunk.rows;
  for (const auto& request : running_) {
    if (request->pending() == 0 || request->decoding()) continue;
    --behind;
    const int32_t left_to_others = behind > 0 ? budget / 4 : 0;
    int64_t count =
        std::min<int64_t>({request->pending(), budget - left_to_others, cache_->available()});
    // Every token from the one before next_logprob on gives a row, and the last one does.
    const int32_t rowless = WantsRows(*request)
                                ? std::max(request->next_logprob - 1 - request->computed(), 0)
                                : request->pending() - 1;
    count = std::min<int64_t>(count, rowless + rows);
    if (count <= 0 || !cache_->Reserve(count)) continue;
    Take(request.get(), static_cast<int32_t>(count), step);
    budget -= static_cast<int32_t>(count);
    rows -= step->chunks.back().rows;
  }
}

void Scheduler::Take(ScheduledRequest* request, int32_t count, Step* step) {
  Chunk chunk;
  chunk.request = request;
  chunk.begin = request->computed();
  chunk.count = count;
  chunk.last = count == request->pending();
  const int32_t end = chunk.begin + count;
  if (WantsRows(*request)) {
    chunk.rows = std::clamp(end - (request->next_logprob - 1), 0, count);
  }
  if (chunk.last) chunk.rows = std::max(chunk.rows, 1);
  cache_->Grow(&request->branch, count);
  step->chunks.push_back(chunk);
}

// Sends the youngest running request back to the queue, while the step is still empty. False: it
// is the only one and cannot go on even alone.
bool Scheduler::Retract(Step* step) {
  if (running_.size() == 1) {
    step->too_long.push_back(running_.back().get());
    return false;
  }
  RetractYoungest();
  return true;
}

void Scheduler::RetractYoungest() {
  std::unique_ptr<ScheduledRequest> youngest = std::move(running_.back());
  running_.pop_back();
  cache_->Close(youngest->tokens, /*keep=*/true, &youngest->branch);
  ++youngest->retractions;
  waiting_.push_front(std::move(youngest));
  ++retractions_;
  ++retracted_;
}

void Scheduler::RetractAll() {
  while (!running_.empty()) RetractYoungest();
}

void Scheduler::Computed(const Step& step) {
  for (const Chunk& chunk : step.chunks) {
    if (!chunk.request->decoding() && chunk.request->computed() <= SizeOf(*chunk.request->prompt)) {
      cache_->Publish(chunk.request->tokens, &chunk.request->branch);
    }
  }
}

void Scheduler::Undo(const Step& step) {
  for (const Chunk& chunk : step.chunks) cache_->Shrink(&chunk.request->branch, chunk.count);
}

std::unique_ptr<ScheduledRequest> Scheduler::Finish(StreamId stream, bool keep) {
  const auto is_it = [&](const auto& request) { return request->stream == stream; };
  std::unique_ptr<ScheduledRequest> request;
  if (const auto it = std::find_if(running_.begin(), running_.end(), is_it); it != running_.end()) {
    request = std::move(*it);
    running_.erase(it);
    cache_->Close(request->tokens, keep, &request->branch);
  } else if (const auto w = std::find_if(waiting_.begin(), waiting_.end(), is_it);
             w != waiting_.end()) {
    request = std::move(*w);
    waiting_.erase(w);
    if (request->admission > 0) --retracted_;
  }
  return request;
}

const ScheduledRequest* Scheduler::Any() const {
  if (!running_.empty()) return running_.back().get();
  return waiting_.empty() ? nullptr : waiting_.front().get();
}

}  // namespace portico::llama
