#include "tokenizer/load/gguf.h"

#include <cstring>
#include <optional>

namespace portico::tokenizer {
namespace {

enum Type : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

constexpr uint64_t kMaxKeys = 1 << 20;

size_t WidthOf(uint32_t type) {
  switch (type) {
    case kUint8:
    case kInt8:
    case kBool:
      return 1;
    case kUint16:
    case kInt16:
      return 2;
    case kUint32:
    case kInt32:
    case kFloat32:
      return 4;
    case kUint64:
    case kInt64:
    case kFloat64:
      return 8;
    default:
      return 0;
  }
}

Status Damaged(std::string_view what) {
  return Error(StatusCode::kInvalidArgument, "the GGUF file is damaged: " + std::string(what));
}

class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  template <typename T>
  bool Read(T* value) {
    if (rest_.size() < sizeof(T)) return false;
    std::memcpy(value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return true;
  }
  bool Take(uint64_t count, std::string_view* out) {
    if (count > rest_.size()) return false;
    *out = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }
  bool String(std::string_view* out) {
    uint64_t size = 0;
    return Read(&size) && Take(size, out);
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

template <typename Stored, typename Wide>
bool ReadAs(Reader* reader, GgufMetadata::Value* out) {
  Stored value{};
  if (!reader->Read(&value)) return false;
  *out = static_cast<Wide>(value);
  return true;
}

bool ReadArray(Reader* reader, GgufMetadata::Value* out) {
  GgufMetadata::Array array;
  if (!reader->Read(&array.type) || !reader->Read(&array.count)) return false;
  if (array.type == kString) {
    std::string_view start = reader->rest();
    for (uint64_t i = 0; i < array.count; ++i) {
      std::string_view item;
      if (!reader->String(&item)) return false;
    }
    array.bytes = start.substr(0, start.size() - reader->rest().size());
  } else {
    size_t width = WidthOf(array.type);
    if (width == 0 || array.count > reader->rest().size() / width) return false;
    if (!reader->Take(array.count * width, &array.bytes)) return false;
  }
  *out = array;
  return true;
}

bool ReadValue(uint32_t type, Reader* reader, GgufMetadata::Value* out) {
  switch (type) {
    case kUint8:
      return ReadAs<uint8_t, uint64_t>(reader, out);
    case kInt8:
      return ReadAs<int8_t, int64_t>(reader, out);
    case kUint16:
      return ReadAs<uint16_t, uint64_t>(reader, out);
    case kInt16:
      return ReadAs<int16_t, int64_t>(reader, out);
    case kUint32:
      return ReadAs<uint32_t, uint64_t>(reader, out);
    case kInt32:
      return ReadAs<int32_t, int64_t>(reader, out);
    case kFloat32:
      return ReadAs<float, double>(reader, out);
    case kUint64:
      return ReadAs<uint64_t, uint64_t>(reader, out);
    case kInt64:
      return ReadAs<int64_t, int64_t>(reader, out);
    case kFloat64:
      return ReadAs<double, double>(reader, out);
    case kBool: {
      uint8_t value = 0;
      if (!reader->Read(&value)) return false;
      *out = value != 0;
      return true;
    }
    case kString: {
      std::string_view text;
      if (!reader->String(&text)) return false;
      *out = text;
      return true;
    }
    case kArray:
      return ReadArray(reader, out);
    default:
      return false;
  }
}

template <typename T>
std::vector<T> ItemsOf(const GgufMetadata::Array& array) {
  std::vector<T> out(array.count);
  if (array.count > 0) std::memcpy(out.data(), array.bytes.data(), array.count * sizeof(T));
  return out;
}

const GgufMetadata::Array* ArrayOf(const GgufMetadata::Value* value) {
  return value == nullptr ? nullptr : std::get_if<GgufMetadata::Array>(value);
}

}  // namespace

StatusOr<GgufMetadata> GgufMetadata::Parse(std::string_view file) {
  if (!file.starts_with("GGUF")) return Damaged("it does not begin with GGUF");
  Reader reader(file.substr(4));
  uint32_t version = 0;
  uint64_t tensors = 0;
  uint64_t keys = 0;
  if (!reader.Read(&version) || !reader.Read(&tensors) || !reader.Read(&keys)) {
    return Damaged("its head is cut short");
  }
  if (version != 2 && version != 3) {
    return Error(StatusCode::kUnimplemented,
                 "GGUF version " + std::to_string(version) + " is not supported (2 and 3 are)");
  }
  if (keys > kMaxKeys) return Damaged("it claims too many keys");
  GgufMetadata out;
  for (uint64_t i = 0; i < keys; ++i) {
    std::string_view key;
    uint32_t type = 0;
    Value value;
    if (!reader.String(&key) || !reader.Read(&type) || !ReadValue(type, &reader, &value)) {
      return Damaged("its metadata is cut short or of an unknown type");
    }
    out.values_[key] = value;
  }
  out.size_ = file.size() - reader.rest().size();
  return out;
}

const GgufMetadata::Value* GgufMetadata::Find(std::string_view key) const {
  auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

std::string_view GgufMetadata::Text(std::string_view key) const {
  const Value* value = Find(key);
  const auto* text = value == nullptr ? nullptr : std::get_if<std::string_view>(value);
  return text == nullptr ? std::string_view{} : *text;
}

std::optional<int64_t> GgufMetadata::Integer(std::string_view key) const {
  const Value* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* u = std::get_if<uint64_t>(value)) return static_cast<int64_t>(*u);
  if (const auto* i = std::get_if<int64_t>(value)) return *i;
  return std::nullopt;
}

std::optional<bool> GgufMetadata::Flag(std::string_view key) const {
  const Value* value = Find(key);
  const auto* flag = value == nullptr ? nullptr : std::get_if<bool>(value);
  if (flag == nullptr) return std::nullopt;
  return *flag;
}

std::vector<std::string_view> GgufMetadata::Texts(std::string_view key) const {
  std::vector<std::string_view> out;
  const Array* array = ArrayOf(Find(key));
  if (array == nullptr || array->type != kString) return out;
  Reader reader(array->bytes);
  std::string_view item;
  while (!reader.rest().empty() && reader.String(&item)) out.push_back(item);
  return out;
}

std::vector<float> GgufMetadata::Floats(std::string_view key) const {
  const Array* array = ArrayOf(Find(key));
  if (array == nullptr || array->type != kFloat32) return {};
  return ItemsOf<float>(*array);
}

std::vector<int32_t> GgufMetadata::Integers(std::string_view key) const {
  const Array* array = ArrayOf(Find(key));
  if (array == nullptr || (array->type != kInt32 && array->type != kUint32)) return {};
  return ItemsOf<int32_t>(*array);
}

std::string_view GgufMetadata::Bytes(std::string_view key) const {
  const Array* array = ArrayOf(Find(key));
  if (array == nullptr || (array->type != kInt8 && array->type != kUint8)) return {};
  return array->bytes;
}

}  // namespace portico::tokenizer
