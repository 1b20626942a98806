// What comes from the scheduler: outputs of its steps to deltas, and the rest to whom it belongs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "engine/sglang/link/scheduler_link.h"

namespace portico::sglang {
namespace {

// The scheduler's HTTP statuses as ours.
Status ErrorOf(const FinishInfo& info) {
  StatusCode code = StatusCode::kInternal;
  switch (info.status_code) {
    case 400:
    case 413:
    case 422:
      code = StatusCode::kInvalidArgument;
      break;
    case 429:
      code = StatusCode::kResourceExhausted;
      break;
    case 503:
      code = StatusCode::kUnavailable;
      break;
    case 504:
      code = StatusCode::kDeadlineExceeded;
      break;
    default:
      break;
  }
  return Error(code, info.message.empty() ? "the engine refused the request" : info.message);
}

// Not inlined: g++ 12 takes the empty tokens of a delta that it sees being moved for uninitialized memory.
[[gnu::noinline]] TokenDelta LastDelta(const SchedulerLink::Stream& stream, FinishReason reason,
                                       Status error) {
  TokenDelta delta;
  delta.stream = stream.id;
  delta.finish = reason;
  delta.usage = stream.usage;
  if (reason == FinishReason::kError) delta.error = std::move(error);
  return delta;
}

// Of the prompt. Releases that do not count them have no such columns.
void ReadMediaTokens(const OutputBatch& batch, size_t row, TokenUsage* usage) {
  constexpr Column kColumns[kMediaKinds] = {Column::kImageTokens, Column::kVideoTokens,
                                            Column::kAudioTokens};
  for (size_t i = 0; i < kMediaKinds; ++i) {
    int64_t tokens = 0;
    if (!batch.Int(kColumns[i], row, &tokens)) continue;
    usage->media_tokens[i] = static_cast<int32_t>(std::clamp<int64_t>(tokens, 0, INT32_MAX));
  }
}

Status Malformed() {
  return Error(StatusCode::kInternal, "the engine sent an output that cannot be read");
}

// Pairs of parallel columns; false where their lengths differ.
bool Pair(const std::vector<float>& values, const std::vector<int64_t>& ids,
          std::vector<TokenLogprob>* out) {
  if (values.size() != ids.size()) return false;
  for (size_t i = 0; i < ids.size(); ++i) {
    out->push_back({static_cast<TokenId>(ids[i]), values[i]});
  }
  return true;
}

struct LogprobColumns {
  Column values;
  Column ids;
  Column top;
  Column top_ids;
  Column asked;
  Column asked_ids;
};
constexpr LogprobColumns kOutput{Column::kOutputLogprobs, Column::kOutputLogprobIds,
                                 Column::kOutputTop,      Column::kOutputTopIds,
                                 Column::kOutputAsked,    Column::kOutputAskedIds};
constexpr LogprobColumns kInput{Column::kInputLogprobs, Column::kInputLogprobIds,
                                Column::kInputTop,      Column::kInputTopIds,
                                Column::kInputAsked,    Column::kInputAskedIds};

bool ReadPositions(const OutputBatch& batch, size_t row, const LogprobColumns& columns,
                   std::vector<PositionLogprobs>* out) {
  std::vector<float> values;
  std::vector<int64_t> ids;
  std::vector<std::vector<float>> rows;
  std::vector<std::vector<int64_t>> id_rows;
  if (!batch.Floats(columns.values, row, &values) || !batch.Ints(columns.ids, row, &ids) ||
      values.size() != ids.size()) {
    return false;
  }
  out->resize(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    (*out)[i].chosen = {static_cast<TokenId>(ids[i]), values[i]};
  }
  const auto fill = [&](Column value_column, Column id_column, auto member) {
    if (!batch.FloatRows(value_column, row, &rows) || !batch.IntRows(id_column, row, &id_rows) ||
        rows.size() != id_rows.size()) {
      return false;
    }
    for (size_t i = 0; i < std::min(rows.size(), out->size()); ++i) {
      if (!Pair(rows[i], id_rows[i], &((*out)[i].*member))) return false;
    }
    return true;
  };
  return fill(columns.top, columns.top_ids, &PositionLogprobs::top) &&
         fill(columns.asked, columns.asked_ids, &PositionLogprobs::of_ids);
}

// Nothing where no draft was verified, or the package counts in another way.
std::optional<SpeculationCounts> ReadSpeculation(const OutputBatch& batch, size_t row,
                                                 int32_t draft_tokens) {
  SpeculationCounts counts;
  if (!batch.Int(Column::kVerifications, row, &counts.verifications) ||
      !batch.Int(Column::kCorrectDrafts, row, &counts.correct) || counts.verifications <= 0) {
    return std::nullopt;
  }
  counts.proposed = counts.verifications * std::max(draft_tokens - 1, 0);
  if (!batch.Int(Column::kCappedDrafts, row, &counts.capped)) counts.capped = 0;
  if (!batch.Ints(Column::kCorrectHistogram, row, &counts.correct_histogram)) {
    counts.correct_histogram.clear();
  }
  if (!batch.Ints(Column::kCapHistogram, row, &counts.cap_histogram)) counts.cap_histogram.clear();
  return counts;
}

}  // namespace

void SchedulerLink::OnFrame(std::string_view frame) {
  const std::string_view tag = PeekTag(frame);
  if (tag == "BatchTokenIDOutput") return OnTokens(frame);
  if (tag == "BatchEmbeddingOutput") return OnEmbeddings(frame);
  auto message = DecodeMessage(*codec_->schema, frame);
  if (!message.ok()) return BadFrame(frame, MessageOf(message.status()));
  if (message->tag == "AbortReq") return OnAborted(*message);
  OnReply(*std::move(message));
}

void SchedulerLink::OnTokens(std::string_view frame) {
  counters_->steps.fetch_add(1, std::memory_order_relaxed);
  const bool good = codec_->tokens.Read(frame, &batch_);
  if (!good) BadFrame(frame, "it is not laid out as the package says");
  for (size_t row = 0; row < batch_.rows(); ++row) {
    if (good) {
      OnTokenRow(batch_, row);
    } else if (Stream* stream = FindStream(batch_.rids()[row])) {
      End(stream, FinishReason::kError, Malformed());
    }
  }
}

void SchedulerLink::OnTokenRow(const OutputBatch& batch, size_t row) {
  Stream* stream = FindStream(batch.rids()[row]);
  if (stream == nullptr) return;  // ended here already
  if (stream->tokens == nullptr) return OnPrefixRow(batch, row, stream);
  FinishInfo finish;
  TokenDelta delta;
  delta.stream = stream->id;
  int64_t prompt = stream->usage.prompt_tokens;
  int64_t cached = stream->usage.cached_tokens;
  int64_t completion = stream->usage.completion_tokens;
  int64_t retractions = stream->usage.retractions;
  int64_t reasoning = 0;
  if (!batch.Finish(row, &finish) || !batch.Ids(row, &delta.tokens) ||
      !batch.Int(Column::kPromptTokens, row, &prompt) ||
      !batch.Int(Column::kCachedTokens, row, &cached) ||
      !batch.Int(Column::kCompletionTokens, row, &completion) ||
      !batch.Int(Column::kReasoningTokens, row, &reasoning) ||
      !batch.Int(Column::kRetractions, row, &retractions)) {
    BadFrame({}, "a row of an output");
    return End(stream, FinishReason::kError, Malformed());
  }
  if (finish.kind == FinishInfo::Kind::kAbort) {
    // Ids and counts of a request that the scheduler refuses are made up.
    if (finish.status_code != 0) return End(stream, FinishReason::kError, ErrorOf(finish));
    return End(stream, FinishReason::kAbort, OkStatus());
  }
  counters_->generated_tokens.fetch_add(delta.tokens.size(), std::memory_order_relaxed);
  if (stream->usage.prompt_tokens == 0) {
    ReadMediaTokens(batch, row, &stream->usage);
    counters_->prompt_tokens.fetch_add(static_cast<uint64_t>(prompt), std::memory_order_relaxed);
    counters_->cached_tokens.fetch_add(static_cast<uint64_t>(cached), std::memory_order_relaxed);
  }
  counters_->retractions.fetch_add(
      static_cast<uint64_t>(std::max<int64_t>(retractions - stream->usage.retractions, 0)),
      std::memory_order_relaxed);
  stream->usage.prompt_tokens = static_cast<int32_t>(prompt);
  stream->usage.cached_tokens = static_cast<int32_t>(cached);
  stream->usage.completion_tokens = static_cast<int32_t>(completion);
  stream->usage.retractions = static_cast<int32_t>(retractions);
  if (reasoning > 0) stream->usage.reasoning_tokens = static_cast<int32_t>(reasoning);
  delta.usage = stream->usage;
  if (stream->logprobs && !FillLogprobs(batch, row, *stream, &delta)) {
    BadFrame({}, "log-probabilities of an output");
    return End(stream, FinishReason::kError, Malformed());
  }
  FillExtras(batch, row, finish, *stream, &delta);
  switch (finish.kind) {
    case FinishInfo::Kind::kStop:
      delta.finish = FinishReason::kStop;
      if (finish.matched_token) delta.matched_token = static_cast<TokenId>(*finish.matched_token);
      break;
    case FinishInfo::Kind::kLength:
      delta.finish = FinishReason::kLength;
      break;
    default:
      if (delta.tokens.empty() && delta.prompt_logprobs.empty()) return;
      return token_box_.Add(stream->tokens, std::move(delta));
  }
  End(stream, std::move(delta));
}

// A token may come of it, which is nobody's.
void SchedulerLink::OnPrefixRow(const OutputBatch& batch, size_t row, Stream* stream) {
  if ((stream->id & kPrefixBit) == 0) return;
  FinishInfo finish;
  int64_t prompt = 0;
  int64_t cached = 0;
  if (!batch.Finish(row, &finish) || !batch.Int(Column::kPromptTokens, row, &prompt) ||
      !batch.Int(Column::kCachedTokens, row, &cached)) {
    BadFrame({}, "a row of an output");
    return End(stream, FinishReason::kError, Malformed());
  }
  if (finish.kind == FinishInfo::Kind::kNone) return;
  if (finish.kind == FinishInfo::Kind::kAbort) {
    if (finish.status_code != 0) return End(stream, FinishReason::kError, ErrorOf(finish));
    return End(stream, FinishReason::kAbort, OkStatus());
  }
  counters_->prompt_tokens.fetch_add(static_cast<uint64_t>(prompt), std::memory_order_relaxed);
  counters_->cached_tokens.fetch_add(static_cast<uint64_t>(cached), std::memory_order_relaxed);
  End(stream, FinishReason::kLength, OkStatus());
}

bool SchedulerLink::FillLogprobs(const OutputBatch& batch, size_t row, const Stream& stream,
                                 TokenDelta* delta) {
  if (!ReadPositions(batch, row, kOutput, &delta->logprobs)) return false;
  if (stream.prompt_logprobs_start < 0) return true;
  if (!ReadPositions(batch, row, kInput, &delta->prompt_logprobs)) return false;
  // The first position has no log-probability. Where it is the prompt's first token there is nothing to tell of it.
  if (stream.prompt_logprobs_start == 0 && !delta->prompt_logprobs.empty()) {
    delta->prompt_logprobs.erase(delta->prompt_logprobs.begin());
  }
  for (PositionLogprobs& position : delta->prompt_logprobs) {
    if (std::isnan(position.chosen.logprob)) position.chosen.logprob = 0;
  }
  return true;
}

void SchedulerLink::FillExtras(const OutputBatch& batch, size_t row, const FinishInfo& finish,
                               const Stream& stream, TokenDelta* delta) {
  const bool ends = finish.kind != FinishInfo::Kind::kNone;
  if (!ends && !stream.hidden_states) return;
  auto extras = std::make_unique<DeltaExtras>();
  if (stream.hidden_states) {
    std::vector<OutputBatch::HiddenStates> states;
    if (batch.Hidden(row, &states)) {
      for (OutputBatch::HiddenStates& state : states) {
        extras->hidden_states.push_back({state.is_prompt, std::move(state.rows)});
      }
    }
  }
  if (ends) {
    std::vector<OutputBatch::VersionSpan> spans;
    if (batch.WeightVersions(row, &spans)) {
      for (OutputBatch::VersionSpan& span : spans) {
        extras->weight_versions.push_back({std::move(span.version),
                                           static_cast<int32_t>(span.begin),
                                           static_cast<int32_t>(span.end)});
      }
    }
    int64_t rank = -1;
    if (batch.Int(Column::kDataParallelRanks, row, &rank)) {
      extras->data_parallel_rank = static_cast<int32_t>(rank);
    }
    OutputBatch::CachedTokens cached;
    if (batch.CachedDetails(row, &cached)) {
      extras->cached_on_device = cached.device;
      extras->cached_on_host = cached.host;
      extras->cached_in_storage = cached.storage;
      extras->storage_backend = std::move(cached.storage_backend);
    }
    if (draft_tokens_ > 0) extras->speculation = ReadSpeculation(batch, row, draft_tokens_);
    extras->matched_text = finish.matched_text;
  }
  if (ends || !extras->hidden_states.empty()) delta->extras = std::move(extras);
}

void SchedulerLink::OnEmbeddings(std::string_view frame) {
  counters_->steps.fetch_add(1, std::memory_order_relaxed);
  const bool good = codec_->embeddings.Read(frame, &batch_);
  if (!good) BadFrame(frame, "it is not laid out as the package says");
  for (size_t row = 0; row < batch_.rows(); ++row) {
    if (good) {
      OnEmbeddingRow(batch_, row);
    } else if (Stream* stream = FindStream(batch_.rids()[row])) {
      End(stream, FinishReason::kError, Malformed());
    }
  }
}

void SchedulerLink::OnEmbeddingRow(const OutputBatch& batch, size_t row) {
  Stream* stream = FindStream(batch.rids()[row]);
  if (stream == nullptr || stream->pooling == nullptr) return;
  FinishInfo finish;
  PoolingOutput output;
  output.stream = stream->id;
  SparseVector sparse;
  int64_t prompt = 0;
  if (!batch.Finish(row, &finish) || !batch.Int(Column::kPromptTokens, row, &prompt)) {
    BadFrame({}, "a row of an output");
    return End(stream, FinishReason::kError, Malformed());
  }
  if (finish.kind == FinishInfo::Kind::kAbort) {
    if (finish.status_code != 0) return End(stream, FinishReason::kError, ErrorOf(finish));
    return End(stream, FinishReason::kAbort, OkStatus());
  }
  if (!batch.Embedding(row, &output.values, &sparse)) {
    BadFrame({}, "an embedding");
    return End(stream, FinishReason::kError, Malformed());
  }
  if (batch.HasSparseEmbedding(row)) output.sparse = std::move(sparse);
  output.prompt_tokens = static_cast<int32_t>(prompt);
  counters_->prompt_tokens.fetch_add(static_cast<uint64_t>(prompt), std::memory_order_relaxed);
  if (on_stream_end_) on_stream_end_(*stream);
  live_.fetch_sub(1, std::memory_order_relaxed);
  pooling_box_.Add(stream->pooling, std::move(output));
  streams_.erase(StreamId(stream->id));
}

void SchedulerLink::End(Stream* stream, FinishReason reason, Status error) {
  End(stream, LastDelta(*stream, reason, std::move(error)));
}

// A request that ended while it was queued.
void SchedulerLink::OnAborted(const Message& message) {
  const Value* rid = message.fields.Find("rid");
  const auto* text = rid == nullptr ? nullptr : rid->As<std::string>();
  Stream* stream = text == nullptr ? nullptr : FindStream(*text);
  if (stream == nullptr) return;
  FinishInfo info;
  if (const Value* reason = message.fields.Find("finished_reason"); reason != nullptr) {
    const Value* code = reason->Find("status_code");
    const Value* words = reason->Find("message");
    if (code != nullptr && code->As<int64_t>() != nullptr) info.status_code = *code->As<int64_t>();
    if (words != nullptr && words->As<std::string>() != nullptr) {
      info.message = *words->As<std::string>();
    }
  }
  if (info.status_code != 0) return End(stream, FinishReason::kError, ErrorOf(info));
  End(stream, FinishReason::kAbort, OkStatus());
}

}  // namespace portico::sglang
