// The events of a profile: what they are called, and what their metadata is called. The names that
// sglang-omni has are its own, so that its report reads our files (docs/profiling.md).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace portico::events {

enum class Event : uint16_t {
  // The coordinator's, or the gateway's.
  kRequestAdmission,
  kTerminalResponse,
  kCoordinatorStreamReceived,
  // A stage's.
  kStageInputReceived,
  kStageAggregateReady,
  kStageDispatch,
  kStageComplete,
  kStageHopSent,
  kStageHopFailed,
  kStageFirstStreamChunkSent,
  kStageStreamChunkSent,
  kStageStreamChunkReceived,
  // The front of a model server.
  kSocketReceived,
  kPreprocessStart,
  kPreprocessEnd,
  kRenderStart,
  kRenderEnd,
  kTokenizeStart,
  kTokenizeEnd,
  kDetokenizeStart,
  kDetokenizeEnd,
  kWriteStart,
  kWriteEnd,
  // An engine's.
  kSchedulerQueueEnter,
  kSchedulerPrefillStart,
  kSchedulerPrefillEnd,
  kSchedulerFirstEmit,
  // Of no request: what a thread did, with how long it took. In a file of their own.
  kStep,
  kDeliver,
  kCount
};

// What an event says beside its request, stage and time. A name is empty where it says nothing.
struct EventSpec {
  std::string_view name;
  std::string_view peer{};  // metadata that names a stage
  std::string_view tag{};   // metadata that is a word
  std::string_view a{};     // metadata that is a number, or a boolean …
  std::string_view b{};
  bool a_is_bool = false;  // … here
  bool of_request = true;
};

const EventSpec& SpecOf(Event event);

// Events of one moment, which are recorded as one and become a line each.
enum class EventGroup : uint16_t {
  kEngineQueued,      // an engine has a request and lets it wait; peer: from where, a: its tokens
  kEngineFirst,       // its first token is there; peer: who gets it, a: 0
  kFrontendReceived,  // that token has come; peer: from where, a: how many came with it
  kCount
};

struct GroupedEvent {
  Event event{};
  bool first_chunk = false;  // its number is 0 instead of the group's
};

// Each says of the group's details what its own spec has a name for.
std::span<const GroupedEvent> EventsOf(EventGroup group);

}  // namespace portico::events
