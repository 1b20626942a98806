// What a stage in a process of its own can do wrong on purpose, for tests of what is around it
// (portico.mock). The outputs of such stages have this interface; those in the server's process do
// not.
#pragma once

namespace portico::pipeline {

class StageFaults {
 public:
  virtual ~StageFaults() = default;
  // A message that is none.
  virtual void SendGarbage() = 0;
  // The end of the request's work, which goes on.
  virtual void SendEnd() = 0;
  // A part for a request that does not exist.
  virtual void AnswerStranger() = 0;
};

}  // namespace portico::pipeline
