#include "pipeline/stages/native_stages.h"

namespace portico::pipeline {

Pipeline::Kinds NativeStages() {
  return {
      {"portico.decode", MakeDecode},       {"portico.hear", MakeHear},
      {"portico.sentences", MakeSentences}, {"portico.say", MakeSay},
      {"portico.encode", MakeEncode},       {"portico.pass", MakePass},
      {"portico.mock", MakeMock},           {"portico.command", MakeCommand},
      {"portico.merge", MakeMerge},         {"portico.vad", MakeVad},
  };
}

}  // namespace portico::pipeline
