#include "tokenizer/compiled/compiled_file.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace portico::tokenizer {
namespace {

constexpr std::string_view kMagic = "PORTICOT";
constexpr size_t kHeader = 64;

struct Header {
  char magic[8] = {};
  uint32_t format = kCompiledFormat;
  uint32_t zero = 0;
  ContentKey key;
  uint64_t size = 0;
  uint64_t check_low = 0;
  uint64_t check_high = 0;
  uint64_t reserved = 0;
};
static_assert(sizeof(Header) == kHeader);

Header HeaderOf(const ContentKey& key, std::string_view payload) {
  Header header;
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.key = key;
  header.size = payload.size();
  XXH128_hash_t check =
      XXH3_128bits_withSeed(payload.data(), payload.size(), key.low ^ key.high ^ kCompiledFormat);
  header.check_low = check.low64;
  header.check_high = check.high64;
  return header;
}

}  // namespace

std::string ContentKey::Hex() const { return fmt::format("{:016x}{:016x}", high, low); }

ContentKey KeyOfContent(std::string_view content, std::string_view salt) {
  uint64_t seed = XXH3_64bits_withSeed(salt.data(), salt.size(), kCompiledFormat);
  XXH128_hash_t hash = XXH3_128bits_withSeed(content.data(), content.size(), seed);
  return {hash.low64, hash.high64};
}

std::string CompiledHeader(const ContentKey& key, std::string_view payload) {
  const Header header = HeaderOf(key, payload);
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

std::optional<std::string_view> OpenCompiled(const ContentKey& key, std::string_view file) {
  if (file.size() < kHeader) return std::nullopt;
  std::string_view payload = file.substr(kHeader);
  Header expected = HeaderOf(key, payload);
  if (std::memcmp(&expected, file.data(), kHeader) != 0) return std::nullopt;
  return payload;
}

}  // namespace portico::tokenizer
