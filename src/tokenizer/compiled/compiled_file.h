// The bytes of a compiled tokenizer: what a file holds, and how it is read without trusting it.
//
//   magic (8 bytes), format (u32), zero (u32), key (16), payload size (u64), checksum (16), payload
//
// Numbers are little-endian. The rows of tables begin at multiples of 64 bytes, so that they are used where they lie once
// the file is in memory (compiled_image.h): a load then costs reading and checking, not building. The checksum is XXH3's of 128 bits over the payload, seeded by the key, so that a cut
// file, a flipped bit, another format or another content's file under this name are all seen before a field is read.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tokenizer/compiled/stored_rows.h"

namespace portico::tokenizer {

static_assert(std::endian::native == std::endian::little);

// Raise it whenever a loader makes something else of the same source, or the payload's layout changes.
inline constexpr uint32_t kCompiledFormat = 7;
// Of rows and parts, from the payload's begin on.
inline constexpr size_t kCompiledAlignment = 64;

struct ContentKey {
  uint64_t low = 0;
  uint64_t high = 0;
  std::string Hex() const;
  friend bool operator==(const ContentKey&, const ContentKey&) = default;
};

// The key of `content`. `salt` tells installations apart: without it nobody can make two files of one key.
ContentKey KeyOfContent(std::string_view content, std::string_view salt);

// What a file has before its payload; and the payload back, nothing where the file is not wholly the one that was
// written for `key`.
std::string CompiledHeader(const ContentKey& key, std::string_view payload);
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
  // What `save(this)` writes, with its length, at a multiple of kCompiledAlignment.
  template <typename Save>
  void PartOf(Save save) {
    const size_t size_at = out_.size();
    Number<uint64_t>(0);
    Align();
    const size_t begin = out_.size();
    save(this);
    const uint64_t size = out_.size() - begin;
    std::memcpy(out_.data() + size_at, &size, sizeof(size));
  }
  // Room for so many bytes: a system gives pages only when they are written.
  void Reserve(size_t bytes) { out_.reserve(bytes); }
  // With their number. Rows must have no padding.
  template <typename Row>
  void Rows(const StoredRows<Row>& rows) {
    Rows(rows.data(), rows.size());
  }
  template <typename Row>
  void Rows(const std::vector<Row>& rows) {
    Rows(rows.data(), rows.size());
  }
  template <typename Row>
  void Rows(const Row* rows, size_t count) {
    static_assert(std::has_unique_object_representations_v<Row> || std::is_floating_point_v<Row>);
    Number<uint64_t>(count);
    Align();
    if (count > 0) out_.append(reinterpret_cast<const char*>(rows), count * sizeof(Row));
  }
  std::string Take() { return std::move(out_); }

 private:
  void Align() { out_.append(-out_.size() % kCompiledAlignment, '\0'); }

  std::string out_;
};

// Each call is false where the payload ends too early; nothing outside it is read. What is not copied refers to it.
class CompiledReader {
 public:
  explicit CompiledReader(std::string_view payload) : payload_(payload), rest_(payload) {}

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
  bool Part(std::string_view* out) {
    std::span<const char> bytes;
    if (!Span(&bytes)) return false;
    *out = {bytes.data(), bytes.size()};
    return true;
  }
  // A view of them.
  template <typename Row>
  bool Rows(StoredRows<Row>* out) {
    std::span<const Row> rows;
    if (!Span(&rows)) return false;
    *out = StoredRows<Row>::View(rows);
    return true;
  }
  template <typename Row>
  bool Rows(std::vector<Row>* out) {
    std::span<const Row> rows;
    if (!Span(&rows)) return false;
    out->assign(rows.begin(), rows.end());
    return true;
  }
  bool AtEnd() const { return rest_.empty(); }

 private:
  // False too where the payload does not lie at a place for such rows.
  template <typename Row>
  bool Span(std::span<const Row>* out) {
    static_assert(std::is_trivially_copyable_v<Row> && alignof(Row) <= kCompiledAlignment);
    uint64_t count = 0;
    if (!Number(&count)) return false;
    size_t skipped = -(payload_.size() - rest_.size()) % kCompiledAlignment;
    if (skipped > rest_.size()) return false;
    rest_.remove_prefix(skipped);
    if (count > rest_.size() / sizeof(Row)) return false;
    if (reinterpret_cast<uintptr_t>(rest_.data()) % alignof(Row) != 0) return false;
    *out = {reinterpret_cast<const Row*>(rest_.data()), count};
    rest_.remove_prefix(count * sizeof(Row));
    return true;
  }

  std::string_view payload_;
  std::string_view rest_;
};

}  // namespace portico::tokenizer
