// The processes behind compile_process.h: what runs in them, and how they are spoken to.
//
// The server sends a Message and one end of a stream socket over the control socket. On the stream it then writes the request and
// closes its side; the answer is one byte (Answer) and the rest of the bytes.
#pragma once

#include <cstdint>

#include "grammar/compile/grammar_text.h"

namespace portico::grammar {

struct Message {
  char what = 0;  // 'V': a vocabulary comes; 'C': compile; 'P': answer, to show that you live
  int32_t vocabulary = 0;
};

// How a request to compile begins on the stream; the text follows.
struct CompileHead {
  int64_t time_ms = 0;
  int64_t memory_bytes = 0;
  int64_t result_bytes = 0;
  TextLimits text;
  uint8_t kind = 0;
  uint8_t closed_objects = 0;
  uint8_t compact = 0;
};

enum class Answer : char { kGood = 'G', kRefused = 'R', kMemory = 'M', kTooLarge = 'L' };

// Serves until the control socket closes. Never returns.
[[noreturn]] void ServeCompilations(int control);

}  // namespace portico::grammar
