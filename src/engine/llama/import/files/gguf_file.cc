#include "engine/llama/import/files/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "engine/llama/import/files/file.h"
#include "gguf.h"

namespace portico::llama {
namespace {

constexpr uint64_t kMaxEntries = 1 << 20;  // of metadata and of tensors
constexpr size_t kKeptArray = 512;

// Forward reads through a buffer, none beyond the end of the file. The first error sticks; reads
// then give zeros.
class Reader {
 public:
  explicit Reader(const InputFile& file) : file_(file) {}

  template <typename T>
  T Read() {
    T value{};
    Copy(&value, sizeof value);
    return value;
  }

  std::string ReadString() {
    uint64_t length = Read<uint64_t>();
    if (!Available(length)) return {};
    std::string text(length, '\0');
    Copy(text.data(), text.size());
    return text;
  }

  void Skip(uint64_t bytes) {
    if (Available(bytes)) at_ += bytes;
  }

  bool Available(uint64_t bytes) {
    if (!failure_.ok()) return false;
    if (bytes <= file_.size() - at_) return true;
    Fail(fmt::format("ends in the middle of its header (byte {} of {})", at_, file_.size()));
    return false;
  }

  void Fail(const std::string& fault) {
    if (failure_.ok()) failure_ = BadFile(file_.path(), fault);
  }

  bool ok() const { return failure_.ok(); }
  const Status& status() const { return failure_; }
  uint64_t position() const { return at_; }
  uint64_t file_size() const { return file_.size(); }

 private:
  void Copy(void* out, size_t size) {
    if (!Available(size)) return;
    char* to = static_cast<char*>(out);
    while (size > 0) {
      if (at_ < start_ || at_ >= start_ + buffer_.size()) {
        buffer_.resize(static_cast<size_t>(std::min<uint64_t>(1u << 20, file_.size() - at_)));
        start_ = at_;
        if (Status read = file_.ReadAt(at_, buffer_.data(), buffer_.size()); !read.ok()) {
          failure_ = read;
          return;
        }
      }
      size_t offset = static_cast<size_t>(at_ - start_);
      size_t part = std::min(size, buffer_.size() - offset);
      std::memcpy(to, buffer_.data() + offset, part);
      to += part;
      at_ += part;
      size -= part;
    }
  }

  const InputFile& file_;
  std::vector<char> buffer_;
  uint64_t start_ = 0;
  uint64_t at_ = 0;
  Status failure_;
};

// Bytes of a fixed-size type, 0 for strings, arrays and what is none.
uint64_t TypeBytes(int32_t type) {
  switch (type) {
    case GGUF_TYPE_UINT8:
    case GGUF_TYPE_INT8:
    case GGUF_TYPE_BOOL:
      return 1;
    case GGUF_TYPE_UINT16:
    case GGUF_TYPE_INT16:
      return 2;
    case GGUF_TYPE_UINT32:
    case GGUF_TYPE_INT32:
    case GGUF_TYPE_FLOAT32:
      return 4;
    case GGUF_TYPE_UINT64:
    case GGUF_TYPE_INT64:
    case GGUF_TYPE_FLOAT64:
      return 8;
    default:
      return 0;
  }
}

GgufValue ReadScalar(Reader* reader, int32_t type) {
  switch (type) {
    case GGUF_TYPE_UINT8:
      return int64_t{reader->Read<uint8_t>()};
    case GGUF_TYPE_INT8:
      return int64_t{reader->Read<int8_t>()};
    case GGUF_TYPE_UINT16:
      return int64_t{reader->Read<uint16_t>()};
    case GGUF_TYPE_INT16:
      return int64_t{reader->Read<int16_t>()};
    case GGUF_TYPE_UINT32:
      return int64_t{reader->Read<uint32_t>()};
    case GGUF_TYPE_INT32:
      return int64_t{reader->Read<int32_t>()};
    case GGUF_TYPE_INT64:
      return reader->Read<int64_t>();
    case GGUF_TYPE_UINT64: {
      uint64_t value = reader->Read<uint64_t>();
      if (value <= INT64_MAX) return static_cast<int64_t>(value);
      return static_cast<double>(value);
    }
    case GGUF_TYPE_FLOAT32:
      return double{reader->Read<float>()};
    case GGUF_TYPE_FLOAT64:
      return reader->Read<double>();
    case GGUF_TYPE_BOOL:
      return reader->Read<uint8_t>() != 0;
    case GGUF_TYPE_STRING:
      return reader->ReadString();
    default:
      return int64_t{0};
  }
}

void ReadArray(Reader* reader, const std::string& key, GgufInfo* info) {
  int32_t type = reader->Read<int32_t>();
  uint64_t count = reader->Read<uint64_t>();
  if (!reader->ok()) return;
  if (type == GGUF_TYPE_STRING) {
    for (uint64_t i = 0; i < count && reader->ok(); ++i) reader->Skip(reader->Read<uint64_t>());
    return;
  }
  uint64_t bytes = TypeBytes(type);
  if (bytes == 0) return reader->Fail(fmt::format("metadata '{}' has an unknown type", key));
  if (count > reader->file_size())
    return reader->Fail(fmt::format("metadata '{}' is too long", key));
  bool keep = count <= kKeptArray && type != GGUF_TYPE_FLOAT32 && type != GGUF_TYPE_FLOAT64;
  if (!keep) return reader->Skip(count * bytes);
  std::vector<int64_t> values;
  for (uint64_t i = 0; i < count && reader->ok(); ++i) {
    GgufValue value = ReadScalar(reader, type);
    if (const int64_t* integer = std::get_if<int64_t>(&value)) values.push_back(*integer);
  }
  info->arrays[key] = std::move(values);
}

void ReadMetadata(Reader* reader, uint64_t count, GgufInfo* info) {
  for (uint64_t i = 0; i < count && reader->ok(); ++i) {
    std::string key = reader->ReadString();
    int32_t type = reader->Read<int32_t>();
    if (!reader->ok()) return;
    bool known = info->metadata.count(key) + info->arrays.count(key) > 0;
    if (key.empty() || known) return reader->Fail("has metadata without a name of its own");
    if (type == GGUF_TYPE_ARRAY) {
      ReadArray(reader, key, info);
    } else if (type == GGUF_TYPE_STRING || TypeBytes(type) > 0) {
      info->metadata.emplace(key, ReadScalar(reader, type));
    } else {
      return reader->Fail(fmt::format("metadata '{}' has an unknown type", key));
    }
  }
}

// Shape and type of one tensor as a size in bytes; fails on what cannot be.
uint64_t ReadTensorBytes(Reader* reader, GgufTensor* tensor) {
  auto fail = [&](const char* fault) {
    reader->Fail(fmt::format("tensor {}: {}", tensor->name, fault));
    return uint64_t{0};
  };
  uint32_t dimensions = reader->Read<uint32_t>();
  if (dimensions > GGML_MAX_DIMS) return fail("has too many dimensions");
  int64_t first = 1;
  int64_t elements = 1;
  tensor->rows = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    int64_t size = reader->Read<int64_t>();
    if (i == 0) first = size;
    if (i == 1) tensor->rows = size;
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) {
      return fail("has an impossible shape");
    }
  }
  tensor->columns = first;
  tensor->type = reader->Read<int32_t>();
  if (tensor->type < 0 || tensor->type >= GGML_TYPE_COUNT) return fail("has an unknown type");
  ggml_type type = static_cast<ggml_type>(tensor->type);
  int64_t block = ggml_blck_size(type);
  if (block == 0 || first % block != 0) return fail("has rows that its type cannot hold");
  uint64_t bytes = static_cast<uint64_t>(elements / block);
  if (__builtin_mul_overflow(bytes, ggml_type_size(type), &bytes)) {
    return fail("has an impossible shape");
  }
  return bytes;
}

// Tensors follow each other in the order of the table, each padded to the alignment; the file holds
// all of them.
void ReadTensors(Reader* reader, uint64_t count, uint64_t alignment, GgufInfo* info) {
  std::set<std::string> names;
  uint64_t expected = 0;
  std::string last;
  uint64_t end = 0;
  for (uint64_t i = 0; i < count && reader->ok(); ++i) {
    GgufTensor tensor;
    tensor.name = reader->ReadString();
    if (!reader->ok()) return;
    if (tensor.name.size() >= GGML_MAX_NAME || !names.insert(tensor.name).second) {
      return reader->Fail(fmt::format("tensor {} has a name too long or used twice", i));
    }
    tensor.bytes = ReadTensorBytes(reader, &tensor);
    uint64_t offset = reader->Read<uint64_t>();
    if (!reader->ok()) return;
    if (offset != expected) {
      return reader->Fail(fmt::format("tensor {} does not follow the one before it", tensor.name));
    }
    if (tensor.bytes > reader->file_size()) {
      return reader->Fail(
          fmt::format("tensor {} is larger than the file (an incomplete download?)", tensor.name));
    }
    end = offset + tensor.bytes;
    expected = GGML_PAD(end, alignment);
    info->weight_bytes += tensor.bytes;
    last = tensor.name;
    info->tensors.push_back(std::move(tensor));
  }
  if (!reader->ok() || count == 0) return;
  uint64_t data = GGML_PAD(reader->position(), alignment);
  if (data + end > reader->file_size()) {
    reader->Fail(
        fmt::format("is cut: its tensors need {} bytes, it has {} (an incomplete "
                    "download?)",
                    data + end, reader->file_size()));
  }
}

// libllama aborts on these instead of refusing the file.
Status CheckHyperparameters(const std::string& path, const GgufInfo& info) {
  auto within = [&](std::string_view key, int64_t min, int64_t max) {
    std::optional<int64_t> value = info.Int(key);
    return !value || (*value >= min && *value <= max);
  };
  auto bad = [&](std::string_view key) {
    return BadFile(path, fmt::format("{}.{} is out of range", info.architecture(), key));
  };
  if (!within("block_count", 1, 512)) return bad("block_count");
  for (std::string_view key : {"embedding_length", "context_length"}) {
    if (!within(key, 1, INT32_MAX)) return bad(key);
  }
  int64_t experts = info.Int("expert_count").value_or(0);
  int64_t used = info.Int("expert_used_count").value_or(0);
  if (experts < 0 || experts > 512) return bad("expert_count");
  if (used < 0 || used > experts ||
      (experts > 0 && used == 0 &&
       !info.arrays.count(info.architecture() + ".expert_used_count"))) {
    return bad("expert_used_count");
  }
  static const std::set<std::string> kScalings = {"", "none", "linear", "yarn", "longrope"};
  std::string scaling = info.Text(info.architecture() + ".rope.scaling.type");
  if (kScalings.count(scaling) == 0) return bad("rope.scaling.type");
  static const std::set<std::string> kRotateWholeHeads = {"llama", "qwen2", "qwen3"};
  std::optional<int64_t> heads = info.Int("attention.head_count");
  if (kRotateWholeHeads.count(info.architecture()) > 0 && heads.value_or(0) > 0) {
    int64_t plain = info.Int("embedding_length").value_or(0) / *heads;
    int64_t key = info.Int("attention.key_length").value_or(plain);
    if (info.Int("attention.value_length").value_or(plain) != key) {
      return bad("attention.value_length");
    }
    if (info.Int("rope.dimension_count").value_or(key) != key) return bad("rope.dimension_count");
  }
  if (heads && *heads > 0) {
    int64_t kv_heads = info.Int("attention.head_count_kv").value_or(*heads);
    if (kv_heads < 0 || (kv_heads > 0 && *heads % kv_heads != 0)) {
      return bad("attention.head_count_kv");
    }
  }
  return OkStatus();
}

// What the metadata say of the vocabulary and of the hidden states must be what the table of embeddings has. A file
// without a tokenizer and with a vocabulary of two billion made libllama ask for memory until the process ended.
Status CheckSizes(const std::string& path, const GgufInfo& info) {
  const auto table =
      std::find_if(info.tensors.begin(), info.tensors.end(),
                   [](const GgufTensor& tensor) { return tensor.name == "token_embd.weight"; });
  if (table == info.tensors.end()) return BadFile(path, "has no table of token embeddings");
  const auto check = [&](std::string_view key, int64_t size) {
    const std::optional<int64_t> value = info.Int(key);
    if (!value || *value == size) return OkStatus();
    return BadFile(path, fmt::format("{}.{} is {}, but {} has {}", info.architecture(), key, *value,
                                     table->name, size));
  };
  PORTICO_RETURN_IF_ERROR(check("vocab_size", table->rows));
  return check("embedding_length", table->columns);
}

}  // namespace

std::string GgufInfo::architecture() const { return Text("general.architecture"); }

std::optional<int64_t> GgufInfo::Int(std::string_view key) const {
  auto found = metadata.find(fmt::format("{}.{}", architecture(), key));
  if (found == metadata.end()) return std::nullopt;
  const int64_t* value = std::get_if<int64_t>(&found->second);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<double> GgufInfo::Float(std::string_view key) const {
  auto found = metadata.find(fmt::format("{}.{}", architecture(), key));
  if (found == metadata.end()) return std::nullopt;
  const double* value = std::get_if<double>(&found->second);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::string GgufInfo::Text(std::string_view full_key) const {
  auto found = metadata.find(full_key);
  if (found == metadata.end()) return {};
  const std::string* value = std::get_if<std::string>(&found->second);
  return value == nullptr ? std::string() : *value;
}

bool LooksLikeGguf(const std::string& path) {
  StatusOr<InputFile> file = InputFile::Open(path);
  char magic[4] = {};
  return file.ok() && file->size() >= sizeof magic && file->ReadAt(0, magic, sizeof magic).ok() &&
         std::memcmp(magic, GGUF_MAGIC, sizeof magic) == 0;
}

StatusOr<GgufInfo> ReadGguf(const std::string& path) {
  PORTICO_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  Reader reader(file);
  GgufInfo info;
  uint32_t magic = reader.Read<uint32_t>();
  if (file.size() < 4 || std::memcmp(&magic, GGUF_MAGIC, 4) != 0) {
    return BadFile(path, "is not a GGUF file");
  }
  uint32_t version = reader.Read<uint32_t>();
  if (reader.ok() && (version < 2 || version > GGUF_VERSION)) {
    return BadFile(path, fmt::format("has GGUF version {} (or another byte order); 2 and 3 can be "
                                     "read",
                                     version));
  }
  uint64_t tensors = reader.Read<uint64_t>();
  uint64_t entries = reader.Read<uint64_t>();
  if (tensors > kMaxEntries || entries > kMaxEntries) {
    return BadFile(path,
                   fmt::format("claims {} tensors and {} metadata entries", tensors, entries));
  }
  ReadMetadata(&reader, entries, &info);
  PORTICO_RETURN_IF_ERROR(reader.status());
  uint64_t alignment = GGUF_DEFAULT_ALIGNMENT;
  if (auto found = info.metadata.find(GGUF_KEY_GENERAL_ALIGNMENT); found != info.metadata.end()) {
    const int64_t* value = std::get_if<int64_t>(&found->second);
    bool power =
        value != nullptr && *value > 0 && *value <= 1 << 20 && (*value & (*value - 1)) == 0;
    if (!power) return BadFile(path, "has an impossible general.alignment");
    alignment = static_cast<uint64_t>(*value);
  }
  ReadTensors(&reader, tensors, alignment, &info);
  PORTICO_RETURN_IF_ERROR(reader.status());
  return info;
}

StatusOr<GgufInfo> ReadGgufModel(const std::string& path) {
  PORTICO_ASSIGN_OR_RETURN(GgufInfo info, ReadGguf(path));
  if (info.architecture().empty()) return BadFile(path, "does not name its architecture");
  PORTICO_RETURN_IF_ERROR(CheckHyperparameters(path, info));
  int64_t parts = 1;
  if (auto found = info.metadata.find("split.count"); found != info.metadata.end()) {
    if (const int64_t* value = std::get_if<int64_t>(&found->second)) parts = *value;
  }
  if (parts <= 1) {
    PORTICO_RETURN_IF_ERROR(CheckSizes(path, info));
    return info;
  }
  const std::string suffix = fmt::format("-00001-of-{:05}.gguf", parts);
  if (parts > 99999 || !path.ends_with(suffix)) {
    return BadFile(path, fmt::format("is one of {} parts: name the first, *{}", parts, suffix));
  }
  const std::string stem = path.substr(0, path.size() - suffix.size());
  for (int64_t part = 2; part <= parts; ++part) {
    PORTICO_ASSIGN_OR_RETURN(GgufInfo more,
                             ReadGguf(fmt::format("{}-{:05}-of-{:05}.gguf", stem, part, parts)));
    info.weight_bytes += more.weight_bytes;
    std::move(more.tensors.begin(), more.tensors.end(), std::back_inserter(info.tensors));
  }
  PORTICO_RETURN_IF_ERROR(CheckSizes(path, info));
  return info;
}

}  // namespace portico::llama
