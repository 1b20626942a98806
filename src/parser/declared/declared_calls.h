// The text of a region that holds calls, as calls.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parser/core/call_writer.h"
#include "parser/declared/response_template.h"
#include "parser/json/call_object.h"
#include "parser/json/object_writer.h"

namespace portico::parser {

// One region at a time: Begin(), Push() its text, End(). The results do not depend on how the text is cut. Values stream
// but for JSON with quotes of its own, of which a call comes in one piece.
class DeclaredCalls {
 public:
  explicit DeclaredCalls(CallWriter* call) : call_(*call), object_(call), writer_(call) {}

  // A region opens with this text, behind the white space `lead`; `match` says what its groups are. `take` is false where
  // all of it is text. `region` outlives the use.
  void Begin(const Region& region, std::string_view opener, const Pattern::Match& match,
             std::string_view lead, bool take);
  void Push(std::string_view text);
  // A delimiter here is a part of a string.
  bool in_string() const { return way_ == Way::kObject && busy_ && object_.in_string(); }
  // The region ends: with this delimiter, or with the text.
  void End(bool complete, std::string_view closer);

 private:
  enum class Way { kObject, kBuffer, kTags, kLines };

  std::string GroupOf(const Region& region, const CallPart& part,
                      const Pattern::Match& match) const;
  void PushObject(std::string_view text);
  void PushTags(bool final);
  void PushLines(bool final);
  void Pair(std::string_view key, std::string_view value);
  TypeSet TypesOf(std::string_view key) const;
  void BeginValue(std::string_view key);
  void Value(std::string_view text);
  void EndBuffered(bool complete);
  void Cut();
  bool OneCall(const Json& value);
  void Stray(std::string_view text);

  CallWriter& call_;
  CallObject object_;
  ObjectWriter writer_;
  const Region* region_ = nullptr;
  Way way_ = Way::kObject;
  bool named_ = false;     // a group said the name
  bool busy_ = false;      // in an object, or in a tag's value
  bool ended_ = false;     // a call was written whole, and no other has begun
  bool text_ = false;      // what is left of the region is text
  std::string arguments_;  // of a group
  std::string held_;
  std::string space_;     // that may be the end of a value
  size_t spaces_ = 0;     // bytes of it since the value's last other byte
  bool started_ = false;  // a value, or text that is part of no tag
};

}  // namespace portico::parser
