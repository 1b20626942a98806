#include "engine/sglang/load_snapshot.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "message/msgpack/reader.h"

namespace portico::sglang {
namespace {

using msgpack::Kind;
using msgpack::Reader;

constexpr size_t kHeaderBytes = 12;

template <typename T>
T Read(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

bool ParseRank(std::string_view map, RankLoad* load) {
  Reader reader(map);
  uint32_t size = 0;
  if (!reader.Map(&size)) return false;
  for (uint32_t i = 0; i < size; ++i) {
    std::string_view key;
    if (!reader.Str(&key)) return false;
    int64_t* to = nullptr;
    if (key == "num_running_reqs") to = &load->running;
    if (key == "num_waiting_reqs") to = &load->waiting;
    if (key == "num_used_tokens") to = &load->used_tokens;
    if (key == "max_total_num_tokens") to = &load->max_total_tokens;
    if (to != nullptr && reader.Peek() == Kind::kInt) {
      if (!reader.Int(to)) return false;
    } else if (!reader.Skip()) {
      return false;
    }
  }
  return reader.done();
}

}  // namespace

std::vector<RankLoad> ParseLoads(std::string_view file) {
  std::vector<RankLoad> loads;
  if (file.size() < kHeaderBytes || !file.starts_with("SLNS") || Read<uint16_t>(file, 4) != 2) {
    return loads;
  }
  const size_t ranks = Read<uint16_t>(file, 6);
  const size_t slot = Read<uint32_t>(file, 8);
  if (slot < sizeof(uint32_t)) return loads;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const size_t at = kHeaderBytes + rank * slot;
    if (at + slot > file.size()) break;
    const size_t length = Read<uint32_t>(file, at);
    RankLoad load;
    if (length == 0 || length > slot - sizeof(uint32_t)) continue;
    if (ParseRank(file.substr(at + sizeof(uint32_t), length), &load)) loads.push_back(load);
  }
  return loads;
}

std::vector<RankLoad> ReadLoads(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return ParseLoads(bytes.str());
}

}  // namespace portico::sglang
