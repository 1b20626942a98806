// The interface of stages.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "base/status.h"
#include "pipeline/part.h"
#include "pipeline/request.h"
#include "text/json.h"

namespace portico::pipeline {

// Where one request's work in one stage sends its results. Thread safe; outlives the request.
class StageOutput {
 public:
  virtual ~StageOutput() = default;
  // Sends a part to the stages behind. False: nobody waits for it any more; stop.
  virtual bool Emit(Part part) = 0;
  // The same of several, in order.
  virtual bool EmitAll(std::vector<Part> parts) {
    for (Part& part : parts) {
      if (!Emit(std::move(part))) return false;
    }
    return true;
  }
  // One to one of them alone, by its name.
  virtual bool EmitTo(Part part, std::string_view /*target*/) { return Emit(std::move(part)); }
  // Of those that get their parts when the work ends (`next`), only these do. Before End().
  virtual void Choose(std::vector<std::string> /*targets*/) {}
  // Of those that get their parts as they are made (`stream_to`), only these are told that nothing
  // more comes; for the others the work counts as never done. Before End().
  virtual void EndStreams(std::vector<std::string> /*targets*/) {}
  // Of the stages in `wait_for`, the request waits for these alone; what the others send is dropped.
  // Once; the same again where the run begins anew.
  virtual void WaitFor(std::vector<std::string> /*sources*/) {}
  // The work is over, well or not; exactly once, nothing follows.
  virtual void End(Status status) = 0;
  // As End(), of work whose process has gone: the request may begin anew, where it has shown nothing.
  virtual void Died(Status status) { End(std::move(status)); }
  // The request has begun anew as a whole: work whose process ends does not begin in another one.
  virtual bool anew() const { return false; }
  // As Emit() would tell.
  virtual bool aborted() const = 0;
  // The stages behind take more now; StageRun::OnRoom() tells when they do again.
  virtual bool HasRoom() const { return true; }
  // Accepts() or busy() of the run has changed: it has made progress.
  virtual void Wake() {}
};

// One request's work in one stage. Calls come one at a time, from threads that may block for some 100 ms; while the stages
// behind have no room, none comes.
class StageRun {
 public:
  virtual ~StageRun() = default;
  // A failure ends the request. `source` names the stage that sent it, "" the client.
  virtual Status OnPart(Part part, std::string_view source) = 0;
  // No more parts come. The run ends with output->End(), now or later. Where stages behind stream
  // back to it, the run ends by itself before.
  virtual void OnInputEnd() = 0;
  // Of stages that see ends, where several sources are told apart: nothing more comes from this one.
  // Not of sources that have chosen others.
  virtual void OnSourceEnd(std::string_view /*source*/) {}
  // All that the stage waits for has come (`wait_for`, or its only source in whose `next` it is).
  virtual void OnGathered() {}
  // After the calls above, where no other follows at once: what they gave can be sent on.
  virtual void OnPause() {}
  // The request is over. From any thread, maybe beside another call; the run is destroyed soon.
  virtual void Abort() {}

  // For runs that work somewhere else. From any thread, maybe beside another call, under a lock of
  // the coordinator: fast, and without a call to the output.
  // False: OnPart() shall wait for StageOutput::Wake().
  virtual bool Accepts() const { return true; }
  // Works on parts that OnPart() has taken.
  virtual bool busy() const { return false; }
  // Loads what its work needs, which is progress however long it takes.
  virtual bool loading() const { return false; }
  // The stages behind have room.
  virtual void OnRoom() {}
};

// A node of the graph, shared by all requests. Thread safe.
class Stage {
 public:
  virtual ~Stage() = default;
  // Checks what the request wants of this stage, before any of its stages starts. Fast.
  virtual Status Check(const Request& /*request*/) const { return OkStatus(); }
  virtual std::unique_ptr<StageRun> Start(std::shared_ptr<const Request> request,
                                          std::shared_ptr<StageOutput> output) = 0;
  // Requests that can be in work at once; the others wait. 0: as many as there are.
  virtual int max_running() const { return 0; }
  // Its work takes long and gets threads of its own, max_running() of them.
  virtual bool own_threads() const { return false; }
  // What a request may say to this stage alone: `stage_params` of that name, `stage_sampling`.
  virtual bool TakesParam(std::string_view /*name*/) const { return false; }
  virtual bool samples() const { return false; }
  // Calls the tools of a chat, where it has any.
  virtual bool calls_tools() const { return false; }
  // Does what such requests are about: speaks, recognizes speech or answers chats. Other stages
  // prepare it or pass it on.
  virtual bool Answers(Task /*task*/) const { return false; }
  // Makes English text of what is said in other languages.
  virtual bool translates() const { return false; }
  // Understands this one of kSpeechFields.
  virtual bool TakesSpeechField(std::string_view /*field*/) const { return false; }
  // The names that `voice` may have, where this is a voice.
  virtual std::vector<std::string> Voices() const { return {}; }
  // Its runs are told of ends (StageRun::OnSourceEnd()), so that stages behind it may stream back.
  virtual bool sees_ends() const { return false; }
  // Names the package that is missing, before anything starts.
  virtual Status Ready() const { return OkStatus(); }
};

struct StageConfig;

// Makes the stage of a configuration. INVALID_ARGUMENT names the key at fault.
using StageFactory = std::function<StatusOr<std::unique_ptr<Stage>>(const StageConfig&)>;

}  // namespace portico::pipeline
