// A bound on white space between the parts of JSON.
#pragma once

#include <cstddef>
#include <string_view>

namespace portico::grammar {

// JSON may have white space without end between its parts, and small models under a grammar are known to write nothing else
// once they have begun to. Follows a text of JSON, perhaps with other text around it, and tells where such white space has gone
// on for so long that another token of it should not come. White space in strings is never counted.
class SpaceBound {
 public:
  // As much as an indentation sixteen levels deep takes; deeper ones get shorter, and are as valid.
  static constexpr size_t kMaxBytes = 33;

  void Accept(std::string_view text);
  bool reached() const { return depth_ > 0 && !in_string_ && run_ >= kMaxBytes; }

 private:
  size_t run_ = 0;    // bytes of white space that were last
  size_t depth_ = 0;  // of open brackets
  bool in_string_ = false;
  bool escaped_ = false;
};

}  // namespace portico::grammar
