#include "engine/llama/import/plan/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "engine/llama/import/files/file.h"
#include "gguf.h"
#include "llama.h"

namespace portico::llama {
namespace {

constexpr size_t kSliceBytes = 4u << 20;  // of source rows read at once

struct GgufDeleter {
  void operator()(gguf_context* context) const { gguf_free(context); }
};
using GgufPtr = std::unique_ptr<gguf_context, GgufDeleter>;

struct GgmlDeleter {
  void operator()(ggml_context* context) const { ggml_free(context); }
};

// llama_ftype of what most of the file is: it is what libllama calls the file.
uint32_t FileType(const ImportPlan& plan) {
  const auto largest = std::max_element(
      plan.tensors.begin(), plan.tensors.end(),
      [](const PlannedTensor& a, const PlannedTensor& b) { return a.elements() < b.elements(); });
  const ggml_type type = largest->type;
  if (type == GGML_TYPE_F16) return LLAMA_FTYPE_MOSTLY_F16;
  if (type == GGML_TYPE_BF16) return LLAMA_FTYPE_MOSTLY_BF16;
  return LLAMA_FTYPE_ALL_F32;
}

void SetValue(gguf_context* gguf, const char* key, const PlannedValue& value) {
  if (const auto* number = std::get_if<uint32_t>(&value))
    return gguf_set_val_u32(gguf, key, *number);
  if (const auto* real = std::get_if<float>(&value)) return gguf_set_val_f32(gguf, key, *real);
  if (const auto* flag = std::get_if<bool>(&value)) return gguf_set_val_bool(gguf, key, *flag);
  gguf_set_val_str(gguf, key, std::get<std::string>(value).c_str());
}

void SetMetadata(const ImportPlan& plan, gguf_context* gguf) {
  gguf_set_val_str(gguf, "general.architecture", plan.architecture.c_str());
  gguf_set_val_str(gguf, "general.type", "model");
  gguf_set_val_u32(gguf, "general.file_type", FileType(plan));
  gguf_set_val_u32(gguf, "general.quantization_version", GGML_QNT_VERSION);
  gguf_set_val_str(gguf, "portico.family", FamilyName(plan.family).c_str());
  // Portico tokenizes from tokenizer.json; libllama only needs the number of tokens.
  gguf_set_val_str(gguf, "tokenizer.ggml.model", "none");
  for (const auto& [key, value] : plan.metadata) SetValue(gguf, key.c_str(), value);
}

// Header, metadata and tensor table, with offsets laid out in the plan's order.
StatusOr<GgufPtr> BuildHeader(const ImportPlan& plan) {
  GgufPtr gguf(gguf_init_empty());
  SetMetadata(plan, gguf.get());
  ggml_init_params params{ggml_tensor_overhead() * (plan.tensors.size() + 1), nullptr, true};
  std::unique_ptr<ggml_context, GgmlDeleter> ggml(ggml_init(params));
  if (ggml == nullptr) {
    return Error(StatusCode::kResourceExhausted, "not enough memory to plan the import");
  }
  for (const PlannedTensor& tensor : plan.tensors) {
    ggml_tensor* shape =
        tensor.rows == 0 ? ggml_new_tensor_1d(ggml.get(), tensor.type, tensor.columns)
                         : ggml_new_tensor_2d(ggml.get(), tensor.type, tensor.columns, tensor.rows);
    ggml_set_name(shape, tensor.name.c_str());
    gguf_add_tensor(gguf.get(), shape);
  }
  return gguf;
}

size_t SourceBytes(const std::string& dtype) { return dtype == "F32" ? 4 : 2; }

// `count` elements from the folder's type to the file's. All pairs but equal ones go through
// float32.
void Convert(const std::string& from, ggml_type to, const void* source, int64_t count,
             std::vector<float>* floats, std::vector<char>* out) {
  out->resize(static_cast<size_t>(count) * ggml_type_size(to));
  bool same = (from == "F32" && to == GGML_TYPE_F32) || (from == "F16" && to == GGML_TYPE_F16) ||
              (from == "BF16" && to == GGML_TYPE_BF16);
  if (same) {
    std::memcpy(out->data(), source, out->size());
    return;
  }
  floats->resize(static_cast<size_t>(count));
  if (from == "F16") {
    ggml_fp16_to_fp32_row(static_cast<const ggml_fp16_t*>(source), floats->data(), count);
  } else if (from == "BF16") {
    ggml_bf16_to_fp32_row(static_cast<const ggml_bf16_t*>(source), floats->data(), count);
  } else {
    std::memcpy(floats->data(), source, floats->size() * sizeof(float));
  }
  if (to == GGML_TYPE_BF16) {
    ggml_fp32_to_bf16_row(floats->data(), reinterpret_cast<ggml_bf16_t*>(out->data()), count);
  } else {
    std::memcpy(out->data(), floats->data(), out->size());
  }
}

// In each head of `head_rows` rows: row 2i + j becomes what row i + j * head_rows / 2 was.
void ReorderHeads(std::span<const char> from, size_t row_bytes, size_t head_rows,
                  std::vector<char>* to) {
  to->resize(from.size());
  const size_t half = head_rows / 2;
  for (size_t head = 0; head < from.size(); head += head_rows * row_bytes) {
    for (size_t i = 0; i < half; ++i) {
      for (size_t j = 0; j < 2; ++j) {
        std::memcpy(to->data() + head + (2 * i + j) * row_bytes,
                    from.data() + head + (i + j * half) * row_bytes, row_bytes);
      }
    }
  }
}

class Writer {
 public:
  Writer(const WeightFiles& weights, OutputFile file, uint64_t total,
         const std::function<void(double)>& done)
      : weights_(weights), file_(std::move(file)), total_(total), done_(done) {}

  Status WriteHeader(const gguf_context* gguf) {
    std::vector<char> header(gguf_get_meta_size(gguf));
    gguf_get_meta_data(gguf, header.data());
    return file_.Append(header.data(), header.size());
  }

  Status WriteTensor(const PlannedTensor& tensor) {
    if (tensor.source == nullptr) {
      PORTICO_RETURN_IF_ERROR(
          file_.Append(tensor.values.data(), tensor.values.size() * sizeof(float)));
    } else {
      PORTICO_RETURN_IF_ERROR(CopySlices(tensor));
    }
    static constexpr char kZeros[GGUF_DEFAULT_ALIGNMENT] = {};
    uint64_t padded = GGML_PAD(file_.written(), GGUF_DEFAULT_ALIGNMENT);
    return file_.Append(kZeros, padded - file_.written());
  }

  Status Finish() { return file_.Close(); }

 private:
  // A slice is a whole number of rows, and of heads where those are reordered.
  Status CopySlices(const PlannedTensor& tensor) {
    const WeightTensor& source = *tensor.source;
    const size_t element = SourceBytes(source.dtype);
    const size_t row_bytes = (tensor.rows == 0 ? 1 : static_cast<size_t>(tensor.columns)) * element;
    const size_t unit =
        row_bytes * (tensor.head_rows == 0 ? 1 : static_cast<size_t>(tensor.head_rows));
    const size_t slice = std::max(unit, kSliceBytes / unit * unit);
    for (uint64_t at = 0; at < source.bytes; at += slice) {
      const size_t size = static_cast<size_t>(std::min<uint64_t>(slice, source.bytes - at));
      raw_.resize(size);
      PORTICO_RETURN_IF_ERROR(
          weights_.FileOf(source).ReadAt(source.offset + at, raw_.data(), size));
      if (tensor.head_rows != 0) {
        ReorderHeads(raw_, row_bytes, static_cast<size_t>(tensor.head_rows), &reordered_);
        raw_.swap(reordered_);
      }
      Convert(source.dtype, tensor.type, raw_.data(), static_cast<int64_t>(size / element),
              &floats_, &out_);
      PORTICO_RETURN_IF_ERROR(file_.Append(out_.data(), out_.size()));
      done_(static_cast<double>(file_.written()) / static_cast<double>(total_));
    }
    return OkStatus();
  }

  const WeightFiles& weights_;
  OutputFile file_;
  uint64_t total_;
  const std::function<void(double)>& done_;
  std::vector<char> raw_, reordered_, out_;
  std::vector<float> floats_;
};

uint64_t TotalBytes(const ImportPlan& plan, const gguf_context* gguf) {
  uint64_t total = gguf_get_meta_size(gguf);
  for (const PlannedTensor& tensor : plan.tensors) {
    uint64_t bytes = static_cast<uint64_t>(tensor.elements()) * ggml_type_size(tensor.type);
    total += GGML_PAD(bytes, GGUF_DEFAULT_ALIGNMENT);
  }
  return total;
}

}  // namespace

StatusOr<uint64_t> GgufBytes(const ImportPlan& plan) {
  PORTICO_ASSIGN_OR_RETURN(GgufPtr gguf, BuildHeader(plan));
  return TotalBytes(plan, gguf.get());
}

Status WriteGguf(const ImportPlan& plan, const WeightFiles& weights, const std::string& temp_path,
                 const std::function<void(double)>& done) {
  PORTICO_ASSIGN_OR_RETURN(GgufPtr gguf, BuildHeader(plan));
  const uint64_t total = TotalBytes(plan, gguf.get());
  PORTICO_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(temp_path, total));
  Writer writer(weights, std::move(file), total, done);
  PORTICO_RETURN_IF_ERROR(writer.WriteHeader(gguf.get()));
  for (const PlannedTensor& tensor : plan.tensors) {
    PORTICO_RETURN_IF_ERROR(writer.WriteTensor(tensor));
  }
  return writer.Finish();
}

}  // namespace portico::llama
