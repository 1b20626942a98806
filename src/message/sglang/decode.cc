#include "message/sglang/decode.h"

#include <fmt/format.h>

#include <algorithm>

#include "message/msgpack/reader.h"

namespace portico::sglang {
namespace {

using msgpack::Kind;
using msgpack::Reader;

constexpr int kMaxDepth = 64;

// Bytes of an item of a Python array; 0: no typecode.
size_t ArrayItemSize(std::string_view typecode) {
  if (typecode.size() != 1) return 0;
  switch (typecode[0]) {
    case 'b':
    case 'B':
      return 1;
    case 'h':
    case 'H':
      return 2;
    case 'i':
    case 'I':
    case 'f':
    case 'u':
      return 4;
    case 'l':
    case 'L':
    case 'q':
    case 'Q':
    case 'd':
      return 8;
    default:
      return 0;
  }
}

class Decoder {
 public:
  Decoder(const Schema& schema, std::string_view frame) : schema_(schema), reader_(frame) {}

  StatusOr<Message> Whole() {
    Message message;
    if (reader_.Peek() == Kind::kArray) {
      PORTICO_RETURN_IF_ERROR(Tagged(&message));
    } else {
      const Kind kind = reader_.Peek();
      if (kind != Kind::kInt && kind != Kind::kFloat && kind != Kind::kBool && kind != Kind::kBin) {
        return Wrong("a message");
      }
      PORTICO_RETURN_IF_ERROR(Free(&message.fields));
    }
    if (!reader_.done()) return Bad("is followed by other bytes");
    return message;
  }

 private:
  Status Bad(std::string_view what) const {
    std::string place = "$";
    for (const std::string_view part : path_) place += fmt::format(".{}", part);
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("{} (byte {}): {}", place, reader_.offset(), what));
  }
  Status Wrong(std::string_view wanted) const {
    return Bad(fmt::format("expected {}, got {}", wanted, msgpack::KindName(reader_.Peek())));
  }

  Status Tagged(Message* message) {
    Reader ahead = reader_;
    uint32_t size = 0;
    std::string_view tag;
    if (!ahead.Array(&size) || size == 0 || !ahead.Str(&tag)) return Bad("has no tag");
    if (!schema_.IsMessage(tag)) return Bad(fmt::format("no message {:.60}", tag));
    message->tag = tag;
    return Struct(*schema_.Find(tag), &message->fields);
  }

  static Value DefaultOf(const Field& field) {
    return field.default_known ? field.default_value : Value();
  }

  Status Struct(const StructLayout& layout, Value* value) {
    return layout.array_like ? StructArray(layout, value) : StructMap(layout, value);
  }

  Status StructArray(const StructLayout& layout, Value* value) {
    uint32_t size = 0;
    if (!reader_.Array(&size)) return Wrong("an array");
    if (size < layout.min_length) {
      return Bad(fmt::format("has {} items, {} needs {}", size, layout.name, layout.min_length));
    }
    uint32_t at = 0;
    if (!layout.tag.empty()) {
      std::string_view tag;
      if (!reader_.Str(&tag) || tag != layout.tag) return Bad("has another tag");
      ++at;
    }
    Map fields;
    fields.reserve(layout.fields.size());
    for (const Field& field : layout.fields) {
      Value item;
      if (at < size) {
        ++at;
        path_.push_back(field.name);
        PORTICO_RETURN_IF_ERROR(Any(field.type, &item));
        path_.pop_back();
      } else {
        item = DefaultOf(field);
      }
      fields.emplace_back(field.name, std::move(item));
    }
    for (; at < size; ++at) {
      if (!reader_.Skip()) return Bad("is malformed");
    }
    *value = std::move(fields);
    return OkStatus();
  }

  Status StructMap(const StructLayout& layout, Value* value) {
    uint32_t size = 0;
    if (!reader_.Map(&size)) return Wrong("a map");
    Map fields;
    fields.reserve(layout.fields.size());
    for (const Field& field : layout.fields) fields.emplace_back(field.name, DefaultOf(field));
    std::vector<bool> seen(layout.fields.size(), false);
    for (uint32_t i = 0; i < size; ++i) {
      std::string_view name;
      if (!reader_.Str(&name)) return Wrong("a field's name");
      const int at = layout.IndexOf(name);
      if (at < 0) {
        if (!reader_.Skip()) return Bad("is malformed");
        continue;
      }
      const auto index = static_cast<size_t>(at);
      path_.push_back(layout.fields[index].name);
      PORTICO_RETURN_IF_ERROR(Any(layout.fields[index].type, &fields[index].second));
      path_.pop_back();
      seen[index] = true;
    }
    for (size_t i = 0; i < seen.size(); ++i) {
      if (layout.fields[i].required && !seen[i]) {
        return Bad(fmt::format("lacks {}", layout.fields[i].name));
      }
    }
    *value = std::move(fields);
    return OkStatus();
  }

  Status Any(const Type& type, Value* value) {
    if (++depth_ > kMaxDepth) return Bad("is nested too deeply");
    PORTICO_RETURN_IF_ERROR(Typed(type, value));
    --depth_;
    return OkStatus();
  }

  // Whether the next value is of the kind that this type has on the wire.
  bool Suits(const Type& type) const {
    const Kind next = reader_.Peek();
    switch (type.kind) {
      case Type::Kind::kNil:
        return next == Kind::kNil;
      case Type::Kind::kBool:
        return next == Kind::kBool;
      case Type::Kind::kInt:
        return next == Kind::kInt;
      case Type::Kind::kFloat:
        return next == Kind::kFloat || next == Kind::kInt;
      case Type::Kind::kStr:
        return next == Kind::kStr;
      case Type::Kind::kBin:
        return next == Kind::kBin;
      case Type::Kind::kAny:
        return next != Kind::kEnd;
      case Type::Kind::kBuffer:
        return next == Kind::kArray ||
               (next == Kind::kExt && schema_.ExtensionOf(type.buffer) >= 0);
      case Type::Kind::kList:
      case Type::Kind::kTuple:
        return next == Kind::kArray;
      case Type::Kind::kMap:
        return next == Kind::kMap;
      case Type::Kind::kStruct:
        return next == (type.layout->array_like ? Kind::kArray : Kind::kMap);
      case Type::Kind::kEnum:
      case Type::Kind::kLiteral:
        return next == Kind::kStr || next == Kind::kInt;
      case Type::Kind::kUnion:
        return std::any_of(type.parts.begin(), type.parts.end(),
                           [&](const Type& part) { return Suits(part); });
    }
    return false;
  }

  // Of a union: an integer is an int rather than a float where there are both.
  const Type* Alternative(const Type& type) const {
    const Type* found = nullptr;
    for (const Type& part : type.parts) {
      if (!Suits(part)) continue;
      if (found == nullptr || part.kind == Type::Kind::kInt) found = &part;
    }
    return found;
  }

  Status Typed(const Type& type, Value* value) {
    if (type.kind == Type::Kind::kUnion) {
      const Type* part = Alternative(type);
      return part == nullptr ? Wrong("another type") : Any(*part, value);
    }
    if (!Suits(type)) return Wrong("another type");
    switch (type.kind) {
      case Type::Kind::kFloat: {
        double number = 0;
        if (!reader_.Float(&number)) return Bad("is malformed");
        *value = number;
        return OkStatus();
      }
      case Type::Kind::kBuffer:
        return ReadBuffer(type.buffer, value);
      case Type::Kind::kList:
        return ReadList(&type.parts, false, value);
      case Type::Kind::kTuple:
        return ReadList(&type.parts, true, value);
      case Type::Kind::kMap:
        return ReadMap(type.parts[0], type.parts[1], value);
      case Type::Kind::kStruct:
        return Struct(*type.layout, value);
      case Type::Kind::kEnum:
      case Type::Kind::kLiteral:
        PORTICO_RETURN_IF_ERROR(Free(value));
        if (std::find(type.values.begin(), type.values.end(), *value) == type.values.end()) {
          return Bad("is none of the values allowed");
        }
        return OkStatus();
      default:
        return Free(value);
    }
  }

  Status ReadList(const std::vector<Type>* parts, bool tuple, Value* value) {
    uint32_t size = 0;
    if (!reader_.Array(&size)) return Bad("is malformed");
    if (tuple && size != parts->size()) return Bad("has another number of items");
    List list;
    for (uint32_t i = 0; i < size; ++i) {
      list.emplace_back();
      PORTICO_RETURN_IF_ERROR(Any((*parts)[tuple ? i : 0], &list.back()));
    }
    *value = std::move(list);
    return OkStatus();
  }

  Status ReadMap(const Type& key, const Type& item, Value* value) {
    uint32_t size = 0;
    if (!reader_.Map(&size)) return Bad("is malformed");
    Map map;
    for (uint32_t i = 0; i < size; ++i) {
      map.emplace_back();
      PORTICO_RETURN_IF_ERROR(Any(key, &map.back().first));
      PORTICO_RETURN_IF_ERROR(Any(item, &map.back().second));
    }
    *value = std::move(map);
    return OkStatus();
  }

  Status Free(Value* value) {
    switch (reader_.Peek()) {
      case Kind::kNil:
        reader_.Nil();
        *value = Value();
        break;
      case Kind::kBool: {
        bool flag = false;
        reader_.Bool(&flag);
        *value = flag;
        break;
      }
      case Kind::kInt: {
        uint64_t bits = 0;
        bool negative = false;
        reader_.Integer(&bits, &negative);
        *value = negative ? Value(static_cast<int64_t>(bits)) : Value(bits);
        break;
      }
      case Kind::kFloat: {
        double number = 0;
        reader_.Float(&number);
        *value = number;
        break;
      }
      case Kind::kStr: {
        std::string_view text;
        reader_.Str(&text);
        *value = text;
        break;
      }
      case Kind::kBin: {
        std::string_view bytes;
        reader_.Bin(&bytes);
        *value = Bytes{std::string(bytes)};
        break;
      }
      case Kind::kArray: {
        static const std::vector<Type> kAnything(1);
        return ReadList(&kAnything, false, value);
      }
      case Kind::kMap: {
        static const Type kAnything;
        return ReadMap(kAnything, kAnything, value);
      }
      case Kind::kExt: {
        Extension extension;
        std::string_view bytes;
        if (!reader_.Ext(&extension.code, &bytes)) return Bad("is malformed");
        for (const auto kind :
             {Buffer::Kind::kArray, Buffer::Kind::kTensor, Buffer::Kind::kNdarray}) {
          if (schema_.ExtensionOf(kind) == extension.code) return Unframe(kind, bytes, value);
        }
        extension.bytes = bytes;
        *value = std::move(extension);
        break;
      }
      case Kind::kEnd:
        return Bad("ends early");
    }
    return reader_.failed() ? Bad("is malformed") : OkStatus();
  }

  static bool ReadShape(Reader* from, Buffer* buffer) {
    uint32_t size = 0;
    if (!from->Array(&size)) return false;
    for (uint32_t i = 0; i < size; ++i) {
      int64_t length = 0;
      if (!from->Int(&length) || length < 0) return false;
      buffer->shape.push_back(length);
    }
    return true;
  }

  Status Checked(Buffer buffer, Value* value) {
    if (buffer.kind == Buffer::Kind::kArray) {
      const size_t item = ArrayItemSize(buffer.dtype);
      if (item == 0 || buffer.bytes.size() % item != 0) return Bad("is no whole array");
    }
    *value = std::move(buffer);
    return OkStatus();
  }

  Status Unframe(Buffer::Kind kind, std::string_view framed, Value* value) {
    if (framed.size() < 4) return Bad("a buffer without its frame");
    uint32_t size = 0;
    for (int i = 0; i < 4; ++i) size = size << 8 | static_cast<uint8_t>(framed[i]);
    framed.remove_prefix(4);
    if (size > framed.size()) return Bad("a buffer without its frame");
    Reader meta(framed.substr(0, size));
    Buffer buffer;
    buffer.kind = kind;
    std::string_view text;
    uint32_t parts = 0;
    if (kind != Buffer::Kind::kArray &&
        (!meta.Array(&parts) || parts < 2 || !ReadShape(&meta, &buffer))) {
      return Bad("a buffer with another frame");
    }
    if (!meta.Str(&text)) return Bad("a buffer with another frame");
    buffer.dtype = text;
    if (parts > 2) {
      if (!meta.Str(&text)) return Bad("a buffer with another frame");
      buffer.device = text;
    }
    buffer.bytes = framed.substr(size);
    return Checked(std::move(buffer), value);
  }

  Status ReadBuffer(Buffer::Kind kind, Value* value) {
    if (reader_.Peek() == Kind::kExt) {
      int8_t code = 0;
      std::string_view bytes;
      if (!reader_.Ext(&code, &bytes) || code != schema_.ExtensionOf(kind)) {
        return Bad("is no buffer of that kind");
      }
      return Unframe(kind, bytes, value);
    }
    uint32_t parts = 0;
    Buffer buffer;
    buffer.kind = kind;
    std::string_view dtype;
    std::string_view bytes;
    std::string_view device;
    const bool array = kind == Buffer::Kind::kArray;
    const bool good = reader_.Array(&parts) && (array ? parts == 2 : parts == 3 || parts == 4) &&
                      (array || ReadShape(&reader_, &buffer)) && reader_.Str(&dtype) &&
                      reader_.Bin(&bytes) && (parts != 4 || reader_.Str(&device));
    if (!good) return Bad("is no buffer");
    buffer.dtype = dtype;
    buffer.bytes = bytes;
    if (kind == Buffer::Kind::kTensor) buffer.device = parts == 4 ? device : "cpu";
    return Checked(std::move(buffer), value);
  }

  const Schema& schema_;
  Reader reader_;
  int depth_ = 0;
  std::vector<std::string_view> path_;
};

}  // namespace

StatusOr<Message> DecodeMessage(const Schema& schema, std::string_view frame) {
  return Decoder(schema, frame).Whole();
}

std::string_view PeekTag(std::string_view frame) {
  Reader reader(frame);
  uint32_t size = 0;
  std::string_view tag;
  return reader.Array(&size) && size > 0 && reader.Str(&tag) ? tag : std::string_view();
}

}  // namespace portico::sglang
