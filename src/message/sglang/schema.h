// The layouts of SGLang's scheduler messages, read from a manifest that the installed package printed. SGLang's wire is
// positional and its fields move between releases, so nothing here knows a position by itself.
//
// A manifest is what python/portico/sglang_manifest.py prints; docs/sglang.md describes it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "message/sglang/value.h"
#include "text/json.h"

namespace portico::sglang {

struct StructLayout;

// A declared type: "list<int|nil>|nil", "struct:SamplingParams", `literal<"a","b">` and so on.
struct Type {
  enum class Kind : uint8_t {
    kNil,
    kBool,
    kInt,
    kFloat,
    kStr,
    kBin,
    kAny,
    kBuffer,
    kList,  // sets too: an array either way
    kTuple,
    kMap,
    kUnion,
    kEnum,
    kStruct,
    kLiteral,
  };
  Kind kind = Kind::kAny;
  Buffer::Kind buffer = Buffer::Kind::kArray;  // kBuffer
  std::vector<Type> parts;                     // of lists (1), maps (2), tuples and unions
  std::string name;                            // of enums and structs
  std::vector<Value> values;                   // that a literal or an enum may have
  const StructLayout* layout = nullptr;        // kStruct

  // INVALID_ARGUMENT for a text that is no type. Enums and structs are bound by the schema.
  static StatusOr<Type> Parse(std::string_view text);
};

struct Field {
  std::string name;
  std::string type_text;
  Type type;
  bool required = false;
  Value default_value;         // unless required
  bool default_known = true;   // false: the default is made by code
  std::string default_binary;  // encoded; empty where the default is not known
};

struct StructLayout {
  std::string name;
  std::string tag;  // empty: untagged
  bool array_like = true;
  bool omit_defaults = false;
  size_t min_length = 0;      // of the array, the tag included
  std::vector<Field> fields;  // in wire order; of an array-like with a tag, number i is at i + 1

  const Field* Find(std::string_view field) const;
  // Position in `fields`, or -1.
  int IndexOf(std::string_view field) const;
  size_t first() const { return array_like && !tag.empty() ? 1 : 0; }
};

// Immutable once parsed; does not move, since types point into it.
class Schema {
 public:
  // Refuses with INVALID_ARGUMENT what is no manifest of version 1, and names the struct and field at fault.
  static StatusOr<std::shared_ptr<const Schema>> Parse(const Json& manifest);
  Schema() = default;
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  const std::string& sglang_version() const { return version_; }
  // Null if the package has none of that name.
  const StructLayout* Find(std::string_view name) const;
  // Whether a message may consist of this struct.
  bool IsMessage(std::string_view name) const;
  // The msgpack extension for buffers of that kind, or -1: they are arrays.
  int ExtensionOf(Buffer::Kind kind) const { return extensions_[static_cast<size_t>(kind)]; }

 private:
  Status ReadBuffers(const Json& manifest);
  Status ReadStructs(const Json& manifest);
  Status BindTypes();
  Status Bind(Type* type);
  Status EncodeDefaults();

  std::string version_;
  int extensions_[3] = {-1, -1, -1};
  std::map<std::string, std::vector<Value>, std::less<>> enums_;
  std::map<std::string, StructLayout, std::less<>> structs_;
  std::vector<std::string> messages_;  // sorted
};

}  // namespace portico::sglang
