// The stages that are part of this program and need no model server.
#pragma once

#include "pipeline/coordinator/pipeline.h"

namespace portico::pipeline {

// portico.decode, vad, hear, sentences, say, command, encode, pass, merge, mock.
Pipeline::Kinds NativeStages();

// Each in its own file.
StatusOr<std::unique_ptr<Stage>> MakeDecode(const StageConfig& config);
StatusOr<std::unique_ptr<Stage>> MakeHear(const StageConfig& config);
StatusOr<std::unique_ptr<Stage>> MakeSentences(const StageConfig& config);
StatusOr<std::unique_ptr<Stage>> MakeSay(const StageConfig& config);
StatusOr<std::unique_ptr<Stage>> MakeEncode(const StageConfig& config);
StatusOr<std::unique_ptr<Stage>> MakePass(const StageConfig& config);
StatusOr<std::unique_ptr<Stage>> MakeMerge(const StageConfig& config);
StatusOr<std::unique_ptr<Stage>> MakeVad(const StageConfig& config);
StatusOr<std::unique_ptr<Stage>> MakeCommand(const StageConfig& config);
StatusOr<std::unique_ptr<Stage>> MakeMock(const StageConfig& config);

}  // namespace portico::pipeline
