#include "message/sglang/outputs.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <span>

#include "message/msgpack/reader.h"

namespace portico::sglang {
namespace {

using msgpack::Kind;
using msgpack::Reader;

struct ColumnName {
  Column column;
  std::string_view name;
  std::string_view types;  // separated by blanks
};

constexpr std::string_view kFinishType = "list<map<str,str|int|list<int>|nil>|nil>";
constexpr std::string_view kCountsType = "list<int> list<int>|nil";
constexpr std::string_view kTopType = "list<list<list<float>|nil>|nil>|nil";
constexpr std::string_view kTopIdsType = "list<list<list<int>|nil>|nil>|nil";

constexpr ColumnName kTokenColumns[] = {
    {Column::kFinishedReasons, "finished_reasons", kFinishType},
    {Column::kOutputIds, "output_ids", "list<array>|nil list<array>"},
    {Column::kPromptTokens, "prompt_tokens", kCountsType},
    {Column::kReasoningTokens, "reasoning_tokens", kCountsType},
    {Column::kCompletionTokens, "completion_tokens", kCountsType},
    {Column::kCachedTokens, "cached_tokens", kCountsType},
    {Column::kInputLogprobs, "input_token_logprobs_val", "list<list<float|nil>|nil>|nil"},
    {Column::kInputLogprobIds, "input_token_logprobs_idx", "list<list<int|nil>|nil>|nil"},
    {Column::kOutputLogprobs, "output_token_logprobs_val", "list<list<float|nil>|nil>|nil"},
    {Column::kOutputLogprobIds, "output_token_logprobs_idx", "list<list<int|nil>|nil>|nil"},
    {Column::kInputTop, "input_top_logprobs_val", kTopType},
    {Column::kInputTopIds, "input_top_logprobs_idx", kTopIdsType},
    {Column::kOutputTop, "output_top_logprobs_val", kTopType},
    {Column::kOutputTopIds, "output_top_logprobs_idx", kTopIdsType},
    {Column::kInputAsked, "input_token_ids_logprobs_val", kTopType},
    {Column::kInputAskedIds, "input_token_ids_logprobs_idx", kTopIdsType},
    {Column::kOutputAsked, "output_token_ids_logprobs_val", kTopType},
    {Column::kOutputAskedIds, "output_token_ids_logprobs_idx", kTopIdsType},
    {Column::kHiddenStates, "output_hidden_states", ""},
    {Column::kRetractions, "retraction_counts", ""},
    {Column::kWeightVersions, "weight_versions", ""},
    {Column::kCachedDetails, "cached_tokens_details", ""},
    {Column::kImageTokens, "image_tokens", ""},
    {Column::kVideoTokens, "video_tokens", ""},
    {Column::kAudioTokens, "audio_tokens", ""},
    {Column::kDataParallelRanks, "dp_ranks", ""},
    {Column::kVerifications, "spec_verify_ct", ""},
    {Column::kCorrectDrafts, "spec_num_correct_drafts", ""},
    {Column::kCappedDrafts, "spec_num_cap_tokens", ""},
    {Column::kCorrectHistogram, "spec_correct_drafts_histogram", ""},
    {Column::kCapHistogram, "spec_cap_lens_histogram", ""},
};

constexpr ColumnName kEmbeddingColumns[] = {
    {Column::kFinishedReasons, "finished_reasons", kFinishType},
    {Column::kEmbeddings, "embeddings", "list<list<float|list<float>>|map<int,float>|float>"},
    {Column::kPromptTokens, "prompt_tokens", kCountsType},
    {Column::kCachedTokens, "cached_tokens", kCountsType},
    {Column::kDataParallelRanks, "dp_ranks", ""},
};

// Columns without a type are read with care and are not needed: a package may lack them.
bool Fits(const ColumnName& column, std::string_view type) {
  std::string_view types = column.types;
  while (!types.empty()) {
    const size_t end = std::min(types.find(' '), types.size());
    if (types.substr(0, end) == type) return true;
    types.remove_prefix(std::min(end + 1, types.size()));
  }
  return false;
}

// The rows of a column: nil, an empty list (nobody asked), or one a request.
bool ReadColumn(Reader* reader, size_t rows, std::vector<std::string_view>* column) {
  if (reader->TakeNil()) return true;
  uint32_t size = 0;
  if (!reader->Array(&size)) return false;
  if (size != 0 && size != rows) return false;
  column->resize(size);
  for (std::string_view& row : *column) {
    if (!reader->SkipTo(&row)) return false;
  }
  return true;
}

bool IsNil(std::string_view row) { return row.empty() || row == "\xc0"; }

bool ReadFloats(Reader* reader, std::vector<float>* values) {
  uint32_t size = 0;
  if (reader->TakeNil()) return true;
  if (!reader->Array(&size)) return false;
  values->reserve(size);
  for (uint32_t i = 0; i < size; ++i) {
    double value = std::numeric_limits<double>::quiet_NaN();
    if (!reader->TakeNil() && !reader->Float(&value)) return false;
    values->push_back(static_cast<float>(value));
  }
  return true;
}

bool ReadInts(Reader* reader, std::vector<int64_t>* values) {
  uint32_t size = 0;
  if (reader->TakeNil()) return true;
  if (!reader->Array(&size)) return false;
  values->reserve(size);
  for (uint32_t i = 0; i < size; ++i) {
    int64_t value = -1;
    if (!reader->TakeNil() && !reader->Int(&value)) return false;
    values->push_back(value);
  }
  return true;
}

template <typename T, typename Read>
bool ReadRows(std::string_view row, std::vector<std::vector<T>>* values, Read read) {
  values->clear();
  if (IsNil(row)) return true;
  Reader reader(row);
  uint32_t size = 0;
  if (!reader.Array(&size)) return false;
  for (uint32_t i = 0; i < size; ++i) {
    values->emplace_back();
    if (!read(&reader, &values->back())) return false;
  }
  return true;
}

// Both forms of a Python array of int64: ["q", bin] and the extension with its framed typecode.
bool ReadIdBytes(std::string_view row, std::string_view* bytes) {
  Reader reader(row);
  std::string_view typecode;
  if (reader.Peek() == Kind::kExt) {
    int8_t code = 0;
    // u32 length 2, msgpack str "q".
    constexpr std::string_view kFrame("\0\0\0\2\xa1q", 6);
    if (!reader.Ext(&code, bytes) || !bytes->starts_with(kFrame)) return false;
    bytes->remove_prefix(kFrame.size());
    return true;
  }
  uint32_t size = 0;
  return reader.Array(&size) && size == 2 && reader.Str(&typecode) && typecode == "q" &&
         reader.Bin(bytes);
}

}  // namespace

bool OutputBatch::Finish(size_t row, FinishInfo* info) const {
  *info = {};
  const std::string_view value = Row(Column::kFinishedReasons, row);
  if (IsNil(value)) return true;
  Reader reader(value);
  uint32_t size = 0;
  if (!reader.Map(&size)) return false;
  for (uint32_t i = 0; i < size; ++i) {
    std::string_view key;
    std::string_view text;
    if (!reader.Str(&key)) return false;
    if (key == "type" && reader.Peek() == Kind::kStr) {
      reader.Str(&text);
      if (text == "stop") {
        info->kind = FinishInfo::Kind::kStop;
      } else if (text == "length") {
        info->kind = FinishInfo::Kind::kLength;
      } else if (text == "abort") {
        info->kind = FinishInfo::Kind::kAbort;
      } else {
        return false;
      }
    } else if (key == "matched" && reader.Peek() == Kind::kInt) {
      int64_t token = 0;
      if (!reader.Int(&token)) return false;
      info->matched_token = token;
    } else if (key == "matched" && reader.Peek() == Kind::kStr) {
      reader.Str(&text);
      info->matched_text = text;
    } else if (key == "message" && reader.Peek() == Kind::kStr) {
      reader.Str(&text);
      info->message = text;
    } else if (key == "status_code" && reader.Peek() == Kind::kInt) {
      if (!reader.Int(&info->status_code)) return false;
    } else if (!reader.Skip()) {
      return false;
    }
  }
  return !reader.failed() && info->kind != FinishInfo::Kind::kNone;
}

bool OutputBatch::Ids(size_t row, absl::InlinedVector<TokenId, 4>* ids) const {
  ids->clear();
  const std::string_view value = Row(Column::kOutputIds, row);
  if (IsNil(value)) return true;
  std::string_view bytes;
  if (!ReadIdBytes(value, &bytes) || bytes.size() % sizeof(int64_t) != 0) return false;
  for (size_t at = 0; at < bytes.size(); at += sizeof(int64_t)) {
    int64_t id = 0;
    std::memcpy(&id, bytes.data() + at, sizeof(id));
    if (id < 0 || id > std::numeric_limits<TokenId>::max()) return false;
    ids->push_back(static_cast<TokenId>(id));
  }
  return true;
}

bool OutputBatch::Int(Column column, size_t row, int64_t* value) const {
  const std::string_view bytes = Row(column, row);
  if (IsNil(bytes)) return true;
  return Reader(bytes).Int(value);
}

bool OutputBatch::Floats(Column column, size_t row, std::vector<float>* values) const {
  values->clear();
  const std::string_view bytes = Row(column, row);
  if (IsNil(bytes)) return true;
  Reader reader(bytes);
  return ReadFloats(&reader, values);
}

bool OutputBatch::Ints(Column column, size_t row, std::vector<int64_t>* values) const {
  values->clear();
  const std::string_view bytes = Row(column, row);
  if (IsNil(bytes)) return true;
  Reader reader(bytes);
  return ReadInts(&reader, values);
}

bool OutputBatch::FloatRows(Column column, size_t row,
                            std::vector<std::vector<float>>* values) const {
  return ReadRows(Row(column, row), values, ReadFloats);
}

bool OutputBatch::IntRows(Column column, size_t row,
                          std::vector<std::vector<int64_t>>* values) const {
  return ReadRows(Row(column, row), values, ReadInts);
}

bool OutputBatch::Hidden(size_t row, std::vector<HiddenStates>* states) const {
  states->clear();
  const std::string_view bytes = Row(Column::kHiddenStates, row);
  if (IsNil(bytes)) return true;
  Reader reader(bytes);
  Reader first = reader;
  uint32_t size = 0;
  if (!reader.Array(&size)) return false;
  if (size > 0 && reader.Peek() != Kind::kArray) {
    return ReadFloats(&first, &states->emplace_back().rows.emplace_back());
  }
  for (uint32_t i = 0; i < size; ++i) {
    // A look ahead tells rows of numbers from numbers.
    Reader inside = reader;
    uint32_t parts = 0;
    if (!inside.Array(&parts)) return false;
    HiddenStates& state = states->emplace_back();
    state.is_prompt = parts > 0 && inside.Peek() == Kind::kArray;
    if (!state.is_prompt) {
      if (!ReadFloats(&reader, &state.rows.emplace_back())) return false;
      continue;
    }
    reader = inside;
    for (uint32_t part = 0; part < parts; ++part) {
      if (!ReadFloats(&reader, &state.rows.emplace_back())) return false;
    }
  }
  return true;
}

bool OutputBatch::CachedDetails(size_t row, CachedTokens* cached) const {
  *cached = {};
  const std::string_view bytes = Row(Column::kCachedDetails, row);
  if (IsNil(bytes)) return true;
  Reader reader(bytes);
  uint32_t size = 0;
  if (!reader.Map(&size)) return false;
  for (uint32_t i = 0; i < size; ++i) {
    std::string_view key;
    if (!reader.Str(&key)) return false;
    int32_t* to = nullptr;
    if (key == "device") to = &cached->device;
    if (key == "host") to = &cached->host;
    if (key == "storage") to = &cached->storage;
    int64_t count = 0;
    std::string_view text;
    if (to != nullptr && reader.Peek() == Kind::kInt) {
      if (!reader.Int(&count)) return false;
      *to = static_cast<int32_t>(count);
    } else if (key == "storage_backend" && reader.Peek() == Kind::kStr) {
      if (!reader.Str(&text)) return false;
      cached->storage_backend = text;
    } else if (!reader.Skip()) {
      return false;
    }
  }
  return true;
}

bool OutputBatch::WeightVersions(size_t row, std::vector<VersionSpan>* spans) const {
  spans->clear();
  const std::string_view bytes = Row(Column::kWeightVersions, row);
  if (IsNil(bytes)) return true;
  Reader reader(bytes);
  uint32_t size = 0;
  if (!reader.Array(&size)) return false;
  for (uint32_t i = 0; i < size; ++i) {
    uint32_t parts = 0;
    std::string_view version;
    VersionSpan span;
    if (!reader.Array(&parts) || parts < 3 || !reader.Str(&version) || !reader.Int(&span.begin) ||
        !reader.Int(&span.end)) {
      return false;
    }
    for (uint32_t extra = 3; extra < parts; ++extra) {
      if (!reader.Skip()) return false;
    }
    span.version = version;
    spans->push_back(std::move(span));
  }
  return true;
}

bool OutputBatch::Embedding(size_t row, std::vector<float>* values,
                            std::vector<std::pair<int64_t, float>>* sparse) const {
  values->clear();
  sparse->clear();
  Reader reader(Row(Column::kEmbeddings, row));
  switch (reader.Peek()) {
    case Kind::kMap: {
      uint32_t size = 0;
      if (!reader.Map(&size)) return false;
      for (uint32_t i = 0; i < size; ++i) {
        int64_t index = 0;
        double weight = 0;
        if (!reader.Int(&index) || !reader.Float(&weight)) return false;
        sparse->emplace_back(index, static_cast<float>(weight));
      }
      return true;
    }
    case Kind::kInt:
    case Kind::kFloat: {
      double value = 0;
      if (!reader.Float(&value)) return false;
      values->push_back(static_cast<float>(value));
      return true;
    }
    default:
      return ReadFloats(&reader, values) && !reader.failed();
  }
}

bool OutputBatch::HasSparseEmbedding(size_t row) const {
  return Reader(Row(Column::kEmbeddings, row)).Peek() == Kind::kMap;
}

StatusOr<OutputReader> OutputReader::Make(const Schema& schema, std::string_view message) {
  const StructLayout* layout = schema.IsMessage(message) ? schema.Find(message) : nullptr;
  if (layout == nullptr || layout->IndexOf("rids") < 0) {
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("SGLang {} has no {}", schema.sglang_version(), message));
  }
  std::span<const ColumnName> names = kTokenColumns;
  if (message == "BatchEmbeddingOutput") names = kEmbeddingColumns;
  OutputReader reader;
  reader.tag_ = layout->tag;
  reader.min_length_ = layout->min_length;
  reader.columns_.assign(layout->fields.size(), kSkip);
  reader.columns_[static_cast<size_t>(layout->IndexOf("rids"))] = kRids;
  std::string wrong;
  for (const ColumnName& column : names) {
    const int at = layout->IndexOf(column.name);
    const bool fits = at >= 0 && Fits(column, layout->fields[static_cast<size_t>(at)].type_text);
    if (at >= 0 && (fits || column.types.empty())) {
      reader.columns_[static_cast<size_t>(at)] = static_cast<int>(column.column);
    } else if (!column.types.empty()) {
      fmt::format_to(std::back_inserter(wrong), "{}{}", wrong.empty() ? "" : ", ", column.name);
    }
  }
  if (wrong.empty()) return reader;
  return Error(StatusCode::kFailedPrecondition,
               fmt::format("SGLang {} lays out {} in a way that Portico does not know: {}",
                           schema.sglang_version(), message, wrong));
}

bool OutputReader::Read(std::string_view frame, OutputBatch* batch) const {
  batch->rids_.clear();
  for (auto& column : batch->columns_) column.clear();
  Reader reader(frame);
  uint32_t size = 0;
  std::string_view tag;
  if (!reader.Array(&size) || size < min_length_ || !reader.Str(&tag) || tag != tag_) return false;
  for (uint32_t i = 1; i < size; ++i) {
    const int column = i - 1 < columns_.size() ? columns_[i - 1] : kSkip;
    if (column == kRids) {
      if (reader.TakeNil()) continue;
      uint32_t rows = 0;
      if (!reader.Array(&rows)) return false;
      for (uint32_t row = 0; row < rows; ++row) {
        std::string_view rid;
        if (!reader.TakeNil() && !reader.Str(&rid)) return false;
        batch->rids_.push_back(rid);
      }
    } else if (column == kSkip) {
      if (!reader.Skip()) return false;
    } else if (!ReadColumn(&reader, batch->rids_.size(),
                           &batch->columns_[static_cast<size_t>(column)])) {
      return false;
    }
  }
  return reader.done();
}

}  // namespace portico::sglang
