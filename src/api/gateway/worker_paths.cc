#include "api/gateway/worker_paths.h"

#include <algorithm>
#include <iterator>

namespace portico::api {
namespace {

constexpr std::string_view kForAll[] = {"/abort_request",
                                        "/abort_requests",
                                        "/add_external_corpus",
                                        "/begin_weight_update",
                                        "/clear_hicache_storage_backend",
                                        "/collective_rpc",
                                        "/configure_logging",
                                        "/continue_generation",
                                        "/destroy_weights_update_group",
                                        "/dump_expert_distribution_record",
                                        "/end_weight_update",
                                        "/finish_weight_update",
                                        "/flush_cache",
                                        "/freeze_gc",
                                        "/get_hicache_l3_cache_layout",
                                        "/get_internal_state",
                                        "/get_world_size",
                                        "/hicache/storage-backend",
                                        "/hicache/storage-backend/clear",
                                        "/init_weight_transfer_engine",
                                        "/init_weights_update_group",
                                        "/is_paused",
                                        "/is_sleeping",
                                        "/list_external_corpora",
                                        "/load",
                                        "/load_lora_adapter",
                                        "/load_lora_adapter_from_tensors",
                                        "/pause",
                                        "/pause_generation",
                                        "/release_memory_occupation",
                                        "/remove_external_corpus",
                                        "/reset_encoder_cache",
                                        "/reset_mm_cache",
                                        "/reset_prefix_cache",
                                        "/resume",
                                        "/resume_memory_occupation",
                                        "/set_internal_state",
                                        "/set_trace_level",
                                        "/sleep",
                                        "/slow_down",
                                        "/start_draft_weight_update",
                                        "/start_expert_distribution_record",
                                        "/start_profile",
                                        "/start_request_profile",
                                        "/start_weight_update",
                                        "/stop_expert_distribution_record",
                                        "/stop_profile",
                                        "/stop_request_profile",
                                        "/unload_lora_adapter",
                                        "/update_weight_version",
                                        "/update_weights",
                                        "/update_weights_from_disk",
                                        "/update_weights_from_distributed",
                                        "/update_weights_from_ipc",
                                        "/update_weights_from_tensor",
                                        "/v1/load_lora_adapter",
                                        "/v1/unload_lora_adapter",
                                        "/wake_up",
                                        "/weight_checker",
                                        "/weight_info",
                                        "/weights_checker"};

// For all too, and clients' own: a session must be there on whichever worker its requests come to.
constexpr std::string_view kSessions[] = {"/close_session", "/open_session"};

// Beside everything below /v1/, /v2/ and /api/.
constexpr std::string_view kForOne[] = {"/classify",
                                        "/detokenize",
                                        "/embed",
                                        "/encode",
                                        "/generate",
                                        "/generative_scoring",
                                        "/get_model_info",
                                        "/get_server_info",
                                        "/health_generate",
                                        "/inference/v1/generate",
                                        "/invocations",
                                        "/model_info",
                                        "/parse/function_call",
                                        "/parse/reasoning",
                                        "/parse_function_call",
                                        "/pooling",
                                        "/rerank",
                                        "/score",
                                        "/separate_reasoning",
                                        "/server_info",
                                        "/tokenize",
                                        "/tokenizer_info",
                                        "/version",
                                        "/vertex_generate"};

// For one too, and operators' own.
constexpr std::string_view kWeightsByName = "/get_weights_by_name";

constexpr std::string_view kOfOneServer[] = {"/fault_tolerance/apply",
                                             "/fault_tolerance/status",
                                             "/get_remote_instance_transfer_engine_info",
                                             "/init_weights_send_group_for_remote_instance",
                                             "/is_scaling_elastic_ep",
                                             "/pd_role_switch",
                                             "/remote_instance_transfer_engine_info",
                                             "/scale_elastic_ep",
                                             "/send_weights_to_remote_instance"};
constexpr std::string_view kDumper = "/dumper/";

constexpr std::string_view kOthers[] = {"/abort_requests",
                                        "/collective_rpc",
                                        "/embed",
                                        "/finish_weight_update",
                                        "/generative_scoring",
                                        "/get_world_size",
                                        "/inference/v1/generate",
                                        "/init_weight_transfer_engine",
                                        "/invocations",
                                        "/is_paused",
                                        "/fault_tolerance/apply",
                                        "/fault_tolerance/status",
                                        "/is_scaling_elastic_ep",
                                        "/is_sleeping",
                                        "/load",
                                        "/pause",
                                        "/pooling",
                                        "/reset_encoder_cache",
                                        "/reset_mm_cache",
                                        "/reset_prefix_cache",
                                        "/resume",
                                        "/scale_elastic_ep",
                                        "/score",
                                        "/sleep",
                                        "/start_draft_weight_update",
                                        "/start_weight_update",
                                        "/tokenizer_info",
                                        "/update_weights",
                                        "/v1/load_lora_adapter",
                                        "/v1/unload_lora_adapter",
                                        "/vertex_generate",
                                        "/wake_up",
                                        "/weight_checker",
                                        "/weight_info"};

constexpr std::string_view kReadings[] = {"/get_hicache_l3_cache_layout",
                                          "/get_internal_state",
                                          "/get_world_size",
                                          "/hicache/storage-backend",
                                          "/is_paused",
                                          "/is_sleeping",
                                          "/list_external_corpora",
                                          "/load",
                                          "/weight_info"};

template <size_t N>
bool IsAmong(std::string_view path, const std::string_view (&paths)[N]) {
  return std::find(std::begin(paths), std::end(paths), path) != std::end(paths);
}

}  // namespace

Recipients RecipientsOf(std::string_view path) {
  if (IsAmong(path, kForAll) || IsAmong(path, kSessions)) return Recipients::kAll;
  if (IsAmong(path, kOfOneServer) || path.starts_with(kDumper)) return Recipients::kItself;
  const bool one = path.starts_with("/v1/") || path.starts_with("/v2/") ||
                   path.starts_with("/api/") || path == kWeightsByName || IsAmong(path, kForOne);
  return one ? Recipients::kOne : Recipients::kNone;
}

bool IsControlPath(std::string_view path) {
  return IsAmong(path, kForAll) || path == kWeightsByName ||
         RecipientsOf(path) == Recipients::kItself;
}

bool GetOnlyReads(std::string_view path) {
  return !IsAmong(path, kForAll) || IsAmong(path, kReadings);
}

std::vector<std::string_view> NamedWorkerPaths() {
  std::vector<std::string_view> paths = {kWeightsByName};
  const auto add = [&](const auto& some) {
    paths.insert(paths.end(), std::begin(some), std::end(some));
  };
  add(kForAll);
  add(kSessions);
  add(kForOne);
  add(kOfOneServer);
  return paths;
}

bool IsOthersPath(std::string_view path) { return IsAmong(path, kOthers); }

}  // namespace portico::api
