// One JSON Schema text: its references, and where in it a part stands.
//
// Used by one thread; parts are named by their addresses, which stay as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "text/json.h"

namespace portico::grammar {

// How many schemas are in each other in `schema`, at most: 0 for one without others in it. Constants count for nothing.
size_t NestingOf(const Json& schema);

class SchemaDocument {
 public:
  explicit SchemaDocument(Json root);

  const Json* root() const { return &root_; }

  // What `reference`, found in `from`, points to. Local references only: "#", JSON pointers, anchors, and the same behind
  // the root's own $id. INVALID_ARGUMENT with the pointer of `from`.
  StatusOr<const Json*> Resolve(const Json* from, const std::string& reference) const;

  // Some schema has an $id of its own: what it refers to is not told here.
  bool has_inner_ids() const { return has_inner_ids_; }

  // A schema that says what `from` means, made once for each `name`.
  template <typename Make>
  const Json* Derived(const Json* from, const std::string& name, Make make) {
    const auto found = derived_.find({from, name});
    if (found != derived_.end()) return found->second;
    made_.emplace_back(make());
    const Json* const schema = &made_.back();
    origins_.emplace(schema, from);
    return derived_[{from, name}] = schema;
  }

  // "#/properties/a"; of what was derived: where it comes from.
  std::string PointerOf(const Json* part) const;

  // Where `part` stands in the text, counted in values; of what was derived: where it comes from.
  int64_t OrderOf(const Json* part) const;

  // INVALID_ARGUMENT: "#/properties/a: not: what".
  Status Refused(const Json* part, std::string_view keyword, std::string_view what) const;

 private:
  bool Locate(const Json& at, const Json* part, std::string* pointer) const;
  void FindAnchors(const Json& at, bool is_root);
  void Number(const Json& at);
  const Json* Follow(std::string_view pointer) const;

  const Json root_;
  std::string id_;
  std::map<const Json*, int64_t> orders_;
  bool has_inner_ids_ = false;
  std::map<std::string, const Json*, std::less<>> anchors_;
  std::deque<Json> made_;
  std::map<std::pair<const Json*, std::string>, const Json*> derived_;
  std::map<const Json*, const Json*> origins_;
};

}  // namespace portico::grammar
