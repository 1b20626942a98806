#include "engine/sglang/native_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace portico::sglang {
namespace {

constexpr std::string_view kTensors = "serialized_named_tensors";
// SGLang's front end makes them only while no request runs, or while the generation is paused.
constexpr std::string_view kWeightCalls[] = {
    "BeginWeightUpdateReqInput", "EndWeightUpdateReqInput", "UpdateWeightsFromDistributedReqInput",
    "UpdateWeightsFromIPCReqInput", "UpdateWeightsFromTensorReqInput"};

// SGLang's front end makes them with one data-parallel rank only: every rank would take the same place in the group.
constexpr std::string_view kOneRankCalls[] = {
    "DestroyWeightsUpdateGroupReqInput",    "InitWeightsSendGroupForRemoteInstanceReqInput",
    "InitWeightsUpdateGroupReqInput",       "SendWeightsToRemoteInstanceReqInput",
    "UpdateWeightsFromDistributedReqInput", "UpdateWeightsFromIPCReqInput"};

// The flag that the call gives, or that the package fills in.
bool FlagOf(const StructLayout& layout, const Value& fields, std::string_view name) {
  const Value* given = fields.Find(name);
  const Field* field = layout.Find(name);
  if (given == nullptr && field != nullptr && !field->required) given = &field->default_value;
  const bool* flag = given == nullptr ? nullptr : given->As<bool>();
  return flag != nullptr && *flag;
}

Status CheckThresholds(const Value& fields) {
  const Value* value = fields.Find("gc_threshold");
  if (value == nullptr || value->is_nil()) return OkStatus();
  const List* list = value->As<List>();
  const bool good = list != nullptr && !list->empty() && list->size() <= 3 &&
                    std::all_of(list->begin(), list->end(), [](const Value& each) {
                      const auto* number = each.As<int64_t>();
                      return number != nullptr && *number >= 0 && *number <= INT32_MAX;
                    });
  if (good) return OkStatus();
  return InvalidArgument("gc_threshold", "gc_threshold must have one to three numbers");
}

// A sleep longer than Python's time.sleep() takes ends the scheduler.
Status CheckSleep(const Value& fields) {
  constexpr double kMostSeconds = 3600;
  const Value* value = fields.Find("forward_sleep_time");
  if (value == nullptr) return OkStatus();
  double seconds = 0;
  if (const auto* real = value->As<double>()) seconds = *real;
  if (const auto* whole = value->As<int64_t>()) seconds = static_cast<double>(*whole);
  if (const auto* whole = value->As<uint64_t>()) seconds = static_cast<double>(*whole);
  if (seconds <= kMostSeconds) return OkStatus();  // SGLang takes 0 and less for none
  return InvalidArgument(
      "forward_sleep_time",
      fmt::format("forward_sleep_time must be null or at most {} seconds", kMostSeconds));
}

Status CheckLoadFormat(const Value& fields, const Facts& facts) {
  const Value* value = fields.Find("load_format");
  const auto* format = value == nullptr ? nullptr : value->As<std::string>();
  if (format == nullptr || *format == "direct" || *format == "flattened_bucket") return OkStatus();
  const auto& own = facts.weight_loaders;
  if (std::find(own.begin(), own.end(), *format) != own.end()) return OkStatus();
  return InvalidArgument("load_format",
                         "load_format must be \"direct\", \"flattened_bucket\" or one of SGLang's "
                         "--custom-weight-loader");
}

// Of remote instances: a port for each tensor-parallel rank, separated by commas.
Status CheckPorts(const Value& fields, const Facts& facts) {
  const Value* value = fields.Find("ports");
  const auto* text = value == nullptr ? nullptr : value->As<std::string>();
  std::vector<std::string> ports;
  if (text != nullptr) ports = absl::StrSplit(*text, ',');
  const bool good = std::all_of(ports.begin(), ports.end(), [](const std::string& port) {
    int number = 0;
    return absl::SimpleAtoi(port, &number) && number > 0 && number <= 65535;
  });
  const auto ranks = static_cast<size_t>(std::max(facts.tensor_parallel_size, 1));
  if (good && ports.size() == ranks) return OkStatus();
  return InvalidArgument(
      "ports", fmt::format("ports must name a port for each of the {} tensor-parallel ranks, "
                           "separated by commas",
                           ranks));
}

Status RequireText(const Value& fields, std::string_view field) {
  const Value* value = fields.Find(field);
  const auto* text = value == nullptr ? nullptr : value->As<std::string>();
  if (text != nullptr && !text->empty()) return OkStatus();
  return InvalidArgument(field, fmt::format("{} is required and must not be empty", field));
}

bool IsListOfIds(const Value& value, int32_t vocab_size) {
  const List* ids = value.As<List>();
  return ids != nullptr && !ids->empty() &&
         std::all_of(ids->begin(), ids->end(), [vocab_size](const Value& each) {
           const auto* id = each.As<int64_t>();
           return id != nullptr && *id >= 0 && *id < vocab_size;
         });
}

// SGLang's front end makes token ids of texts and files; here they come as ids.
Status CheckCorpus(const Value& fields, const Facts& facts) {
  for (const std::string_view field : {"documents", "file_path"}) {
    const Value* value = fields.Find(field);
    if (value == nullptr || value->is_nil()) continue;
    return InvalidArgument(field, fmt::format("{} is not supported: give token_chunks, lists of "
                                              "token ids as /tokenize makes them",
                                              field));
  }
  PORTICO_RETURN_IF_ERROR(RequireText(fields, "corpus_id"));
  const Value* value = fields.Find("token_chunks");
  const List* chunks = value == nullptr ? nullptr : value->As<List>();
  const bool good = chunks != nullptr && !chunks->empty() &&
                    std::all_of(chunks->begin(), chunks->end(), [&facts](const Value& chunk) {
                      return IsListOfIds(chunk, facts.vocab_size);
                    });
  if (good) return OkStatus();
  return InvalidArgument("token_chunks",
                         "token_chunks is required and must have lists of token ids of the model's "
                         "vocabulary");
}

}  // namespace

Status CheckTensors(const Value& fields, const Facts& facts) {
  const Value* value = fields.Find(kTensors);
  const List* list = value == nullptr ? nullptr : value->As<List>();
  const auto ranks = static_cast<size_t>(std::max(facts.tensor_parallel_size, 1));
  if (list == nullptr || list->size() < ranks) {
    return InvalidArgument(
        kTensors, fmt::format("{} must have an entry for each of the {} tensor-parallel ranks",
                              kTensors, ranks));
  }
  // What is in them is between the client and SGLang, but what is no pickle at all ends the engine.
  for (const Value& each : *list) {
    const auto* bytes = each.As<Bytes>();
    if (bytes != nullptr && bytes->bytes.starts_with('\x80') && bytes->bytes.ends_with('.')) {
      continue;
    }
    return InvalidArgument(
        kTensors,
        fmt::format("{} must hold what SGLang's MultiprocessingSerializer makes", kTensors));
  }
  return OkStatus();
}

Status CheckNativeCall(std::string_view message, const Value& fields, const Facts& facts) {
  if (message == "ExpertDistributionReq" && !facts.records_experts) {
    return Error(StatusCode::kFailedPrecondition,
                 "SGLang records experts with --expert-distribution-recorder-mode only");
  }
  if (message == "ReleaseMemoryOccupationReqInput" && facts.device == "cpu") {
    return Error(StatusCode::kFailedPrecondition, "SGLang releases memory of GPUs only");
  }
  if (facts.ranks > 1 && std::find(std::begin(kOneRankCalls), std::end(kOneRankCalls), message) !=
                             std::end(kOneRankCalls)) {
    return Error(StatusCode::kFailedPrecondition,
                 "SGLang does this with one data-parallel rank only");
  }
  if (message == "InitWeightsSendGroupForRemoteInstanceReqInput" ||
      message == "SendWeightsToRemoteInstanceReqInput") {
    PORTICO_RETURN_IF_ERROR(CheckPorts(fields, facts));
  }
  if (message == "AddExternalCorpusReqInput") return CheckCorpus(fields, facts);
  if (message == "RemoveExternalCorpusReqInput") return RequireText(fields, "corpus_id");
  if (message == "AttachHiCacheStorageReqInput") {
    return RequireText(fields, "hicache_storage_backend");
  }
  if (message == "InitWeightsUpdateGroupReqInput" ||
      message == "InitWeightsSendGroupForRemoteInstanceReqInput" ||
      message == "SendWeightsToRemoteInstanceReqInput") {
    const Value* name = fields.Find("group_name");
    const auto* text = name == nullptr ? nullptr : name->As<std::string>();
    if (text != nullptr && text->empty()) {
      return InvalidArgument("group_name", "group_name must not be empty");
    }
  }
  if (message == "SlowDownReqInput") return CheckSleep(fields);
  if (message == "FreezeGCReq") return CheckThresholds(fields);
  if (message == "UpdateWeightsFromTensorReqInput") {
    PORTICO_RETURN_IF_ERROR(CheckLoadFormat(fields, facts));
    return CheckTensors(fields, facts);
  }
  return OkStatus();
}

bool AbortsRequests(const StructLayout& layout, const Value& fields) {
  return FlagOf(layout, fields, "abort_all_requests");
}

SchedulerLink::Terms TermsOfNativeCall(const StructLayout& layout, const Value& fields) {
  if (layout.name == "ReleaseMemoryOccupationReqInput") {
    return {.no_running = true, .free_cells = true, .no_wait = true};
  }
  if (std::find(std::begin(kWeightCalls), std::end(kWeightCalls), layout.name) ==
      std::end(kWeightCalls)) {
    return {};
  }
  return {.no_aborted = AbortsRequests(layout, fields),
          .no_running = true,
          .free_cells = FlagOf(layout, fields, "flush_cache")};
}

}  // namespace portico::sglang
