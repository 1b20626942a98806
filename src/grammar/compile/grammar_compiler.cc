#include "grammar/compile/grammar_compiler.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "base/mutex.h"
#include "grammar/mask/token_table.h"

namespace portico::grammar {
namespace {

// What an entry takes beside its grammar and its text.
constexpr size_t kEntryBytes = 512;

Status NobodyWaits() { return Error(StatusCode::kCancelled, "nobody waits for this grammar"); }

}  // namespace

GrammarCompiler::GrammarCompiler(std::unique_ptr<CompileProcess> process,
                                 const GrammarCompilerOptions& options, Registry* metrics)
    : process_(std::move(process), options.restart,
               metrics == nullptr
                   ? nullptr
                   : &metrics->AddCounter("portico_grammar_compiler_restarts_total",
                                          "Restarts of the process that compiles grammars.", {})),
      options_(options) {
  if (metrics != nullptr) {
    const auto counter = [metrics](std::string_view result) {
      return &metrics->AddCounter("portico_grammars_total",
                                  "Grammars asked for, by what came of it.",
                                  {{"result", std::string(result)}});
    };
    hits_ = counter("cached");
    compiled_ = counter("compiled");
    refused_ = counter("refused");
    overloaded_ = counter("overloaded");
    unwanted_ = counter("unwanted");
    seconds_ = &metrics->AddHistogram("portico_grammar_compile_seconds",
                                      "Time that compiling a grammar took.",
                                      {0.01, 0.03, 0.1, 0.3, 1, 3, 6});
  }
  for (int32_t i = 0; i < options.threads; ++i) threads_.emplace_back([this] { Run(); });
}

GrammarCompiler::~GrammarCompiler() { Stop(); }

void GrammarCompiler::Stop() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.NotifyAll();
  process_.End();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  std::deque<std::shared_ptr<Entry>> left;
  {
    const MutexLock lock(&mutex_);
    left.swap(queue_);
  }
  for (const std::shared_ptr<Entry>& entry : left) {
    Finish(entry, Error(StatusCode::kUnavailable, "the server stops"));
  }
}

StatusOr<std::shared_ptr<const GrammarModel>> GrammarCompiler::AddModel(
    const Vocabulary& vocabulary) {
  PORTICO_ASSIGN_OR_RETURN(const int32_t name, process_.AddVocabulary(vocabulary));
  try {
    auto tokens = std::make_shared<const TokenTable>(MakeTokenizerInfo(vocabulary));
    return std::make_shared<const GrammarModel>(GrammarModel{name, std::move(tokens)});
  } catch (const std::exception& e) {
    return Error(StatusCode::kInternal, e.what());
  }
}

bool GrammarCompiler::IsUnwanted(const Entry& entry) {
  return std::all_of(entry.waiting.begin(), entry.waiting.end(), [](const Waiter& waiter) {
    return waiter.wanted.has_value() && waiter.wanted->expired();
  });
}

std::vector<GrammarCompiler::Waiter> GrammarCompiler::DropUnwanted() {
  std::vector<Waiter> gone;
  std::deque<std::shared_ptr<Entry>> wanted;
  for (std::shared_ptr<Entry>& entry : queue_) {
    if (!IsUnwanted(*entry)) {
      wanted.push_back(std::move(entry));
      continue;
    }
    known_.erase(entry->key);
    std::move(entry->waiting.begin(), entry->waiting.end(), std::back_inserter(gone));
    if (unwanted_ != nullptr) unwanted_->Add();
  }
  queue_ = std::move(wanted);
  return gone;
}

void GrammarCompiler::Compile(const GrammarModel& model, GrammarText text, Done done,
                              Wanted wanted) {
  std::string key = fmt::format("{}/{}", model.vocabulary, text.Key());
  std::shared_ptr<Entry> known;
  Status refused;
  std::vector<Waiter> gone;
  {
    const MutexLock lock(&mutex_);
    if (queue_.size() >= options_.max_queued) gone = DropUnwanted();
    const auto found = known_.find(key);
    if (found != known_.end()) {
      known = found->second.entry;
      if (hits_ != nullptr) hits_->Add();
      if (!known->done) {
        known->waiting.push_back({std::move(done), std::move(wanted)});
        known = nullptr;
      } else {
        used_.splice(used_.begin(), used_, found->second.at);
      }
    } else if (stopping_) {
      refused = Error(StatusCode::kUnavailable, "the server stops");
    } else if (queue_.size() >= options_.max_queued) {
      if (overloaded_ != nullptr) overloaded_->Add();
      refused = Error(StatusCode::kResourceExhausted, "too many grammars wait to be compiled");
    } else {
      auto entry = std::make_shared<Entry>();
      entry->key = std::move(key);
      entry->text = std::move(text);
      entry->vocabulary = model.vocabulary;
      entry->tokens = model.tokens;
      entry->since = Clock::now();
      entry->waiting.push_back({std::move(done), std::move(wanted)});
      known_.emplace(entry->key, Place{entry, {}});
      queue_.push_back(std::move(entry));
      wake_.NotifyOne();
    }
  }
  for (Waiter& waiter : gone) waiter.done(NobodyWaits());
  if (!refused.ok()) return done(refused);
  if (known != nullptr) done(known->result);  // immutable from now on
}

void GrammarCompiler::Run() {
  pthread_setname_np(pthread_self(), "grammar");
  for (;;) {
    std::shared_ptr<Entry> entry;
    std::vector<Waiter> gone;
    {
      const MutexLock lock(&mutex_);
      while (!stopping_ && queue_.empty()) wake_.Wait(&mutex_);
      if (stopping_) return;
      gone = DropUnwanted();
      if (!queue_.empty()) {
        entry = std::move(queue_.front());
        queue_.pop_front();
      }
    }
    for (Waiter& waiter : gone) waiter.done(NobodyWaits());
    if (entry == nullptr) continue;
    const auto start = Clock::now();
    if (start - entry->since > options_.max_wait) {
      if (overloaded_ != nullptr) overloaded_->Add();
      Finish(entry, Error(StatusCode::kResourceExhausted, "too many grammars wait to be compiled"));
      continue;
    }
    Compiled result = CompileNow(*entry);
    if (seconds_ != nullptr) {
      seconds_->Observe(std::chrono::duration<double>(Clock::now() - start).count());
      (result.ok() ? compiled_ : refused_)->Add();
    }
    Finish(entry, std::move(result));
  }
}

GrammarCompiler::Compiled GrammarCompiler::CompileNow(const Entry& entry) {
  PORTICO_ASSIGN_OR_RETURN(const std::string bytes,
                           process_.Compile(entry.vocabulary, entry.text, options_.limits));
  return CompiledGrammar::Read(bytes, entry.tokens);
}

// Refusals are remembered too, but for those that another time may not meet.
void GrammarCompiler::Finish(const std::shared_ptr<Entry>& entry, Compiled result) {
  std::vector<Waiter> waiting;
  {
    const MutexLock lock(&mutex_);
    entry->result = std::move(result);
    entry->done = true;
    waiting.swap(entry->waiting);
    const bool keep =
        entry->result.ok() || entry->result.status().code() == StatusCode::kInvalidArgument;
    if (keep) {
      entry->bytes = kEntryBytes + 2 * entry->key.size() +
                     (entry->result.ok() ? (*entry->result)->bytes() : 0);
      entry->text.text.clear();
      cached_bytes_ += entry->bytes;
      used_.push_front(entry);
      known_[entry->key].at = used_.begin();
      Evict();
    } else {
      known_.erase(entry->key);
    }
  }
  for (Waiter& waiter : waiting) waiter.done(entry->result);
}

void GrammarCompiler::Evict() {
  while (cached_bytes_ > options_.cache_bytes && !used_.empty()) {
    cached_bytes_ -= used_.back()->bytes;
    known_.erase(used_.back()->key);
    used_.pop_back();
  }
}

GrammarCompiler::Load GrammarCompiler::load() const {
  const MutexLock lock(&mutex_);
  return {queue_.size(), cached_bytes_};
}

}  // namespace portico::grammar
