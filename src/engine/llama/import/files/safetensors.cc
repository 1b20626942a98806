#include "engine/llama/import/files/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "text/json.h"

namespace portico::llama {
namespace {

// The reference implementation's own bound on the header.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

std::optional<uint64_t> ElementBytes(std::string_view dtype) {
  static const std::map<std::string_view, uint64_t> kBytes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},     {"U32", 4},
      {"F32", 4},  {"F64", 8}, {"I64", 8}, {"U64", 8},     {"C64", 8},
  };
  auto found = kBytes.find(dtype);
  if (found == kBytes.end()) return std::nullopt;
  return found->second;
}

StatusOr<std::string> ReadHeader(const InputFile& file) {
  if (file.size() < 8) return BadFile(file.path(), "is too short for a safetensors file");
  unsigned char prefix[8];
  PORTICO_RETURN_IF_ERROR(file.ReadAt(0, prefix, sizeof prefix));
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | prefix[i];
  if (length > kMaxHeaderBytes || length > file.size() - 8) {
    return BadFile(
        file.path(),
        fmt::format("the safetensors header claims {} bytes in a file of {}", length, file.size()));
  }
  std::string header(length, '\0');
  PORTICO_RETURN_IF_ERROR(file.ReadAt(8, header.data(), header.size()));
  return header;
}

// One entry of the header; `offset` of the result still counts from the start of the data.
StatusOr<WeightTensor> ParseEntry(const std::string& path, const std::string& name,
                                  const Json& entry) {
  auto bad = [&](const std::string& fault) {
    return BadFile(path, fmt::format("tensor {}: {}", name, fault));
  };
  WeightTensor tensor;
  tensor.dtype = entry.GetString("dtype");
  std::optional<uint64_t> element = ElementBytes(tensor.dtype);
  if (!element) return bad(fmt::format("unknown dtype '{}'", tensor.dtype));
  const Json* shape = entry.Find("shape");
  if (shape == nullptr || !shape->is_array()) return bad("has no shape");
  uint64_t bytes = *element;
  for (const Json& size : shape->as_array()) {
    if (!size.is_int() || size.as_int() < 0) return bad("has a bad shape");
    uint64_t dimension = static_cast<uint64_t>(size.as_int());
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) return bad("has an impossible shape");
    tensor.shape.push_back(size.as_int());
  }
  const Json* range = entry.Find("data_offsets");
  if (range == nullptr || !range->is_array() || range->as_array().size() != 2 ||
      !range->as_array()[0].is_int() || !range->as_array()[1].is_int()) {
    return bad("has no data_offsets");
  }
  int64_t begin = range->as_array()[0].as_int();
  int64_t end = range->as_array()[1].as_int();
  if (begin < 0 || end < begin) return bad("has bad data_offsets");
  if (static_cast<uint64_t>(end - begin) != bytes) {
    return bad(fmt::format("shape {} of {} needs {} bytes, but data_offsets span {}",
                           tensor.ShapeText(), tensor.dtype, bytes, end - begin));
  }
  tensor.offset = static_cast<uint64_t>(begin);
  tensor.bytes = bytes;
  return tensor;
}

}  // namespace

std::string WeightTensor::ShapeText() const { return fmt::format("[{}]", fmt::join(shape, ", ")); }

StatusOr<WeightFiles> WeightFiles::Open(const std::string& folder) {
  namespace fs = std::filesystem;
  WeightFiles weights;
  std::error_code ignored;
  std::string single = (fs::path(folder) / "model.safetensors").string();
  std::string index = (fs::path(folder) / "model.safetensors.index.json").string();
  if (fs::exists(single, ignored)) {
    PORTICO_RETURN_IF_ERROR(weights.AddFile(single));
  } else if (fs::exists(index, ignored)) {
    PORTICO_RETURN_IF_ERROR(weights.AddShards(folder, index));
  } else {
    return Error(StatusCode::kNotFound,
                 folder +
                     ": has no weights (neither model.safetensors nor "
                     "model.safetensors.index.json; other formats cannot be imported)");
  }
  return weights;
}

StatusOr<WeightFiles> WeightFiles::OpenFile(const std::string& path) {
  WeightFiles weights;
  PORTICO_RETURN_IF_ERROR(weights.AddFile(path));
  return weights;
}

const WeightTensor* WeightFiles::Find(std::string_view name) const {
  auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

uint64_t WeightFiles::total_bytes() const {
  uint64_t total = 0;
  for (const InputFile& file : files_) total += file.size();
  return total;
}

StatusOr<bool> WeightFiles::Equal(const WeightTensor& a, const WeightTensor& b) const {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  std::vector<char> left, right;
  for (uint64_t at = 0; at < a.bytes; at += left.size()) {
    left.resize(static_cast<size_t>(std::min<uint64_t>(a.bytes - at, 1u << 20)));
    right.resize(left.size());
    PORTICO_RETURN_IF_ERROR(FileOf(a).ReadAt(a.offset + at, left.data(), left.size()));
    PORTICO_RETURN_IF_ERROR(FileOf(b).ReadAt(b.offset + at, right.data(), right.size()));
    if (left != right) return false;
  }
  return true;
}

Status WeightFiles::AddFile(const std::string& path) {
  PORTICO_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  PORTICO_ASSIGN_OR_RETURN(std::string text, ReadHeader(file));
  StatusOr<Json> header = Json::Parse(text);
  if (!header.ok() || !header->is_object()) {
    return BadFile(path, "the safetensors header is not a JSON object");
  }
  const size_t index = files_.size();
  const uint64_t data_start = 8 + text.size();
  files_.push_back(std::move(file));
  for (const auto& [name, entry] : header->as_object()) {
    if (name == "__metadata__") continue;
    PORTICO_ASSIGN_OR_RETURN(WeightTensor tensor, ParseEntry(path, name, entry));
    tensor.file = index;
    tensor.offset += data_start;
    if (!tensors_.try_emplace(name, std::move(tensor)).second) {
      return BadFile(path, fmt::format("tensor {} is in two shards", name));
    }
  }
  return CheckRanges(index, data_start);
}

// The ranges of one file, in order, must meet exactly and end where the file ends: the reference
// reader refuses anything else, and a gap or an overlap means that header and data do not belong
// together.
Status WeightFiles::CheckRanges(size_t file, uint64_t data_start) const {
  struct Range {
    uint64_t begin, end;
    std::string_view name;
  };
  std::vector<Range> ranges;
  for (const auto& [name, tensor] : tensors_) {
    if (tensor.file == file) {
      ranges.push_back({tensor.offset, tensor.offset + tensor.bytes, name});
    }
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  const std::string& path = files_[file].path();
  const uint64_t size = files_[file].size();
  uint64_t end = data_start;
  for (const Range& range : ranges) {
    if (range.end > size) {
      return BadFile(path, fmt::format("tensor {} lies beyond the end of the file ({} bytes are "
                                       "missing; an incomplete download?)",
                                       range.name, range.end - size));
    }
    if (range.begin < end) {
      return BadFile(path, fmt::format("tensor {} overlaps another one", range.name));
    }
    if (range.begin > end) {
      return BadFile(path, fmt::format("there is a gap before tensor {}", range.name));
    }
    end = range.end;
  }
  if (end != size) {
    return BadFile(path, fmt::format("has {} bytes that its header does not name", size - end));
  }
  return OkStatus();
}

Status WeightFiles::AddShards(const std::string& folder, const std::string& index_path) {
  PORTICO_ASSIGN_OR_RETURN(std::string text, ReadTextFile(index_path));
  StatusOr<Json> index = Json::Parse(text);
  if (!index.ok())
    return BadFile(index_path, "is not JSON: " + std::string(MessageOf(index.status())));
  const Json* map = index->Find("weight_map");
  if (map == nullptr || !map->is_object()) return BadFile(index_path, "has no weight_map");
  std::set<std::string> shards;
  for (const auto& [name, shard] : map->as_object()) {
    if (!shard.is_string() || shard.as_string().empty() ||
        shard.as_string().find('/') != std::string::npos) {
      return BadFile(index_path, fmt::format("tensor {} names no file of the folder", name));
    }
    shards.insert(shard.as_string());
  }
  for (const std::string& shard : shards) {
    std::string path = (std::filesystem::path(folder) / shard).string();
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
      return BadFile(index_path, fmt::format("names the shard {}, which is not there", shard));
    }
    PORTICO_RETURN_IF_ERROR(AddFile(path));
  }
  for (const auto& [name, shard] : map->as_object()) {
    const WeightTensor* tensor = Find(name);
    if (tensor == nullptr) {
      return BadFile(index_path,
                     fmt::format("tensor {} is not in the shard {}", name, shard.as_string()));
    }
  }
  return OkStatus();
}

}  // namespace portico::llama
