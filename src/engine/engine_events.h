// What engines that compute here tell a profile. Each costs a relaxed load while none runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/events/recorder.h"
#include "message/generate.h"

namespace portico::engine_events {

using events::Event;
using events::EventGroup;

// The request has come to the engine's thread and waits for its first step.
inline void Queued(StreamId stream, int64_t prompt_tokens) {
  events::Record(EventGroup::kEngineQueued, events::StreamKey(stream), events::kEngine,
                 {.peer = events::kFrontend, .a = prompt_tokens});
}

// The first step that computes of its prompt begins.
inline void PrefillStarts(StreamId stream, int64_t prompt_tokens, int64_t cached_tokens) {
  events::Record(Event::kSchedulerPrefillStart, events::StreamKey(stream), events::kEngine,
                 {.a = prompt_tokens, .b = cached_tokens});
}

// Its prompt has been computed: the first token is there.
inline void First(StreamId stream) {
  events::Record(EventGroup::kEngineFirst, events::StreamKey(stream), events::kEngine,
                 {.peer = events::kFrontend, .a = 0});
}

inline void Ended(StreamId stream) {
  events::Record(Event::kStageComplete, events::StreamKey(stream), events::kEngine, {.a = true});
}

inline void Stepped(size_t batch, Duration took) {
  events::Record(Event::kStep, events::kNoKey, events::kEngine,
                 {.a = static_cast<int64_t>(batch), .b = took.count()});
}

}  // namespace portico::engine_events
