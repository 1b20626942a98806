// What the scheduler sends for requests: BatchTokenIDOutput and BatchEmbeddingOutput. Columns, one row a request. Rows
// are found in one pass and read where they lie, only those that are asked for: most columns are empty most of the time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "message/sampling.h"
#include "message/sglang/schema.h"

namespace portico::sglang {

enum class Column : uint8_t {
  kFinishedReasons,
  kOutputIds,
  kPromptTokens,
  kReasoningTokens,
  kCompletionTokens,
  kCachedTokens,
  kInputLogprobs,
  kInputLogprobIds,
  kOutputLogprobs,
  kOutputLogprobIds,
  kInputTop,
  kInputTopIds,
  kOutputTop,
  kOutputTopIds,
  kInputAsked,
  kInputAskedIds,
  kOutputAsked,
  kOutputAskedIds,
  kHiddenStates,
  kRetractions,
  kWeightVersions,
  kCachedDetails,
  kImageTokens,
  kVideoTokens,
  kAudioTokens,
  kDataParallelRanks,
  kVerifications,
  kCorrectDrafts,
  kCappedDrafts,
  kCorrectHistogram,
  kCapHistogram,
  kEmbeddings,
  kCount,
};

struct FinishInfo {
  enum class Kind : uint8_t { kNone, kStop, kLength, kAbort };
  Kind kind = Kind::kNone;
  std::optional<int64_t> matched_token;  // kStop: a stop token
  std::string matched_text;              // kStop: a stop string
  std::string message;                   // kAbort
  int64_t status_code = 0;               // kAbort: an HTTP status, or 0
};

// One frame. Refers to its bytes.
class OutputBatch {
 public:
  size_t rows() const { return rids_.size(); }
  const std::vector<std::string_view>& rids() const { return rids_; }

  // False where the value is malformed. A column that is nil, or a row of it, reads as nothing.
  bool Finish(size_t row, FinishInfo* info) const;
  bool Ids(size_t row, absl::InlinedVector<TokenId, 4>* ids) const;
  bool Int(Column column, size_t row, int64_t* value) const;  // untouched where there is none
  // Numbers of a row; nil ones are NaN.
  bool Floats(Column column, size_t row, std::vector<float>* values) const;
  bool Ints(Column column, size_t row, std::vector<int64_t>* values) const;
  // Rows of numbers; nil rows are empty.
  bool FloatRows(Column column, size_t row, std::vector<std::vector<float>>* values) const;
  bool IntRows(Column column, size_t row, std::vector<std::vector<int64_t>>* values) const;
  // Where the cached tokens of the prompt were.
  struct CachedTokens {
    int32_t device = -1;  // -1: it is not said
    int32_t host = -1;
    int32_t storage = -1;
    std::string storage_backend;
  };
  bool CachedDetails(size_t row, CachedTokens* cached) const;
  struct VersionSpan {
    std::string version;
    int64_t begin = 0;
    int64_t end = 0;
  };
  // All so far: of a prompt a list of rows, of a new token a row. With "last" one row.
  struct HiddenStates {
    bool is_prompt = false;
    std::vector<std::vector<float>> rows;
  };
  bool Hidden(size_t row, std::vector<HiddenStates>* states) const;
  bool WeightVersions(size_t row, std::vector<VersionSpan>* spans) const;
  // A dense vector, a sparse one by index, or a number.
  bool Embedding(size_t row, std::vector<float>* values,
                 std::vector<std::pair<int64_t, float>>* sparse) const;
  bool HasSparseEmbedding(size_t row) const;

 private:
  friend class OutputReader;
  // The encoded value, or empty.
  std::string_view Row(Column column, size_t row) const {
    const auto& rows = columns_[static_cast<size_t>(column)];
    return rows.empty() ? std::string_view() : rows[row];
  }

  std::vector<std::string_view> rids_;
  std::array<std::vector<std::string_view>, static_cast<size_t>(Column::kCount)> columns_;
};

// Immutable; any thread.
class OutputReader {
 public:
  // `message`: "BatchTokenIDOutput" or "BatchEmbeddingOutput". FAILED_PRECONDITION names the columns that Portico needs
  // and the package lacks or types in another way. The schema outlives the reader.
  static StatusOr<OutputReader> Make(const Schema& schema, std::string_view message);

  // False for a frame that is not this message or is malformed; `batch` then has the rids that could be read, and
  // nothing else of it may be used.
  bool Read(std::string_view frame, OutputBatch* batch) const;

 private:
  static constexpr int kSkip = -1;
  static constexpr int kRids = -2;

  std::string tag_;
  size_t min_length_ = 0;
  std::vector<int> columns_;  // by position behind the tag: a Column, kSkip or kRids
};

}  // namespace portico::sglang
