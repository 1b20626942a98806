#include "router/proxy/usage_tail.h"

#include <charconv>

namespace portico::router {
namespace {

constexpr size_t kUsageTail = 1024;
constexpr std::string_view kPromptTokensKey = "\"prompt_tokens\":";

}  // namespace

std::optional<int64_t> FindPromptTokens(std::string_view piece) {
  while (!piece.empty() && (piece.back() == '\n' || piece.back() == '\r')) piece.remove_suffix(1);
  const bool ends = piece.ends_with("[DONE]") || (piece.ends_with('}') && !piece.ends_with("]}") &&
                                                  !piece.ends_with("\"usage\":null}"));
  if (!ends) return std::nullopt;
  if (piece.size() > kUsageTail) piece.remove_prefix(piece.size() - kUsageTail);
  // Within a string the key's quotes are escaped.
  const size_t at = piece.rfind(kPromptTokensKey);
  if (at == std::string_view::npos) return std::nullopt;
  piece.remove_prefix(at + kPromptTokensKey.size());
  while (!piece.empty() && piece.front() == ' ') piece.remove_prefix(1);
  int64_t count = 0;
  const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), count);
  if (error != std::errc() || end == piece.data() + piece.size() || count < 1) return std::nullopt;
  return count;
}

}  // namespace portico::router
