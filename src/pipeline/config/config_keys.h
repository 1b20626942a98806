// The keys of a pipeline's configuration.
#pragma once

#include <yaml-cpp/yaml.h>

#include <span>
#include <string_view>

#include "base/status.h"
#include "pipeline/config/yaml_value.h"

namespace portico::pipeline {

inline constexpr std::string_view kPipelineKeys[] = {"name",
                                                     "model_path",
                                                     "entry_stage",
                                                     "stages",
                                                     "timeout_s",
                                                     "max_in_flight",
                                                     "voices",
                                                     "processes",
                                                     "env_defaults",
                                                     "fused_stages",
                                                     "allowed_media_domains",
                                                     "allowed_local_media_path"};
inline constexpr std::string_view kStageKeys[] = {"name",
                                                  "factory_path",
                                                  "factory",
                                                  "next",
                                                  "stream_to",
                                                  "terminal",
                                                  "route_fn",
                                                  "wait_for",
                                                  "merge_fn",
                                                  "timeout_s",
                                                  "stall_timeout_s",
                                                  "hop_timeout_s",
                                                  "max_queued",
                                                  "process",
                                                  "restart",
                                                  "replay",
                                                  "python",
                                                  "env",
                                                  "gpu",
                                                  "project_payload",
                                                  "wait_for_fn",
                                                  "stream_done_to_fn",
                                                  "can_accept_stream_before_payload"};

// INVALID_ARGUMENT at a key that is not one of `known`, or is there twice.
Status CheckKeys(const YAML::Node& map, std::span<const std::string_view> known,
                 const YamlFile& file);

}  // namespace portico::pipeline
