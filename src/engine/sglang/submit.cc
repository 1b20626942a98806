// Requests, with what they name and the media that they wait for, as messages to the scheduler.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/sglang/engine_state.h"
#include "engine/sglang/wire/wire_requests.h"

namespace portico::sglang {

StatusOr<SglangEngine::Extras> SglangEngine::ResolveExtras(const LifePtr& life,
                                                           const RequestExtras& extras) {
  Extras resolved;
  if (extras.session) {
    PORTICO_ASSIGN_OR_RETURN(
        resolved.session_rid,
        sessions_.WireRidOf(extras.session->id, extras.session->rid, Clock::now()));
  }
  if (!extras.lora_path.empty() || !extras.lora_id.empty()) {
    PORTICO_ASSIGN_OR_RETURN(resolved.lora, TakeAdapter(life, extras.lora_path, extras.lora_id));
  }
  return resolved;
}

Status SglangEngine::Submit(GenerateRequest request, TokenSink* sink) {
  PORTICO_ASSIGN_OR_RETURN(const LifePtr life, Life());
  if (!life->facts.is_generation) {
    return Error(StatusCode::kFailedPrecondition, "this model returns vectors, not tokens");
  }
  PORTICO_RETURN_IF_ERROR(CheckRoom(*life, 1));
  SchedulerLink::Stream stream;
  stream.id = request.stream;
  stream.tokens = sink;
  stream.logprobs = request.return_logprobs;
  stream.prompt_logprobs_start = request.prompt_logprobs_start;
  const std::string rid = life->link->RidOf(request.stream);
  WireNames names;
  names.rid = rid;
  Extras extras;
  if (request.extras != nullptr) {
    PORTICO_ASSIGN_OR_RETURN(extras, ResolveExtras(life, *request.extras));
    stream.hidden_states = request.extras->return_hidden_states;
    stream.lora = extras.lora.id;
    stream.awaits_lora = extras.lora.is_loading;
    names.lora_id = extras.lora.id;
    names.lora_name = extras.lora.name;
    names.session_rid = extras.session_rid;
  }
  if (request.extras != nullptr && request.extras->media != nullptr) {
    return SubmitMedia(life, std::move(request), std::move(stream), std::move(extras));
  }
  auto frame = EncodeRequest(*life->codec, life->facts, request, names);
  if (!frame.ok()) {
    OnStreamEnd(stream);
    return frame.status();
  }
  std::string prefix;
  if (WantsPrefix(life->facts, request)) {
    stream.prefix = SchedulerLink::PrefixOf(request.first_choice);
    if (request.choice == 0) {
      const std::string prefix_rid = life->link->RidOf(stream.prefix);
      names.rid = prefix_rid;
      auto encoded = EncodePrefix(*life->codec, life->facts, request, names);
      if (!encoded.ok()) {
        OnStreamEnd(stream);
        return encoded.status();
      }
      prefix = *std::move(encoded);
    }
  }
  if (request.extras != nullptr && request.extras->session && request.choice == 0) {
    sessions_.Note(request.extras->session->id, request.rid, rid);
  }
  std::vector<SchedulerLink::Stream> streams;
  streams.push_back(std::move(stream));
  std::vector<std::string> frames;
  frames.push_back(*std::move(frame));
  if (life->link->Submit(std::move(streams), std::move(frames), std::move(prefix))) {
    return OkStatus();
  }
  if (!extras.lora.id.empty()) adapters_.GiveBack(extras.lora.id);
  return Error(StatusCode::kUnavailable, "the engine failed");
}

Status SglangEngine::SubmitMedia(const LifePtr& life, GenerateRequest request,
                                 SchedulerLink::Stream stream, Extras extras) {
  if (life->media == nullptr) {  // of a later life
    OnStreamEnd(stream);
    return Error(StatusCode::kUnavailable, "the process that reads media is not running");
  }
  MediaLink::Work work;
  work.stream = request.stream;
  work.sink = stream.tokens;
  work.media = request.extras->media;
  work.ids = request.prompt;
  const bool notes_session = request.extras->session && request.choice == 0;
  const std::string session = notes_session ? request.extras->session->id : "";
  const std::string client_rid = request.rid;
  const std::string rid = life->link->RidOf(request.stream);
  // The life outlives what waits in it.
  Incarnation* in = life.get();
  work.encode = [in, rid, request = std::move(request),
                 extras = std::move(extras)](const MediaInputs& media) {
    WireNames names;
    names.rid = rid;
    names.lora_id = extras.lora.id;
    names.lora_name = extras.lora.name;
    names.session_rid = extras.session_rid;
    return EncodeRequest(*in->codec, in->facts, request, names, &media);
  };
  work.on_end = [this, stream] { OnStreamEnd(stream); };
  work.send = [this, in, stream, notes_session, session, client_rid, rid](
                  std::string frame, std::shared_ptr<void> held) {
    if (notes_session) sessions_.Note(session, client_rid, rid);
    std::vector<SchedulerLink::Stream> streams{stream};
    std::vector<std::string> frames;
    frames.push_back(std::move(frame));
    return in->link->Submit(std::move(streams), std::move(frames), {}, std::move(held));
  };
  Status taken = life->media->Submit(std::move(work));
  if (!taken.ok()) OnStreamEnd(stream);
  return taken;
}

Status SglangEngine::SubmitPooling(std::vector<PoolingRequest> requests, PoolingSink* sink) {
  PORTICO_ASSIGN_OR_RETURN(const LifePtr life, Life());
  if (life->facts.is_generation) {
    return Error(
        StatusCode::kFailedPrecondition,
        "this model returns tokens, not vectors; start SGLang with --is-embedding for vectors");
  }
  // Together they are one request of the queue's bound.
  PORTICO_RETURN_IF_ERROR(CheckRoom(*life, 1));
  std::vector<SchedulerLink::Stream> streams(requests.size());
  std::vector<std::string> frames;
  // All or none: what has been taken for the first is given back where a later one is refused.
  const auto give_back = [&] {
    for (const SchedulerLink::Stream& stream : streams) OnStreamEnd(stream);
  };
  for (size_t i = 0; i < requests.size(); ++i) {
    streams[i].id = requests[i].stream;
    streams[i].pooling = sink;
    const std::string rid = life->link->RidOf(requests[i].stream);
    WireNames names;
    names.rid = rid;
    Adapters::Use lora;
    if (!requests[i].lora_path.empty()) {
      auto taken = TakeAdapter(life, requests[i].lora_path, "");
      if (!taken.ok()) {
        give_back();
        return taken.status();
      }
      lora = *std::move(taken);
      streams[i].lora = lora.id;
      streams[i].awaits_lora = lora.is_loading;
      names.lora_id = lora.id;
      names.lora_name = lora.name;
    }
    auto frame = EncodeRequest(*life->codec, life->facts, requests[i], names);
    if (!frame.ok()) {
      give_back();
      return frame.status();
    }
    frames.push_back(*std::move(frame));
  }
  std::vector<std::string> taken;
  for (const SchedulerLink::Stream& stream : streams) {
    if (!stream.lora.empty()) taken.push_back(stream.lora);
  }
  if (life->link->Submit(std::move(streams), std::move(frames))) return OkStatus();
  for (const std::string& lora : taken) adapters_.GiveBack(lora);
  return Error(StatusCode::kUnavailable, "the engine failed");
}

}  // namespace portico::sglang
