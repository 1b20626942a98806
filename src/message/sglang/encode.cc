#include "message/sglang/encode.h"

#include <fmt/format.h>

#include <algorithm>

#include "message/msgpack/writer.h"
#include "text/utf8.h"

namespace portico::sglang {
namespace {

constexpr int kMaxDepth = 64;

// Whether a value can only be meant by this alternative of a union. The kinds of a manifest's alternatives differ, so
// what is inside needs no look.
bool Suits(const Type& type, const Value& value) {
  switch (type.kind) {
    case Type::Kind::kNil:
      return value.is_nil();
    case Type::Kind::kBool:
      return value.As<bool>() != nullptr;
    case Type::Kind::kInt:
      return value.is_int();
    case Type::Kind::kFloat:
      return value.As<double>() != nullptr || value.is_int();
    case Type::Kind::kStr:
      return value.As<std::string>() != nullptr;
    case Type::Kind::kBin:
      return value.As<Bytes>() != nullptr;
    case Type::Kind::kAny:
      return true;
    case Type::Kind::kBuffer:
      return value.As<Buffer>() != nullptr && value.As<Buffer>()->kind == type.buffer;
    case Type::Kind::kList:
    case Type::Kind::kTuple:
      return value.As<List>() != nullptr;
    case Type::Kind::kMap:
    case Type::Kind::kStruct:
      return value.As<Map>() != nullptr;
    case Type::Kind::kEnum:
    case Type::Kind::kLiteral:
      return std::find(type.values.begin(), type.values.end(), value) != type.values.end();
    case Type::Kind::kUnion:
      return std::any_of(type.parts.begin(), type.parts.end(),
                         [&](const Type& part) { return Suits(part, value); });
  }
  return false;
}

class Encoder {
 public:
  Encoder(const Schema& schema, const EncodeOptions& options, std::string* out)
      : schema_(schema), options_(options), writer_(out) {}

  Status Struct(const StructLayout& layout, const Value& value) {
    const Map* given = value.As<Map>();
    if (given == nullptr) return Wrong(layout.name, value);
    for (const auto& [key, unused] : *given) {
      const auto* name = key.As<std::string>();
      if (name == nullptr || layout.Find(*name) == nullptr) {
        return Bad(fmt::format("SGLang {} has no field {} in {}", schema_.sglang_version(),
                               name == nullptr ? "without a name" : *name, layout.name));
      }
    }
    return layout.array_like ? StructArray(layout, value) : StructMap(layout, value);
  }

  Status Any(const Type& type, const Value& value) {
    if (++depth_ > kMaxDepth) return Bad("is nested too deeply");
    const Status status = Typed(type, value);
    --depth_;
    return status;
  }

 private:
  // An error at the field that is being written.
  Status Bad(std::string message) const {
    std::string field;
    for (const std::string_view part : path_) {
      if (!field.empty()) field += '.';
      field += part;
    }
    return InvalidArgument(field, field.empty() ? message : field + ": " + message);
  }
  Status Wrong(std::string_view wanted, const Value& value) const {
    return Bad(fmt::format("must be {}, got {}", wanted, KindName(value)));
  }

  // Fields up to the last one that says something.
  size_t LengthOf(const StructLayout& layout, const Value& value) const {
    if (options_.length == Length::kFull) return layout.fields.size();
    size_t length = layout.fields.size();
    while (layout.first() + length > layout.min_length) {
      const Field& last = layout.fields[length - 1];
      const Value* given = value.Find(last.name);
      if (given != nullptr && !(last.default_known && *given == last.default_value)) break;
      --length;
    }
    return length;
  }

  Status StructArray(const StructLayout& layout, const Value& value) {
    const size_t length = LengthOf(layout, value);
    writer_.Array(layout.first() + length);
    if (!layout.tag.empty()) writer_.Str(layout.tag);
    for (size_t i = 0; i < length; ++i) {
      PORTICO_RETURN_IF_ERROR(StructField(layout.fields[i], value.Find(layout.fields[i].name)));
    }
    return OkStatus();
  }

  Status StructMap(const StructLayout& layout, const Value& value) {
    std::vector<const Field*> written;
    for (const Field& field : layout.fields) {
      const Value* given = value.Find(field.name);
      const bool is_default =
          !field.required &&
          (given == nullptr || (field.default_known && *given == field.default_value));
      const bool leave_out = layout.omit_defaults || options_.length == Length::kShortest;
      if (!is_default || !leave_out) written.push_back(&field);
    }
    writer_.Map(written.size());
    for (const Field* field : written) {
      writer_.Str(field->name);
      PORTICO_RETURN_IF_ERROR(StructField(*field, value.Find(field->name)));
    }
    return OkStatus();
  }

  Status StructField(const Field& field, const Value* given) {
    path_.push_back(field.name);
    if (given == nullptr) {
      if (field.required) return Bad("is required");
      if (!field.default_known) return Bad("has a default that only SGLang can make; name a value");
      writer_.Raw(field.default_binary);
    } else {
      PORTICO_RETURN_IF_ERROR(Any(field.type, *given));
    }
    path_.pop_back();
    return OkStatus();
  }

  Status Typed(const Type& type, const Value& value) {
    if (type.kind == Type::Kind::kUnion) {
      for (const Type& part : type.parts) {
        if (Suits(part, value)) return Any(part, value);
      }
      return Bad(fmt::format("does not take a value of type {}", KindName(value)));
    }
    if (type.kind == Type::Kind::kAny) return Free(value);
    if (!Suits(type, value)) return Bad(fmt::format("got {}", KindName(value)));
    switch (type.kind) {
      case Type::Kind::kList:
        writer_.Array(value.As<List>()->size());
        for (const Value& each : *value.As<List>()) {
          PORTICO_RETURN_IF_ERROR(Any(type.parts[0], each));
        }
        return OkStatus();
      case Type::Kind::kTuple: {
        const List& items = *value.As<List>();
        if (items.size() != type.parts.size()) {
          return Bad(fmt::format("must have {} items, got {}", type.parts.size(), items.size()));
        }
        writer_.Array(items.size());
        for (size_t i = 0; i < items.size(); ++i) {
          PORTICO_RETURN_IF_ERROR(Any(type.parts[i], items[i]));
        }
        return OkStatus();
      }
      case Type::Kind::kMap:
        writer_.Map(value.As<Map>()->size());
        for (const auto& [key, each] : *value.As<Map>()) {
          PORTICO_RETURN_IF_ERROR(Any(type.parts[0], key));
          PORTICO_RETURN_IF_ERROR(Any(type.parts[1], each));
        }
        return OkStatus();
      case Type::Kind::kStruct:
        return Struct(*type.layout, value);
      case Type::Kind::kBuffer:
        WriteBuffer(*value.As<Buffer>(), options_.list_buffers);
        return OkStatus();
      default:
        return Free(value);
    }
  }

  // What says its own type.
  Status Free(const Value& value) {
    if (const auto* list = value.As<List>()) {
      writer_.Array(list->size());
      for (const Value& each : *list) PORTICO_RETURN_IF_ERROR(Any(kAnyType, each));
    } else if (const auto* map = value.As<Map>()) {
      writer_.Map(map->size());
      for (const auto& [key, each] : *map) {
        PORTICO_RETURN_IF_ERROR(Any(kAnyType, key));
        PORTICO_RETURN_IF_ERROR(Any(kAnyType, each));
      }
    } else if (const auto* buffer = value.As<Buffer>()) {
      WriteBuffer(*buffer, false);  // a list would be read as one
    } else if (const auto* text = value.As<std::string>()) {
      if (!IsValidUtf8(*text)) return Bad("is not valid UTF-8");
      writer_.Str(*text);
    } else if (const auto* bytes = value.As<Bytes>()) {
      writer_.Bin(bytes->bytes);
    } else if (const auto* extension = value.As<Extension>()) {
      writer_.ExtHead(extension->code, extension->bytes.size());
      writer_.Raw(extension->bytes);
    } else if (const auto* number = value.As<double>()) {
      writer_.Float(*number);
    } else if (const auto* integer = value.As<int64_t>()) {
      writer_.Int(*integer);
    } else if (const auto* large = value.As<uint64_t>()) {
      writer_.Uint(*large);
    } else if (const auto* flag = value.As<bool>()) {
      writer_.Bool(*flag);
    } else {
      writer_.Nil();
    }
    return OkStatus();
  }

  static void WriteShape(const Buffer& buffer, msgpack::Writer* to) {
    to->Array(buffer.shape.size());
    for (const int64_t size : buffer.shape) to->Int(size);
  }

  void WriteBuffer(const Buffer& buffer, bool as_list) {
    const int code = schema_.ExtensionOf(buffer.kind);
    if (code < 0 || as_list) {
      // A tensor on the CPU does not name its device.
      const bool placed = buffer.kind == Buffer::Kind::kTensor && buffer.device != "cpu";
      writer_.Array(buffer.kind == Buffer::Kind::kArray ? 2 : placed ? 4 : 3);
      if (buffer.kind != Buffer::Kind::kArray) WriteShape(buffer, &writer_);
      writer_.Str(buffer.dtype);
      writer_.Bin(buffer.bytes);
      if (placed) writer_.Str(buffer.device);
      return;
    }
    std::string meta;
    msgpack::Writer meta_writer(&meta);
    switch (buffer.kind) {
      case Buffer::Kind::kArray:
        meta_writer.Str(buffer.dtype);
        break;
      case Buffer::Kind::kTensor:
        meta_writer.Array(3);
        WriteShape(buffer, &meta_writer);
        meta_writer.Str(buffer.dtype);
        meta_writer.Str(buffer.device);
        break;
      case Buffer::Kind::kNdarray:
        meta_writer.Array(2);
        WriteShape(buffer, &meta_writer);
        meta_writer.Str(buffer.dtype);
        break;
    }
    writer_.ExtHead(static_cast<int8_t>(code), 4 + meta.size() + buffer.bytes.size());
    writer_.BigEndian32(static_cast<uint32_t>(meta.size()));
    writer_.Raw(meta);
    writer_.Raw(buffer.bytes);
  }

  inline static const Type kAnyType{};

  const Schema& schema_;
  const EncodeOptions& options_;
  msgpack::Writer writer_;
  int depth_ = 0;
  std::vector<std::string_view> path_;
};

}  // namespace

StatusOr<std::string> EncodeMessage(const Schema& schema, std::string_view name,
                                    const Value& fields, const EncodeOptions& options) {
  const StructLayout* layout = schema.IsMessage(name) ? schema.Find(name) : nullptr;
  if (layout == nullptr) {
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("SGLang {} has no message {}", schema.sglang_version(), name));
  }
  std::string out;
  PORTICO_RETURN_IF_ERROR(Encoder(schema, options, &out).Struct(*layout, fields));
  return out;
}

Status EncodeValue(const Schema& schema, const Type& type, const Value& value,
                   const EncodeOptions& options, std::string* out) {
  return Encoder(schema, options, out).Any(type, value);
}

}  // namespace portico::sglang
