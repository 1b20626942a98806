#include "base/events/event.h"

#include <array>
#include <cstddef>

namespace portico::events {
namespace {

constexpr auto kCount = static_cast<size_t>(Event::kCount);

constexpr std::array<EventSpec, kCount> kSpecs = [] {
  std::array<EventSpec, kCount> specs{};
  const auto set = [&specs](Event event, const EventSpec& spec) {
    specs[static_cast<size_t>(event)] = spec;
  };
  set(Event::kRequestAdmission, {.name = "request_admission", .peer = "entry_stage"});
  set(Event::kTerminalResponse,
      {.name = "terminal_response", .peer = "from_stage", .a = "success", .a_is_bool = true});
  set(Event::kCoordinatorStreamReceived, {.name = "coordinator_stream_received",
                                          .peer = "from_stage",
                                          .tag = "modality",
                                          .a = "chunk_id"});
  set(Event::kStageInputReceived, {.name = "stage_input_received", .peer = "from_stage"});
  set(Event::kStageAggregateReady, {.name = "stage_aggregate_ready"});
  set(Event::kStageDispatch, {.name = "stage_dispatch"});
  set(Event::kStageComplete,
      {.name = "stage_complete", .peer = "next", .a = "terminal", .a_is_bool = true});
  set(Event::kStageHopSent, {.name = "stage_hop_sent", .peer = "to_stage"});
  set(Event::kStageHopFailed, {.name = "stage_hop_failed", .peer = "to_stage"});
  set(Event::kStageFirstStreamChunkSent, {.name = "stage_first_stream_chunk_sent",
                                          .peer = "to_stage",
                                          .tag = "modality",
                                          .a = "chunk_id"});
  set(Event::kStageStreamChunkSent,
      {.name = "stage_stream_chunk_sent", .peer = "to_stage", .tag = "modality", .a = "chunk_id"});
  set(Event::kStageStreamChunkReceived, {.name = "stage_stream_chunk_received",
                                         .peer = "from_stage",
                                         .tag = "modality",
                                         .a = "chunk_id"});
  set(Event::kSocketReceived, {.name = "socket_received", .a = "body_bytes"});
  set(Event::kPreprocessStart, {.name = "preprocess_start"});
  set(Event::kPreprocessEnd, {.name = "preprocess_end"});
  set(Event::kRenderStart, {.name = "render_start"});
  set(Event::kRenderEnd, {.name = "render_end", .a = "bytes"});
  set(Event::kTokenizeStart, {.name = "tokenize_start"});
  set(Event::kTokenizeEnd, {.name = "tokenize_end", .a = "tokens"});
  set(Event::kDetokenizeStart, {.name = "detokenize_start", .a = "tokens"});
  set(Event::kDetokenizeEnd, {.name = "detokenize_end"});
  set(Event::kWriteStart, {.name = "write_start", .a = "status"});
  set(Event::kWriteEnd, {.name = "write_end", .a = "bytes"});
  set(Event::kSchedulerQueueEnter, {.name = "scheduler_queue_enter", .a = "prompt_tokens"});
  set(Event::kSchedulerPrefillStart,
      {.name = "scheduler_prefill_start", .a = "prompt_tokens", .b = "cached_tokens"});
  set(Event::kSchedulerPrefillEnd, {.name = "scheduler_prefill_end"});
  set(Event::kSchedulerFirstEmit, {.name = "scheduler_first_emit"});
  set(Event::kStep, {.name = "step", .a = "batch_size", .b = "duration_ns", .of_request = false});
  set(Event::kDeliver, {.name = "deliver", .a = "deltas", .b = "duration_ns", .of_request = false});
  return specs;
}();

constexpr GroupedEvent kEngineQueued[] = {{Event::kStageInputReceived},
                                          {Event::kSchedulerQueueEnter}};
constexpr GroupedEvent kEngineFirst[] = {{Event::kSchedulerPrefillEnd},
                                         {Event::kSchedulerFirstEmit},
                                         {Event::kStageFirstStreamChunkSent},
                                         {Event::kStageStreamChunkSent}};
constexpr GroupedEvent kFrontendReceived[] = {
    {.event = Event::kStageStreamChunkReceived, .first_chunk = true}, {Event::kDetokenizeStart}};

}  // namespace

const EventSpec& SpecOf(Event event) { return kSpecs[static_cast<size_t>(event)]; }

std::span<const GroupedEvent> EventsOf(EventGroup group) {
  switch (group) {
    case EventGroup::kEngineQueued:
      return kEngineQueued;
    case EventGroup::kEngineFirst:
      return kEngineFirst;
    case EventGroup::kFrontendReceived:
      return kFrontendReceived;
    case EventGroup::kCount:
      break;
  }
  return {};
}

}  // namespace portico::events
