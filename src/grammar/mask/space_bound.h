// A bound on white space between the parts of JSON, and of calls that are written as tags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace portico::grammar {

// Which white space of what a grammar describes is bounded.
enum class SpaceRule : uint8_t {
  kFree,  // none: it may be a part of a text, or the client's grammar says itself what it takes
  kJson,  // between the parts of JSON, which may have fixed text around it
  // All where little but white space may come: between tags and the parts of JSON. Where nearly everything may come, as in
  // the text of a parameter, it is not.
  kNarrow,
};

// JSON and tags may have white space without end between their parts, and small models under a grammar are known to write
// nothing else once they have begun to. Follows a text and tells where such white space has gone on for so long that another
// token of it should not come. With kJson white space in strings is
// never counted; with kNarrow it is where a pattern or an enum leaves few tokens.
class SpaceBound {
 public:
  // As much as an indentation sixteen levels deep takes; deeper ones get shorter, and are as valid.
  static constexpr size_t kMaxBytes = 33;

  explicit SpaceBound(SpaceRule rule) : rule_(rule) {}

  void Accept(std::string_view text);
  // With kNarrow only where IsNarrow().
  bool reached() const {
    return run_ >= kMaxBytes && (rule_ == SpaceRule::kNarrow || (depth_ > 0 && !in_string_));
  }

  size_t run() const { return run_; }

  // Whether so few tokens of so many may come, other than white space, that what comes is no text of any kind.
  static bool IsNarrow(size_t allowed, size_t tokens) { return allowed < tokens / 4; }

 private:
  void AcceptJson(std::string_view text);
  void AcceptAny(std::string_view text);

  SpaceRule rule_;
  size_t run_ = 0;    // bytes of white space that were last
  size_t depth_ = 0;  // of open brackets
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace portico::grammar
