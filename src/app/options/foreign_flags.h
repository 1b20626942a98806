// Flags of other servers: what their users type to `portico serve`, and what it is called here. One table for the hints of the
// command line and for docs/config.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace portico {

// Whose flag it is; several may have the same.
enum ForeignServer : uint8_t { kOfVllm = 1, kOfLlamaServer = 2, kOfSglang = 4 };

struct ForeignFlag {
  int servers;              // a sum of ForeignServer
  std::string_view flags;   // "-c|--ctx-size": names of one thing, with their dashes
  std::string_view option;  // its name here, without dashes; empty: none
  std::string_view note;    // how it differs, or why there is none; empty: nothing to say
};

// In the order of docs/config.md.
std::span<const ForeignFlag> ForeignFlags();

// The entry of the flag, with its dashes, or null.
const ForeignFlag* FindForeignFlag(std::string_view flag);

// What users of `flag`, which is none here, are told of it: "did you mean --context-length?" or the reason why there is none.
// Empty: nothing is known. `sglang`: the server's engine is SGLang, which has flags of its own.
struct FlagHint {
  std::string text;
  std::string_view note =
      {};                  // how the option that may have been meant differs; empty: it does not
  bool is_reason = false;  // stands behind a colon rather than a semicolon
};
FlagHint HintOf(std::string_view flag, bool sglang);

// The sections "Coming from …" of docs/config.md.
std::string ForeignFlagsMarkdown();

}  // namespace portico
