#include "api/unknown_path.h"

#include <algorithm>
#include <iterator>

namespace portico::api {
namespace {

constexpr std::string_view kVersion = "/v1";
constexpr std::string_view kChats = "/v1/chat/completions";
constexpr std::string_view kTexts = "/v1/completions";
constexpr std::string_view kVectors = "/v1/embeddings";

struct OthersApi {
  std::string_view path;  // and all below it
  std::string_view api;
  std::string_view instead;  // does the same here; empty: nothing does
};
constexpr OthersApi kOthersApis[] = {
    // The first one that suits.
    {"/api/chat", "Ollama's API", kChats},
    {"/api/embed", "Ollama's API", kVectors},
    {"/api/embeddings", "Ollama's API", kVectors},
    {"/api/generate", "Ollama's API", kTexts},
    {"/api/tags", "Ollama's API", "/v1/models"},
    {"/api", "Ollama's API", ""},
    {"/apply-template", "llama-server's POST /apply-template", ""},
    {"/completion", "llama-server's POST /completion", kTexts},
    {"/embedding", "llama-server's POST /embedding", kVectors},
    {"/infill", "llama-server's POST /infill", ""},
    {"/props", "llama-server's /props", "/get_server_info"},
    {"/slots", "llama-server's /slots", "/v1/loads"},
    {"/v1/assistants", "the Assistants API", kChats},
    {"/v1/batches", "the Batch API", ""},
    {"/v1/conversations", "the Conversations API", ""},
    {"/v1/files", "the Files API", ""},
    {"/v1/images", "the Images API", ""},
    {"/v1/messages", "Anthropic's API", kChats},
    {"/v1/moderations", "the Moderations API", ""},
    {"/v1/responses", "the Responses API", kChats},
};

bool IsBelow(std::string_view path, std::string_view above) {
  return path.starts_with(above) && (path.size() == above.size() || path[above.size()] == '/');
}

// The route that was meant; empty: none is near.
std::string Meant(std::string_view path, absl::FunctionRef<bool(std::string_view path)> has) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (has(path)) return std::string(path);
  const std::string longer = std::string(kVersion).append(path);
  if (has(longer)) return longer;
  if (!path.starts_with("/v1/")) return {};
  path.remove_prefix(kVersion.size());
  return has(path) ? std::string(path) : std::string();
}

}  // namespace

std::string UnknownPath(std::string_view method, std::string_view path,
                        absl::FunctionRef<bool(std::string_view path)> has) {
  std::string text("unknown path: ");
  text.append(method).append(" ").append(path);
  const auto* other =
      std::find_if(std::begin(kOthersApis), std::end(kOthersApis),
                   [path](const OthersApi& api) { return IsBelow(path, api.path); });
  if (other != std::end(kOthersApis)) {
    text.append("; this server does not have ").append(other->api);
    if (!other->instead.empty() && has(other->instead))
      text.append(": use ").append(other->instead);
    return text;
  }
  const std::string meant = Meant(path, has);
  if (meant.empty()) return text;
  text.append("; did you mean ").append(meant).append("?");
  if (meant.starts_with("/v1/")) text.append(" (base URLs of OpenAI's clients end with /v1)");
  return text;
}

}  // namespace portico::api
