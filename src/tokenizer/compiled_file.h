// The bytes of a compiled tokenizer: what a file holds, and how it is read without trusting it.
//
//   magic (8 bytes), format (u32), zero (u32), key (16), payload size (u64), checksum (16), payload
//
// Numbers are little-endian. The checksum is XXH3's of 128 bits over the payload, seeded by the key, so that a cut
// file, a flipped bit, another format or another content's file under this name are all seen before a field is read.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace portico::tokenizer {

static_assert(std::endian::native == std::endian::little);

// Raise it whenever a loader makes something else of the same source, or the payload's layout changes.
inline constexpr uint32_t kCompiledFormat = 2;

struct ContentKey {
  uint64_t low = 0;
  uint64_t high = 0;
  std::string Hex() const;
  friend bool operator==(const ContentKey&, const ContentKey&) = default;
};

// The key of `content`. `salt` tells installations apart: without it nobody can make two files of one key.
ContentKey KeyOfContent(std::string_view content, std::string_view salt);

// The file for a payload, and back; nothing where the file is not wholly the one that was written for `key`.
std::string SealCompiled(const ContentKey& key, std::string_view payload);
std::optional<std::string_view> OpenCompiled(const ContentKey& key, std::string_view file);

class CompiledWriter {
 public:
  template <typename T>
  void Number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    out_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  // With its length.
  void Text(std::string_view text) {
    Number<uint64_t>(text.size());
    out_.append(text);
  }
  // With their number. Rows must have no padding.
  template <typename Row>
  void Rows(const std::vector<Row>& rows) {
    Rows(rows.data(), rows.size());
  }
  template <typename Row>
  void Rows(const Row* rows, size_t count) {
    static_assert(std::has_unique_object_representations_v<Row> || std::is_floating_point_v<Row>);
    Number<uint64_t>(count);
    out_.append(reinterpret_cast<const char*>(rows), count * sizeof(Row));
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// Each call is false where the payload ends too early; nothing outside it is read.
class CompiledReader {
 public:
  explicit CompiledReader(std::string_view payload) : rest_(payload) {}

  template <typename T>
  bool Number(T* out) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    if (rest_.size() < sizeof(T)) return false;
    std::memcpy(out, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return true;
  }
  bool Flag(bool* out) {
    uint8_t value = 0;
    if (!Number(&value) || value > 1) return false;
    *out = value == 1;
    return true;
  }
  bool Text(std::string_view* out) {
    uint64_t size = 0;
    if (!Number(&size) || size > rest_.size()) return false;
    *out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  template <typename Row>
  bool Rows(std::vector<Row>* out) {
    static_assert(std::is_trivially_copyable_v<Row>);
    uint64_t count = 0;
    if (!Number(&count) || count > rest_.size() / sizeof(Row)) return false;
    out->resize(count);
    if (count > 0) std::memcpy(out->data(), rest_.data(), count * sizeof(Row));
    rest_.remove_prefix(count * sizeof(Row));
    return true;
  }
  // Exactly `count` of them.
  template <typename Row>
  bool Rows(Row* out, size_t count) {
    static_assert(std::is_trivially_copyable_v<Row>);
    uint64_t stored = 0;
    if (!Number(&stored) || stored != count || count > rest_.size() / sizeof(Row)) return false;
    if (count > 0) std::memcpy(out, rest_.data(), count * sizeof(Row));
    rest_.remove_prefix(count * sizeof(Row));
    return true;
  }
  // How many rows come next, without a step.
  uint64_t NextCount() const {
    uint64_t count = 0;
    CompiledReader(*this).Number(&count);
    return count;
  }
  size_t size() const { return rest_.size(); }
  bool AtEnd() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace portico::tokenizer
