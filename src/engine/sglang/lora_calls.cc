// How adapters come and go: loads and unloads that are asked for, those that make room, and those of evicted adapters
// that a request names. Every data-parallel rank answers.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "engine/sglang/engine_state.h"
#include "engine/sglang/native_rules.h"
#include "engine/sglang/wire/json_values.h"

namespace portico::sglang {
namespace {

constexpr std::string_view kLoad = "LoadLoRAAdapterReqInput";
constexpr std::string_view kLoadTensors = "LoadLoRAAdapterFromTensorsReqInput";
constexpr std::chrono::minutes kOwnLoads{5};  // that no caller has a deadline for

StatusOr<Map> AdapterTensors(const Schema& schema, const Facts& facts, const std::string& json) {
  const StructLayout* layout = schema.IsMessage(kLoadTensors) ? schema.Find(kLoadTensors) : nullptr;
  if (layout == nullptr) {
    return Error(
        StatusCode::kFailedPrecondition,
        fmt::format("the installed SGLang, {}, has no {}", schema.sglang_version(), kLoadTensors));
  }
  PORTICO_ASSIGN_OR_RETURN(const Json parsed, Json::Parse(json));
  PORTICO_ASSIGN_OR_RETURN(Map fields, FieldsOfJson(*layout, parsed));
  const Value map(std::move(fields));
  PORTICO_RETURN_IF_ERROR(CheckTensors(map, facts));
  const Value* sums = map.Find("expected_checksums");
  if (sums == nullptr || sums->is_nil()) return *map.As<Map>();
  return InvalidArgument("expected_checksums",
                         "expected_checksums is not supported: SGLang exits if they differ");
}

bool IsGood(const Message& reply) {
  const Value* success = reply.fields.Find("success");
  const bool* said = success == nullptr ? nullptr : success->As<bool>();
  return said != nullptr && *said;
}

// The first rank's refusal, if any.
Status LoraStatus(const SchedulerLink::Replies& replies) {
  for (const Message& reply : replies) {
    if (IsGood(reply)) continue;
    const Value* words = reply.fields.Find("error_message");
    const auto* text = words == nullptr ? nullptr : words->As<std::string>();
    return Error(StatusCode::kInvalidArgument, text == nullptr ? "SGLang refused it" : *text,
                 "lora_name");
  }
  return OkStatus();
}

// Whether a load that has failed has left nothing in any rank.
bool LeftNothing(const StatusOr<SchedulerLink::Replies>& replies, std::string_view name) {
  // One that came too late for its answer may have been done.
  if (!replies.ok()) return replies.status().code() != StatusCode::kDeadlineExceeded;
  return std::none_of(replies->begin(), replies->end(), [name](const Message& reply) {
    const Value* loaded = reply.fields.Find("loaded_adapters");
    return IsGood(reply) || (loaded != nullptr && loaded->Find(name) != nullptr);
  });
}

}  // namespace

void SglangEngine::AddAdapters(const Facts& facts) {
  adapters_.SetLimit(static_cast<size_t>(std::max(facts.max_loaded_loras, 0)));
  for (const LoraFact& lora : facts.loras) {
    adapters_.Add({lora.name, lora.id, lora.path, lora.pinned});
  }
}

void SglangEngine::SendLoad(const LifePtr& life, std::string_view message,
                            const Adapters::Adapter& adapter, Map fields, TimePoint deadline,
                            ControlDone done) {
  fields.emplace_back("lora_name", adapter.name);
  fields.emplace_back("pinned", adapter.pinned);
  fields.emplace_back("lora_id", adapter.id);
  life->link->Call(message, std::move(fields), static_cast<size_t>(life->facts.ranks), deadline,
                   [this, life, name = adapter.name, id = adapter.id,
                    done = std::move(done)](StatusOr<SchedulerLink::Replies> replies) mutable {
                     const Status status = replies.ok() ? LoraStatus(*replies) : replies.status();
                     adapters_.EndLoad(id, status, LeftNothing(replies, name));
                     life->link->RecheckLora(id);
                     if (status.ok()) TrimAdapters(life);
                     done(status);
                   });
}

void SglangEngine::SendUnload(const LifePtr& life, const std::string& name, const std::string& id,
                              TimePoint deadline, ControlDone done) {
  life->link->Call(
      "UnloadLoRAAdapterReqInput", Map{{"lora_name", name}, {"lora_id", id}},
      static_cast<size_t>(life->facts.ranks), deadline,
      [this, id, done = std::move(done)](StatusOr<SchedulerLink::Replies> replies) mutable {
        const Status status = replies.ok() ? LoraStatus(*replies) : replies.status();
        adapters_.EndUnload(id, status.ok());
        done(status);
      });
}

void SglangEngine::TrimAdapters(const LifePtr& life) {
  const MutexLock lock(&adapter_order_);
  while (const std::optional<Adapters::Adapter> oldest = adapters_.StartEviction()) {
    LogInfo("SGLang has more adapters than --max-loaded-loras; `{:.100}` was used least recently",
            oldest->name);
    SendUnload(life, oldest->name, oldest->id, Clock::now() + kOwnLoads,
               [name = oldest->name](const Status& status) {
                 if (status.ok()) return;
                 LogWarning("SGLang keeps the adapter `{:.100}`: {}", name, MessageOf(status));
               });
  }
}

StatusOr<Adapters::Use> SglangEngine::TakeAdapter(const LifePtr& life, std::string_view name,
                                                  std::string_view id) {
  const MutexLock lock(&adapter_order_);
  PORTICO_ASSIGN_OR_RETURN(Adapters::Use use, adapters_.Take(name, id));
  if (use.load) {
    LogInfo("the adapter `{:.100}`, which had been evicted, is loaded again", use.name);
    SendLoad(life, kLoad, *use.load, Map{{"lora_path", use.load->path}}, Clock::now() + kOwnLoads,
             [](const Status&) {});
  }
  return use;
}

void SglangEngine::Do(const LoadLoraControl& control, TimePoint deadline, ControlDone done) {
  const auto life = Life();
  if (!life.ok()) return done(life.status());
  if (!(*life)->facts.lora) return done(CannotControl(info_.name, control));
  Map fields{{"lora_path", control.path}};
  const bool has_path = control.tensors.empty();
  if (!has_path) {
    auto read = AdapterTensors(*(*life)->codec->schema, (*life)->facts, control.tensors);
    if (!read.ok()) return done(read.status());
    fields = *std::move(read);
  }
  const Adapters::Adapter adapter{control.name, NewAdapterId(), control.path, control.pinned};
  const MutexLock lock(&adapter_order_);
  if (Status begun = adapters_.StartLoad(adapter); !begun.ok()) return done(std::move(begun));
  SendLoad(*life, has_path ? kLoad : kLoadTensors, adapter, std::move(fields), deadline,
           std::move(done));
}

void SglangEngine::Do(const UnloadLoraControl& control, TimePoint deadline, ControlDone done) {
  const auto life = Life();
  if (!life.ok()) return done(life.status());
  if (!(*life)->facts.lora) return done(CannotControl(info_.name, control));
  const auto id = adapters_.StartUnload(control.name);
  if (!id.ok()) return done(id.status());
  if (id->empty()) return done(OkStatus());  // it had been evicted
  SendUnload(*life, control.name, *id, deadline, std::move(done));
}

}  // namespace portico::sglang
