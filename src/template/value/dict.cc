#include "template/value/dict.h"

#include <cmath>
#include <cstring>

#include "template/run/failure.h"
#include "template/value/bigint.h"
#include "template/value/operations.h"

namespace portico::jinja {
namespace {

constexpr uint32_t kLinearSize = 8;  // up to here a scan beats an index

uint64_t Mix(uint64_t x) {
  x ^= x >> 32;
  x *= 0x9E3779B97F4A7C15;
  return x ^ x >> 29;
}

void Index(Dict* dict, uint32_t entry) {
  uint32_t at = static_cast<uint32_t>(dict->entries[entry].hash) & dict->bucket_mask;
  while (dict->buckets[at] != 0) at = (at + 1) & dict->bucket_mask;
  dict->buckets[at] = entry + 1;
}

void Grow(Dict* dict, Arena* arena) {
  uint32_t capacity = dict->capacity == 0 ? 4 : dict->capacity * 2;
  auto* entries = arena->NewArray<DictEntry>(capacity);
  if (dict->size != 0) std::memcpy(entries, dict->entries, dict->size * sizeof(DictEntry));
  dict->entries = entries;
  dict->capacity = capacity;
  if (capacity <= kLinearSize) return;
  dict->buckets = arena->NewArray<uint32_t>(size_t{capacity} * 2);
  std::memset(dict->buckets, 0, size_t{capacity} * 2 * sizeof(uint32_t));
  dict->bucket_mask = capacity * 2 - 1;
  for (uint32_t i = 0; i < dict->size; ++i) Index(dict, i);
}

template <typename Same>
DictEntry* FindEntry(const Dict* dict, uint64_t hash, Same same) {
  if (dict->buckets == nullptr) {
    for (uint32_t i = 0; i < dict->size; ++i) {
      if (dict->entries[i].hash == hash && same(dict->entries[i].key)) return &dict->entries[i];
    }
    return nullptr;
  }
  for (uint32_t at = static_cast<uint32_t>(hash) & dict->bucket_mask; dict->buckets[at] != 0;
       at = (at + 1) & dict->bucket_mask) {
    DictEntry* entry = &dict->entries[dict->buckets[at] - 1];
    if (entry->hash == hash && same(entry->key)) return entry;
  }
  return nullptr;
}

uint64_t HashKeyAt(Value key, int depth) {
  switch (key.kind) {
    case Kind::kString:
      return HashText(key.str());
    case Kind::kBool:
    case Kind::kInt:
      return Mix(static_cast<uint64_t>(key.small_int()) + 1);
    case Kind::kBigInt:
      return Mix(
          static_cast<uint64_t>(static_cast<int64_t>(std::fmod(IntegerToDouble(key), 1e15))));
    case Kind::kFloat:
      if (std::trunc(key.d) == key.d && std::fabs(key.d) < 9e18) {
        return Mix(static_cast<uint64_t>(static_cast<int64_t>(key.d)) + 1);
      }
      if (!std::isfinite(key.d)) return Mix(77);
      return Mix(static_cast<uint64_t>(static_cast<int64_t>(std::fmod(key.d, 1e15))));
    case Kind::kNone:
      return 0x1234567;
    case Kind::kUndefined:
      return 0x7654321;
    case Kind::kTuple: {
      if (depth > 100) LimitReached("values are nested too deeply");
      uint64_t hash = 0x345678;
      for (size_t i = 0; i < key.items->size; ++i) {
        hash = Mix(hash ^ HashKeyAt(key.items->data[i], depth + 1));
      }
      return hash;
    }
    case Kind::kList:
    case Kind::kJsonList:
    case Kind::kDict:
    case Kind::kJsonDict:
    case Kind::kDictView:
      Fail("unhashable type: '", TypeName(key), "'");
    default:
      return Mix(static_cast<uint64_t>(key.i));
  }
}

}  // namespace

uint64_t HashText(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325 ^ text.size();
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    hash = Mix(hash ^ word) * 0x100000001B3;
  }
  uint64_t rest = 0;
  if (i < text.size()) std::memcpy(&rest, text.data() + i, text.size() - i);
  return Mix(hash ^ rest);
}

uint64_t HashKey(Value key) { return HashKeyAt(key, 0); }

bool SameKey(Value a, Value b) {
  if (a.is_string() && b.is_string()) return a.str() == b.str();
  if (a.is_number() && b.is_number()) return NumbersEqual(a, b);
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kNone:
    case Kind::kUndefined:
      return true;
    case Kind::kTuple:
      if (a.items->size != b.items->size) return false;
      for (size_t i = 0; i < a.items->size; ++i) {
        if (!SameKey(a.items->data[i], b.items->data[i])) return false;
      }
      return true;
    default:
      return a.i == b.i;
  }
}

const Value* DictFind(const Dict* dict, Value key) {
  DictEntry* entry = FindEntry(dict, HashKey(key), [&](Value k) { return SameKey(k, key); });
  return entry ? &entry->value : nullptr;
}

const Value* DictFind(const Dict* dict, std::string_view key) {
  DictEntry* entry =
      FindEntry(dict, HashText(key), [&](Value k) { return k.is_string() && k.str() == key; });
  return entry ? &entry->value : nullptr;
}

void DictSet(Dict* dict, Value key, Value value, Arena* arena) {
  const uint64_t hash = HashKey(key);
  if (DictEntry* entry = FindEntry(dict, hash, [&](Value k) { return SameKey(k, key); })) {
    entry->value = value;
    return;
  }
  if (dict->size == dict->capacity) Grow(dict, arena);
  dict->entries[dict->size] = {key, value, hash};
  if (dict->buckets != nullptr) Index(dict, dict->size);
  ++dict->size;
}

const Json* JsonFind(const JsonObject& object, std::string_view key) {
  for (const auto& [name, value] : object) {
    if (name == key) return &value;
  }
  return nullptr;
}

}  // namespace portico::jinja
