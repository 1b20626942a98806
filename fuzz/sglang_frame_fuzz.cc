// Any bytes as a frame of SGLang's scheduler: refused, or rows whose values can be read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "message/sglang/decode.h"
#include "message/sglang/kv_events.h"
#include "message/sglang/outputs.h"

namespace {

using portico::sglang::Column;

struct Codec {
  std::shared_ptr<const portico::sglang::Schema> schema;
  portico::sglang::OutputReader tokens;
  portico::sglang::OutputReader embeddings;
};

const Codec& TheCodec() {
  static const Codec codec = [] {
    std::ifstream file(PORTICO_SOURCE_DIR "/tests/sglang/manifest-0.5.23.json");
    std::stringstream text;
    text << file.rdbuf();
    Codec made;
    made.schema = *portico::sglang::Schema::Parse(*portico::Json::Parse(text.str()));
    made.tokens = *portico::sglang::OutputReader::Make(*made.schema, "BatchTokenIDOutput");
    made.embeddings = *portico::sglang::OutputReader::Make(*made.schema, "BatchEmbeddingOutput");
    return made;
  }();
  return codec;
}

void ReadRow(const portico::sglang::OutputBatch& batch, size_t row) {
  portico::sglang::FinishInfo finish;
  absl::InlinedVector<portico::TokenId, 4> ids;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::vector<float>> float_rows;
  std::vector<std::vector<int64_t>> int_rows;
  std::vector<portico::sglang::OutputBatch::VersionSpan> spans;
  std::vector<std::pair<int64_t, float>> sparse;
  int64_t number = 0;
  portico::sglang::OutputBatch::CachedTokens cached;
  batch.Finish(row, &finish);
  batch.Ids(row, &ids);
  batch.CachedDetails(row, &cached);
  batch.WeightVersions(row, &spans);
  batch.Embedding(row, &floats, &sparse);
  for (int i = 0; i < static_cast<int>(Column::kCount); ++i) {
    const auto column = static_cast<Column>(i);
    batch.Int(column, row, &number);
    batch.Floats(column, row, &floats);
    batch.Ints(column, row, &ints);
    batch.FloatRows(column, row, &float_rows);
    batch.IntRows(column, row, &int_rows);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view frame(reinterpret_cast<const char*>(data), size);
  portico::sglang::OutputBatch batch;
  for (const auto* reader : {&TheCodec().tokens, &TheCodec().embeddings}) {
    if (!reader->Read(frame, &batch)) continue;
    for (size_t row = 0; row < batch.rows(); ++row) ReadRow(batch, row);
  }
  (void)portico::sglang::DecodeMessage(*TheCodec().schema, frame);
  portico::KvEventBatch events;
  (void)portico::sglang::ReadKvEvents(frame, &events);
  return 0;
}
