#include "app/load/token_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/log.h"
#include "router/policy/make_policy.h"
#include "router/token_fleet.h"

namespace portico {
namespace {

Status BadWorkers(std::string_view why) {
  return Error(StatusCode::kInvalidArgument, fmt::format("--worker-urls: {}", why));
}

StatusOr<std::vector<router::WorkerSpec>> ReadWorkers(const std::string& urls) {
  std::vector<router::WorkerSpec> specs;
  for (const absl::string_view piece :
       absl::StrSplit(urls, absl::ByAnyChar(", "), absl::SkipEmpty())) {
    const std::string url(piece.data(), piece.size());
    const std::string whole = url.find("://") == std::string_view::npos
                                  ? fmt::format("grpc://{}", url)
                                  : std::string(url);
    auto spec = router::ParseWorkerUrl(whole);
    if (!spec.ok()) return BadWorkers(MessageOf(spec.status()));
    if (spec->protocol != router::Protocol::kGrpc) {
      return BadWorkers(
          fmt::format("`{}` is not the URL of a token worker, grpc://host:port", url));
    }
    if (spec->tls)
      return BadWorkers(fmt::format(
          "{}: TLS to token workers is not supported by this command; use `portico route`", url));
    specs.push_back(*std::move(spec));
  }
  if (specs.empty()) {
    return Error(StatusCode::kInvalidArgument, "--engine grpc needs --worker-urls");
  }
  return specs;
}

std::string LocalTokenizer(const TokenWorkerFacts& facts) {
  std::error_code ignored;
  for (const std::string& path : {facts.tokenizer_path, facts.info.model_path}) {
    if (!path.empty() && std::filesystem::exists(path, ignored)) return path;
  }
  return "";
}

}  // namespace

Status CheckTokenWorkers(const ModelOptions& options) {
  return ReadWorkers(options.worker_urls).status();
}

StatusOr<TokenModel> MakeTokenModel(const ModelOptions& options,
                                    const std::vector<net::Shard*>& shards) {
  router::TokenFleetOptions fleet_options;
  PORTICO_ASSIGN_OR_RETURN(fleet_options.workers, ReadWorkers(options.worker_urls));
  const size_t worker_count = fleet_options.workers.size();
  fleet_options.engine.shards = shards;
  PORTICO_ASSIGN_OR_RETURN(std::shared_ptr<router::Policy> policy,
                           router::MakePolicy(options.policy, {}));
  auto fleet = std::make_shared<router::TokenFleet>(std::move(fleet_options));
  fleet->Start();
  PORTICO_ASSIGN_OR_RETURN(TokenWorkerFacts facts,
                           fleet->WaitForFacts(std::chrono::duration_cast<Duration>(
                               std::chrono::duration<double>(options.worker_startup_timeout))));
  if (options.context_length > 0) {
    facts.info.context_length = std::min(facts.info.context_length, options.context_length);
  }
  TokenModel model;
  model.tokenizer_path = LocalTokenizer(facts);
  if (model.tokenizer_path.empty() && options.model_path.empty() &&
      options.tokenizer_path.empty()) {
    return Error(StatusCode::kNotFound,
                 fmt::format("the workers' tokenizer {} is not on this machine: --tokenizer-path "
                             "names a folder with one",
                             facts.tokenizer_path));
  }
  LogInfo("{} token workers, policy {}", worker_count, options.policy);
  model.engine = router::TokenFleet::MakeEngine(std::move(fleet), facts, std::move(policy));
  return model;
}

}  // namespace portico
