// Parts as values of messages: [kind, ...], of each kind always so many.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "message/msgpack/reader.h"
#include "pipeline/blob.h"
#include "pipeline/part.h"
#include "pipeline/process/message_writer.h"
#include "pipeline/request.h"

namespace portico::pipeline {

// Of a stage, and of what else a message names.
inline constexpr size_t kMaxMessageName = 256;

// What readers of messages say of bytes that are none: INVALID_ARGUMENT.
Status NoMessage(std::string_view what);

// UNAVAILABLE where no shared memory is left.
Status WritePart(const Part& part, MessageWriter& frame);
// The sound of a reference as an audio part, `index` its clip.
Status WriteReference(size_t index, const ReferenceSound& sound, MessageWriter& frame);

// `blob` is what came with the message; null: nothing.
StatusOr<Part> ReadPart(msgpack::Reader& reader, std::shared_ptr<const Blob> blob);

}  // namespace portico::pipeline
