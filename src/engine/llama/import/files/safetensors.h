// Weights of a Hugging Face folder: the headers of one safetensors file or of all shards, checked,
// and where each tensor's bytes lie. The format: https://github.com/huggingface/safetensors#format
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/llama/import/files/file.h"

namespace portico::llama {

struct WeightTensor {
  std::string dtype;  // as the header names it: "F32", "BF16", …
  std::vector<int64_t> shape;
  size_t file = 0;      // index into WeightFiles::files()
  uint64_t offset = 0;  // of the first byte in that file
  uint64_t bytes = 0;

  std::string ShapeText() const;  // "[384, 64]"
};

// Immutable and thread safe once open.
class WeightFiles {
 public:
  // model.safetensors, else the shards that model.safetensors.index.json names. Every header has
  // been checked: ranges lie within the file, agree with shape and type, do not overlap and leave
  // no gap.
  static StatusOr<WeightFiles> Open(const std::string& folder);

  // The same for one file, whatever its name.
  static StatusOr<WeightFiles> OpenFile(const std::string& path);

  const std::vector<InputFile>& files() const { return files_; }
  const std::map<std::string, WeightTensor, std::less<>>& tensors() const { return tensors_; }
  const WeightTensor* Find(std::string_view name) const;
  const InputFile& FileOf(const WeightTensor& tensor) const { return files_[tensor.file]; }
  uint64_t total_bytes() const;
  // Whether two tensors have the same type, shape and bytes.
  StatusOr<bool> Equal(const WeightTensor& a, const WeightTensor& b) const;

 private:
  WeightFiles() = default;
  Status AddFile(const std::string& path);
  Status AddShards(const std::string& folder, const std::string& index_path);
  Status CheckRanges(size_t file, uint64_t data_start) const;

  std::vector<InputFile> files_;
  std::map<std::string, WeightTensor, std::less<>> tensors_;
};

}  // namespace portico::llama
