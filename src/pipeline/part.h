// What flows between stages.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "media/sound.h"
#include "pipeline/blob.h"

namespace portico::pipeline {

// A piece of text: of the answer, or a clause to be said.
struct TextPart {
  std::string text;
};

// A file as the client sent it; `clip` counts the files of a request.
struct FilePart {
  int32_t clip = 0;
  std::shared_ptr<const std::string> bytes;
};

// A piece of sound. `last`: the clip is complete.
struct AudioPart {
  int32_t clip = 0;
  int32_t sample_rate = 16000;
  media::Samples samples;
  bool last = false;
};

struct WordTime {
  std::string word;
  double begin = 0;  // seconds since the clip began
  double end = 0;
};

// What was heard in a stretch of a clip.
struct HeardPart {
  int32_t clip = 0;
  std::string text;
  double begin = 0;  // seconds since the clip began
  double end = 0;
  std::vector<WordTime> words;
};

// A clip has been heard to its end.
struct ClipEndPart {
  int32_t clip = 0;
  double seconds = 0;
};

// Bytes of an encoded stream.
struct EncodedPart {
  std::string bytes;
  int32_t sample_rate = 0;
  double seconds = 0;  // of sound in them
};

// How a thinker's answer ended.
struct FinishPart {
  std::string reason;  // "stop", "length", "tool_calls"
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
};

// A piece of a call to one of the chat's tools (message/text_delta.h, ToolCallPiece).
struct ToolCallPart {
  int32_t index = 0;      // among the answer's calls
  std::string id;         // with the name
  std::string name;       // of a call's first piece only
  std::string arguments;  // JSON, or a part of it
};

// An array between stages of Python: its elements lie row by row.
struct TensorPart {
  std::string name;
  std::string dtype;  // NumPy's: "float32"
  std::vector<int64_t> shape;
  std::shared_ptr<const Blob> data;
};

using Part = std::variant<TextPart, FilePart, AudioPart, HeardPart, ClipEndPart, EncodedPart,
                          FinishPart, TensorPart, ToolCallPart>;

// What a part takes in a queue.
inline size_t PartBytes(const Part& part) {
  struct Bytes {
    size_t operator()(const TextPart& p) const { return p.text.size(); }
    size_t operator()(const FilePart&) const { return 0; }  // the request's own
    size_t operator()(const AudioPart& p) const { return p.samples.size() * sizeof(int16_t); }
    size_t operator()(const HeardPart& p) const { return p.text.size() + p.words.size() * 48; }
    size_t operator()(const ClipEndPart&) const { return 0; }
    size_t operator()(const EncodedPart& p) const { return p.bytes.size(); }
    size_t operator()(const FinishPart&) const { return 0; }
    size_t operator()(const ToolCallPart& p) const {
      return p.id.size() + p.name.size() + p.arguments.size();
    }
    size_t operator()(const TensorPart& p) const {
      return p.data == nullptr ? 0 : p.data->bytes().size();
    }
  };
  return sizeof(Part) + std::visit(Bytes{}, part);
}

}  // namespace portico::pipeline
