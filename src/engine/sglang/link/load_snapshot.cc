#include "engine/sglang/link/load_snapshot.h"

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
constexpr int kReadings = 4;  // a slot is empty for microseconds

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
  load->tokens_per_second = load->cache_hit_rate = 0;  // what is left out is 0
  for (uint32_t i = 0; i < size; ++i) {
    std::string_view key;
    if (!reader.Str(&key)) return false;
    int64_t* to = nullptr;
    double* rate = nullptr;
    if (key == "num_running_reqs") to = &load->running;
    if (key == "num_waiting_reqs") to = &load->waiting;
    if (key == "num_used_tokens") to = &load->used_tokens;
    if (key == "max_total_num_tokens") to = &load->max_total_tokens;
    if (key == "gen_throughput") rate = &load->tokens_per_second;
    if (key == "cache_hit_rate") rate = &load->cache_hit_rate;
    const Kind kind = reader.Peek();
    if (to != nullptr && kind == Kind::kInt) {
      if (!reader.Int(to)) return false;
    } else if (rate != nullptr && (kind == Kind::kInt || kind == Kind::kFloat)) {
      if (!reader.Float(rate)) return false;
    } else if (!reader.Skip()) {
      return false;
    }
  }
  load->known = reader.done();
  return load->known;
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
    RankLoad& load = loads.emplace_back();
    if (length == 0 || length > slot - sizeof(uint32_t)) continue;
    if (!ParseRank(file.substr(at + sizeof(uint32_t), length), &load)) load = RankLoad{};
  }
  return loads;
}

std::vector<RankLoad> ReadLoads(const std::string& path) {
  if (path.empty()) return {};
  const auto is_known = [](const RankLoad& load) { return load.known; };
  std::vector<RankLoad> loads;
  for (int i = 0; i < kReadings; ++i) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    loads = ParseLoads(bytes.str());
    if (std::all_of(loads.begin(), loads.end(), is_known)) return loads;
  }
  if (std::none_of(loads.begin(), loads.end(), is_known)) loads.clear();
  return loads;
}

}  // namespace portico::sglang
