// All that reads and writes the wire of one release, bound to its layout at start.
#pragma once

#include <memory>

#include "message/sglang/decode.h"
#include "message/sglang/encode.h"
#include "message/sglang/outputs.h"
#include "message/sglang/requests.h"

namespace portico::sglang {

// Immutable; any thread.
struct Codec {
  std::shared_ptr<const Schema> schema;
  std::unique_ptr<RequestEncoder> requests;
  OutputReader tokens;
  OutputReader embeddings;

  // Refuses a package whose layout Portico does not know, with the names of the fields.
  static StatusOr<std::shared_ptr<const Codec>> Make(const Json& manifest) {
    auto codec = std::make_shared<Codec>();
    PORTICO_ASSIGN_OR_RETURN(codec->schema, Schema::Parse(manifest));
    PORTICO_ASSIGN_OR_RETURN(codec->requests, RequestEncoder::Make(*codec->schema));
    PORTICO_ASSIGN_OR_RETURN(codec->tokens,
                             OutputReader::Make(*codec->schema, "BatchTokenIDOutput"));
    PORTICO_ASSIGN_OR_RETURN(codec->embeddings,
                             OutputReader::Make(*codec->schema, "BatchEmbeddingOutput"));
    return std::shared_ptr<const Codec>(std::move(codec));
  }
};

}  // namespace portico::sglang
