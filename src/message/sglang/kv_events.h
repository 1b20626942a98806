// What SGLang's and vLLM's schedulers publish of their prefix caches (--kv-events-config).
#pragma once

#include <cstddef>
#include <string_view>

#include "message/kv_events.h"

namespace portico::sglang {

// Appends the events of one message: [timestamp, events, rank?] or a map of these, whose events are maps with their
// class's name as "type", or in older releases arrays that begin with it. False where it is malformed; events of a kind
// that is not known are left out and added to *unknown.
//
// Left out too, with what builds on them: blocks that their tokens alone do not name (adapters by name, cache salts, media,
// speculation's pairs of tokens), what other instances hold, and vLLM's cache groups but the first.
bool ReadKvEvents(std::string_view message, KvEventBatch* batch, size_t* unknown = nullptr);

}  // namespace portico::sglang
