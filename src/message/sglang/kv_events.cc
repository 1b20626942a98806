#include "message/sglang/kv_events.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "message/msgpack/reader.h"

namespace portico::sglang {
namespace {

using msgpack::Kind;
using msgpack::Reader;

constexpr size_t kMaxBlocks = size_t{1} << 20;  // of one message

// A hash is 64 bits, with or without a sign. Of a digest its last 8 bytes count, which is what vLLM writes as a number.
bool ReadHash(Reader* reader, int64_t* hash) {
  uint64_t bits = 0;
  if (reader->Peek() == Kind::kBin) {
    std::string_view digest;
    if (!reader->Bin(&digest)) return false;
    for (const char byte : digest) bits = bits << 8 | static_cast<unsigned char>(byte);
    *hash = static_cast<int64_t>(bits);
    return true;
  }
  bool negative = false;
  if (!reader->Integer(&bits, &negative)) return false;
  *hash = static_cast<int64_t>(bits);
  return true;
}

template <typename T, typename Read>
bool ReadList(Reader* reader, std::vector<T>* list, Read read) {
  uint32_t size = 0;
  if (reader->TakeNil()) return true;
  if (!reader->Array(&size) || size > kMaxBlocks) return false;
  list->resize(size);
  for (T& item : *list) {
    if (!read(reader, &item)) return false;
  }
  return true;
}

std::optional<int32_t> LevelOf(std::string_view medium) {
  constexpr std::pair<std::string_view, int32_t> kMedia[] = {
      {"GPU", 0}, {"CPU_PINNED", 1}, {"CPU", 1}, {"DISK", 2}, {"STORAGE", 2}, {"EXTERNAL", 3}};
  for (const auto& [name, level] : kMedia) {
    if (medium == name) return level;
  }
  return std::nullopt;
}

// The members of all events.
struct Members {
  std::vector<int64_t> hashes;
  std::optional<int64_t> parent;
  std::vector<int32_t> tokens;
  int64_t block_size = 0;
  std::optional<int64_t> lora_id;
  std::optional<int32_t> level;
  size_t plain = SIZE_MAX;  // so many of the blocks are named by their tokens alone
  bool foreign = false;     // of another cache than the one that counts
};

bool ReadToken(Reader* reader, int32_t* token, Members* members) {
  if (reader->Peek() == Kind::kArray) {
    members->plain = 0;
    return reader->Skip();
  }
  int64_t value = 0;
  if (!reader->Int(&value) || value < 0 || value > INT32_MAX) return false;
  *token = static_cast<int32_t>(value);
  return true;
}

// What names the blocks beside their tokens, by block.
bool ReadExtraKeys(Reader* reader, Members* members) {
  uint32_t size = 0;
  if (reader->TakeNil()) return true;
  if (reader->Peek() != Kind::kArray) {
    members->plain = 0;
    return reader->Skip();
  }
  if (!reader->Array(&size)) return false;
  for (uint32_t i = 0; i < size; ++i) {
    if (reader->TakeNil()) continue;
    members->plain = std::min<size_t>(members->plain, i);
    if (!reader->Skip()) return false;
  }
  return true;
}

bool ReadMember(std::string_view name, Reader* reader, Members* members) {
  if (name == "block_hashes") return ReadList(reader, &members->hashes, ReadHash);
  if (name == "token_ids") {
    return ReadList(reader, &members->tokens, [members](Reader* from, int32_t* token) {
      return ReadToken(from, token, members);
    });
  }
  if (name == "extra_keys") return ReadExtraKeys(reader, members);
  if (name == "lora_name" || name == "cache_salt") {
    if (reader->TakeNil()) return true;
    members->plain = 0;
    return reader->Skip();
  }
  if (name == "group_idx" && reader->Peek() == Kind::kInt) {
    int64_t group = 0;
    if (!reader->Int(&group)) return false;
    members->foreign |= group != 0;
    return true;
  }
  if (name == "locality" && reader->Peek() == Kind::kStr) {
    std::string_view locality;
    if (!reader->Str(&locality)) return false;
    members->foreign |= locality == "REMOTE";
    return true;
  }
  if (name == "block_size") return reader->TakeNil() || reader->Int(&members->block_size);
  if (name == "parent_block_hash") {
    int64_t parent = 0;
    if (reader->TakeNil()) return true;
    if (!ReadHash(reader, &parent)) return false;
    members->parent = parent;
    return true;
  }
  if (name == "lora_id" && reader->Peek() == Kind::kInt) {
    int64_t id = 0;
    if (!reader->Int(&id)) return false;
    members->lora_id = id;
    return true;
  }
  if (name == "medium" && reader->Peek() == Kind::kStr) {
    std::string_view medium;
    if (!reader->Str(&medium)) return false;
    members->level = LevelOf(medium);
    return true;
  }
  return reader->Skip();
}

// The places of an event that is an array.
constexpr std::array<std::string_view, 9> kStoredMembers{
    "block_hashes", "parent_block_hash", "token_ids",  "block_size", "lora_id",
    "medium",       "lora_name",         "extra_keys", "group_idx"};
constexpr std::array<std::string_view, 2> kRemovedMembers{"block_hashes", "medium"};

bool ReadArray(uint32_t size, Reader* reader, std::string* type, Members* members) {
  std::string_view name;
  if (size == 0 || !reader->Str(&name)) return false;
  *type = name;
  for (uint32_t i = 0; i + 1 < size; ++i) {
    std::string_view member = "";
    if (*type == "BlockStored" && i < kStoredMembers.size()) member = kStoredMembers[i];
    if (*type == "BlockRemoved" && i < kRemovedMembers.size()) member = kRemovedMembers[i];
    if (!ReadMember(member, reader, members)) return false;
  }
  return true;
}

bool ReadMap(uint32_t size, Reader* reader, std::string* type, Members* members) {
  for (uint32_t i = 0; i < size; ++i) {
    std::string_view name;
    std::string_view value;
    if (!reader->Str(&name)) return false;
    if (name != "type") {
      if (!ReadMember(name, reader, members)) return false;
    } else if (!reader->Str(&value)) {
      return false;
    } else {
      *type = value;
    }
  }
  return true;
}

// Tokens of the blocks, whose last may be short.
bool FillBlocks(Members& members, KvEvent* event) {
  const auto size = static_cast<size_t>(std::max<int64_t>(members.block_size, 1));
  if (members.plain > 0 && members.tokens.size() > size * members.hashes.size()) return false;
  for (size_t i = 0; i < std::min(members.hashes.size(), members.plain); ++i) {
    KvBlock& block = event->blocks.emplace_back();
    block.hash = members.hashes[i];
    block.lora_id = members.lora_id;
    const size_t begin = std::min(i * size, members.tokens.size());
    const size_t end = std::min(begin + size, members.tokens.size());
    block.tokens.assign(members.tokens.begin() + static_cast<ptrdiff_t>(begin),
                        members.tokens.begin() + static_cast<ptrdiff_t>(end));
  }
  event->parent = members.parent;
  return true;
}

bool ReadEvent(Reader* reader, KvEventBatch* batch, size_t* unknown) {
  std::string type;
  Members members;
  uint32_t size = 0;
  const bool is_map = reader->Peek() == Kind::kMap;
  const bool read = is_map ? reader->Map(&size) && ReadMap(size, reader, &type, &members)
                           : reader->Array(&size) && ReadArray(size, reader, &type, &members);
  if (!read) return false;
  KvEvent event;
  event.level = members.level;
  if (type == "BlockStored") {
    event.kind = KvEvent::Kind::kStored;
    if (!FillBlocks(members, &event)) return false;
  } else if (type == "BlockRemoved") {
    event.kind = KvEvent::Kind::kRemoved;
    event.removed = std::move(members.hashes);
  } else if (type != "AllBlocksCleared") {
    ++*unknown;
    return true;
  }
  const bool empty = event.kind == KvEvent::Kind::kStored && event.blocks.empty();
  if (members.foreign || empty) return true;
  batch->events.push_back(std::move(event));
  return true;
}

constexpr std::array<std::string_view, 3> kBatchParts{"ts", "events", "data_parallel_rank"};

struct BatchParts {
  bool timestamp = false;
  bool events = false;
};

bool ReadPart(std::string_view name, Reader* reader, KvEventBatch* batch, size_t* unknown,
              BatchParts* seen) {
  if (name == "ts") {
    seen->timestamp = true;
    return reader->Float(&batch->timestamp);
  }
  if (name == "events") {
    seen->events = true;
    uint32_t events = 0;
    if (!reader->Array(&events)) return false;
    for (uint32_t i = 0; i < events; ++i) {
      if (!ReadEvent(reader, batch, unknown)) return false;
    }
    return true;
  }
  const bool is_rank = name == "data_parallel_rank" || name == "attn_dp_rank";
  if (!is_rank || reader->Peek() != Kind::kInt) return reader->Skip();
  int64_t rank = -1;
  if (!reader->Int(&rank)) return false;
  if (rank >= 0 && rank <= INT32_MAX) batch->rank = static_cast<int32_t>(rank);
  return true;
}

}  // namespace

bool ReadKvEvents(std::string_view message, KvEventBatch* batch, size_t* unknown) {
  Reader reader(message);
  uint32_t parts = 0;
  size_t not_known = 0;
  BatchParts seen;
  const bool is_map = reader.Peek() == Kind::kMap;
  if (!(is_map ? reader.Map(&parts) : reader.Array(&parts))) return false;
  for (uint32_t i = 0; i < parts; ++i) {
    std::string_view name = i < kBatchParts.size() ? kBatchParts[i] : "";
    if (is_map && !reader.Str(&name)) return false;
    if (!ReadPart(name, &reader, batch, &not_known, &seen)) return false;
  }
  if (unknown != nullptr) *unknown += not_known;
  return reader.done() && seen.timestamp && seen.events;
}

}  // namespace portico::sglang
