// The numbers of a publisher's batches: which one is next, which are missing, and when the publisher is another process.
//
// SGLang and vLLM number from 0 on after each start, one more a batch. A slow subscriber loses batches; the publisher
// keeps the last of them for who asks (a replay, from a number on). What is published while a replay runs waits in its
// socket, so that a number which both have comes a second time afterwards.
#pragma once

#include <cstdint>
#include <optional>

namespace portico {

class KvSequence {
 public:
  enum class Step : uint8_t {
    kTake,     // the next one, or the first
    kKnown,    // it has come before
    kGap,      // some before it have not come
    kRestart,  // the publisher counts anew
  };

  // A connection begins.
  void Connect() { last_ = live_ = std::nullopt; }
  // What came does not count any more; the next one is the first.
  void Forget() { last_.reset(); }

  // A published one. After kGap and kRestart it has not been taken: Adopt() takes it, a replay may bring it again.
  Step OnLive(uint64_t number);
  void Adopt(uint64_t number) { last_ = number; }

  // The number to ask for after a gap.
  uint64_t next() const { return last_ ? *last_ + 1 : 0; }
  // One of a replay: kTake, kKnown, or kGap: what should come before it is not kept any more.
  Step OnReplayed(uint64_t number);
  // Whether what was missing has come. If not, what follows is taken from the last published one on.
  bool EndReplay();

 private:
  std::optional<uint64_t> last_;  // taken
  std::optional<uint64_t> live_;  // published
};

}  // namespace portico
