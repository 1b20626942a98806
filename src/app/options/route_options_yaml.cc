// The file of --config of `portico route`, and lists of workers.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/options/nearest_name.h"
#include "app/options/options_table.h"
#include "app/options/route_options.h"
#include "app/options/route_options_models.h"
#include "app/options/route_options_table.h"
#include "pipeline/config/yaml_value.h"

namespace portico {
namespace {

// Somebody may be writing it: it does not mean that there are no workers any more.
constexpr std::string_view kEmptyFile = ": it is empty";

Status Bad(std::string message) { return Error(StatusCode::kInvalidArgument, std::move(message)); }

std::string DashedKey(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

// An endpoint, or what the server's own --kv-events-config says, as text or as a mapping.
Status SetKvEvents(const YAML::Node& node, router::WorkerSpec* spec) {
  Json value = JsonObject{};
  if (node.IsScalar()) {
    value = Json(node.as<std::string>());
  } else {
    for (const auto& entry : node) {
      const auto key = entry.first.as<std::string>();
      const YAML::Node& member = entry.second;
      if (member.IsNull()) {
        value.Set(key, nullptr);
      } else if (key == "dp_size") {
        value.Set(key, member.as<int64_t>());
      } else if (key == "bind") {
        value.Set(key, member.as<bool>());
      } else {
        value.Set(key, member.as<std::string>());
      }
    }
  }
  auto address = router::ReadKvAddress(value);
  if (!address.ok()) return Bad(fmt::format("kv-events: {}", MessageOf(address.status())));
  if (spec->protocol == router::Protocol::kGrpc) {
    return Bad("kv-events: grpc workers send them over gRPC");
  }
  spec->kv_events = *std::move(address);
  return OkStatus();
}

Status ReadWorkerField(const std::string& key, const YAML::Node& value, router::WorkerSpec* spec) {
  if (key == "url") return OkStatus();
  if (key == "role") return SetRole(value.as<std::string>(), spec);
  if (key == "bootstrap-port") return SetBootstrapPort(value.as<std::string>(), spec);
  if (key == "kv-events") return SetKvEvents(value, spec);
  if (key == "api-key") {
    spec->api_key = value.as<std::string>();
    if (!router::IsHeaderKey(spec->api_key)) return Bad("api-key has other than printable ASCII");
  } else if (key == "models") {
    spec->models = value.as<std::vector<std::string>>();
  } else if (key == "max-requests") {
    spec->max_requests = value.as<int64_t>();
    if (spec->max_requests < 0 || spec->max_requests > router::kMaxWorkerRequests) {
      return Bad(fmt::format("max-requests is not in 0..{}", router::kMaxWorkerRequests));
    }
  } else if (key == "labels") {
    if (!value.IsMap()) return Bad("labels must be a mapping");
    for (const auto& label : value) {
      spec->labels.emplace_back(label.first.as<std::string>(), label.second.as<std::string>());
    }
  } else {
    constexpr std::string_view kKeys[] = {"url",     "role",         "bootstrap-port", "kv-events",
                                          "api-key", "max-requests", "models",         "labels"};
    return Bad(fmt::format("unknown key `{}` of a worker{}", key, DidYouMean(key, kKeys)));
  }
  return OkStatus();
}

// *line becomes that of what is wrong.
StatusOr<router::WorkerSpec> ReadWorker(const YAML::Node& node, int* line) {
  *line = node.Mark().line;
  if (node.IsScalar()) return router::ParseWorkerUrl(node.as<std::string>());
  if (!node.IsMap() || !node["url"] || !node["url"].IsScalar()) {
    return Bad("each of `workers` must be a URL, or have a `url`");
  }
  PORTICO_ASSIGN_OR_RETURN(router::WorkerSpec spec,
                           router::ParseWorkerUrl(node["url"].as<std::string>()));
  std::set<std::string> seen;
  for (const auto& entry : node) {
    *line = entry.first.Mark().line;
    const std::string key = DashedKey(entry.first.as<std::string>());
    if (!seen.insert(key).second) return Bad(fmt::format("`{}` of a worker is set twice", key));
    try {
      PORTICO_RETURN_IF_ERROR(ReadWorkerField(key, entry.second, &spec));
    } catch (const YAML::Exception& error) {
      return Bad(fmt::format("{} of a worker: {}", key, error.msg));
    }
  }
  return spec;
}

// "unknown key `prot`; did you mean `port`?"
std::string UnknownKey(const std::string& key) {
  std::string why = fmt::format("unknown key `{}`", key);
  if (FindOption(key) != nullptr) {
    return why +
           "; it is one of `portico serve`, and this file is for `portico route` (portico serve "
           "--config FILE --check)";
  }
  std::vector<std::string_view> names;
  for (const RouteOption& option : RouteOptionTable()) names.push_back(option.name);
  names.push_back("workers");
  names.push_back("models");
  return why + DidYouMean(DashedKey(key), names);
}

// Each URL of --worker-urls, --prefill or --decode, where its line is known.
Status CheckUrls(const YAML::Node& urls, int* line) {
  for (const YAML::Node& node : urls) {
    const auto url = node.as<std::string>();
    if (url.find("://") == std::string::npos) continue;  // a prefill worker's port, or none
    *line = node.Mark().line;
    PORTICO_RETURN_IF_ERROR(router::ParseWorkerUrl(url).status());
  }
  return OkStatus();
}

// `option`: that of the key; null: the key is `workers` or `models`.
// *line is that of the key, and becomes that of what is wrong below it.
Status ApplyEntry(const std::string& key, const RouteOption* option, const YAML::Node& value,
                  const std::string& file, RouteOptions* options, int* line) {
  if (key == "workers") {
    if (!value.IsSequence()) return Bad("must be a list");
    for (const YAML::Node& node : value) {
      PORTICO_ASSIGN_OR_RETURN(router::WorkerSpec spec, ReadWorker(node, line));
      options->workers.push_back(std::move(spec));
    }
    return OkStatus();
  }
  if (option == nullptr) return ReadModelTexts(value, file, options, line);
  const std::string_view name = option->name;
  if (name == "aliases" && value.IsMap()) {
    for (const auto& entry : value) {
      options->model_aliases.push_back(
          fmt::format("{}={}", entry.first.as<std::string>(), entry.second.as<std::string>()));
    }
    return OkStatus();
  }
  if (name == "prometheus-port") options->prometheus_port_given = true;
  if (name == "policy") options->policy_given = true;
  if (value.IsSequence() && option->is_list()) {
    if (name == "worker-urls" || name == "prefill" || name == "decode") {
      PORTICO_RETURN_IF_ERROR(CheckUrls(value, line));
    }
    return SetRouteOption(*option, value.as<std::vector<std::string>>(), options);
  }
  if (!value.IsScalar()) return Bad("must be one value");
  return SetRouteOption(*option, {value.as<std::string>()}, options);
}

}  // namespace

const RouteOption* RouteOptionOfKey(const std::string& key) {
  const std::string name = DashedKey(key);
  for (const RouteOption& option : RouteOptionTable()) {
    if (option.name == name && name != "config") return &option;
  }
  return nullptr;
}

Status ApplyRouteYaml(const std::string& text, const std::string& file, RouteOptions* options,
                      RouteKeyLines* lines) {
  try {
    const YAML::Node root = pipeline::LoadOneDocument(text);
    if (root.IsNull()) return Bad(fmt::format("{}{}", file, kEmptyFile));
    if (!root.IsMap()) return Bad(file + ": it is not a mapping");
    for (const auto& entry : root) {
      const std::string key = entry.first.as<std::string>();
      int line = entry.first.Mark().line;
      const auto bad = [&](std::string_view why) {
        return Bad(fmt::format("{}:{}: {}: {}", file, line + 1, key, why));
      };
      const RouteOption* option = RouteOptionOfKey(key);
      if (option == nullptr && key != "workers" && key != "models") {
        return Bad(fmt::format("{}:{}: {}", file, line + 1, UnknownKey(key)));
      }
      if (!lines->emplace(DashedKey(key), line + 1).second) return bad("the key is there twice");
      try {
        const Status applied = ApplyEntry(key, option, entry.second, file, options, &line);
        if (!applied.ok()) return bad(MessageOf(applied));
      } catch (const YAML::Exception& error) {
        return bad(error.msg);
      }
    }
  } catch (const YAML::Exception& error) {
    return Bad(fmt::format("{}:{}: {}", file, error.mark.line + 1, error.msg));
  }
  return OkStatus();
}

StatusOr<std::vector<router::WorkerSpec>> ReadWorkerList(const std::string& text,
                                                         const std::string& file) {
  try {
    const YAML::Node root = pipeline::LoadOneDocument(text);
    if (root.IsNull()) return Bad(fmt::format("{}{}", file, kEmptyFile));
    if (!root.IsSequence()) return Bad(file + ": it is not a list of workers");
    std::vector<router::WorkerSpec> workers;
    for (const YAML::Node& node : root) {
      int line = 0;
      auto spec = ReadWorker(node, &line);
      if (!spec.ok()) {
        return Bad(fmt::format("{}:{}: {}", file, line + 1, MessageOf(spec.status())));
      }
      workers.push_back(*std::move(spec));
    }
    return workers;
  } catch (const YAML::Exception& error) {
    return Bad(fmt::format("{}:{}: {}", file, error.mark.line + 1, error.msg));
  }
}

}  // namespace portico
