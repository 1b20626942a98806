#include "engine/sglang/native_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace portico::sglang {
namespace {

constexpr std::string_view kTensors = "serialized_named_tensors";
// SGLang's front end makes them only while no request runs, or while the generation is paused.
constexpr std::string_view kWeightCalls[] = {
    "BeginWeightUpdateReqInput", "EndWeightUpdateReqInput", "UpdateWeightsFromDistributedReqInput",
    "UpdateWeightsFromIPCReqInput", "UpdateWeightsFromTensorReqInput"};

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
  if (message == "InitWeightsUpdateGroupReqInput") {
    const Value* name = fields.Find("group_name");
    const auto* text = name == nullptr ? nullptr : name->As<std::string>();
    if (text != nullptr && text->empty()) {
      return InvalidArgument("group_name", "group_name must not be empty");
    }
  }
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
