// What the coordinator is told of the parts that a stage's process has and has not worked on. The
// outputs of its requests have this interface beside StageOutput.
#pragma once

namespace portico::pipeline {

class PartsInProcess {
 public:
  virtual ~PartsInProcess() = default;
  // The oldest part that OnPart() has taken is done, and the one behind it is begun. With `again`: one that was done before
  // the run began anew, and is not counted twice. As StageOutput::Wake(), which is not called besides.
  virtual void Worked(bool again) = 0;
};

}  // namespace portico::pipeline
