#include "grammar/schema/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/hex_digit.h"

namespace portico::grammar {
namespace {

// A key within a JSON pointer, as RFC 6901 escapes it.
std::string Escaped(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::string PercentDecoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      out += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string Unescaped(std::string_view key) {
  std::string out;
  for (size_t i = 0; i < key.size(); ++i) {
    if (key[i] == '~' && i + 1 < key.size() && (key[i + 1] == '0' || key[i + 1] == '1')) {
      out += key[++i] == '0' ? '~' : '/';
    } else {
      out += key[i];
    }
  }
  return out;
}

// Below these keys are values, not schemas.
bool HoldsValues(std::string_view key) {
  return key == "const" || key == "enum" || key == "default" || key == "examples";
}

// Below these keys are schemas by name.
bool HoldsNamed(std::string_view key) {
  return key == "properties" || key == "patternProperties" || key == "$defs" ||
         key == "definitions" || key == "dependentSchemas" || key == "dependencies";
}

}  // namespace

size_t NestingOf(const Json& schema) {
  size_t most = 0;
  const auto look = [&most](const Json& inner) {
    if (inner.is_object()) most = std::max(most, 1 + NestingOf(inner));
  };
  if (!schema.is_object()) return most;
  for (const auto& [key, value] : schema.as_object()) {
    if (HoldsValues(key)) continue;
    if (value.is_array()) {
      for (const Json& item : value.as_array()) look(item);
    } else if (HoldsNamed(key) && value.is_object()) {
      for (const auto& [name, member] : value.as_object()) look(member);
    } else {
      look(value);
    }
  }
  return most;
}

SchemaDocument::SchemaDocument(Json root) : root_(std::move(root)) {
  id_ = root_.GetString("$id");
  if (id_.ends_with('#')) id_.pop_back();
  FindAnchors(root_, true);
  Number(root_);
}

void SchemaDocument::Number(const Json& at) {
  orders_.emplace(&at, static_cast<int64_t>(orders_.size()));
  if (at.is_array()) {
    for (const Json& item : at.as_array()) Number(item);
  } else if (at.is_object()) {
    for (const auto& [key, value] : at.as_object()) Number(value);
  }
}

int64_t SchemaDocument::OrderOf(const Json* part) const {
  for (auto origin = origins_.find(part); origin != origins_.end(); origin = origins_.find(part)) {
    part = origin->second;
  }
  const auto found = orders_.find(part);
  return found == orders_.end() ? static_cast<int64_t>(orders_.size()) : found->second;
}

void SchemaDocument::FindAnchors(const Json& at, bool is_root) {
  if (at.is_array()) {
    for (const Json& item : at.as_array()) FindAnchors(item, false);
    return;
  }
  if (!at.is_object()) return;
  const Json* const id = at.Find("$id");
  if (!is_root && id != nullptr && id->is_string()) has_inner_ids_ = true;
  for (const char* const key : {"$anchor", "$dynamicAnchor"}) {
    const Json* const anchor = at.Find(key);
    if (anchor != nullptr && anchor->is_string()) anchors_.emplace(anchor->as_string(), &at);
  }
  for (const auto& [key, value] : at.as_object()) {
    if (!HoldsValues(key)) FindAnchors(value, false);
  }
}

const Json* SchemaDocument::Follow(std::string_view pointer) const {
  const Json* at = &root_;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);  // the slash
    const size_t end = std::min(pointer.find('/'), pointer.size());
    const std::string key = Unescaped(pointer.substr(0, end));
    pointer.remove_prefix(end);
    if (at->is_array()) {
      size_t index = 0;
      const auto read = std::from_chars(key.data(), key.data() + key.size(), index);
      if (read.ec != std::errc() || read.ptr != key.data() + key.size() ||
          index >= at->as_array().size()) {
        return nullptr;
      }
      at = &at->as_array()[index];
    } else {
      at = at->Find(key);
      if (at == nullptr) return nullptr;
    }
  }
  return at;
}

StatusOr<const Json*> SchemaDocument::Resolve(const Json* from,
                                              const std::string& reference) const {
  std::string_view rest = reference;
  if (has_inner_ids_) {
    return Refused(from, "$ref",
                   "references in schemas with an $id of their own are not supported");
  }
  if (!id_.empty() && rest.starts_with(id_)) rest.remove_prefix(id_.size());
  if (!rest.empty() && rest[0] != '#') {
    return Refused(from, "$ref",
                   fmt::format("only local references are supported, not {}", reference));
  }
  if (!rest.empty()) rest.remove_prefix(1);
  const std::string fragment = PercentDecoded(rest);
  const Json* target = nullptr;
  if (fragment.empty() || fragment[0] == '/') {
    target = Follow(fragment);
  } else if (const auto found = anchors_.find(fragment); found != anchors_.end()) {
    target = found->second;
  }
  if (target == nullptr) {
    return Refused(from, "$ref", fmt::format("{} points to nothing", reference));
  }
  return target;
}

bool SchemaDocument::Locate(const Json& at, const Json* part, std::string* pointer) const {
  if (&at == part) return true;
  const size_t size = pointer->size();
  if (at.is_array()) {
    size_t i = 0;
    for (const Json& item : at.as_array()) {
      *pointer += fmt::format("/{}", i++);
      if (Locate(item, part, pointer)) return true;
      pointer->resize(size);
    }
  } else if (at.is_object()) {
    for (const auto& [key, value] : at.as_object()) {
      *pointer += '/' + Escaped(key);
      if (Locate(value, part, pointer)) return true;
      pointer->resize(size);
    }
  }
  return false;
}

std::string SchemaDocument::PointerOf(const Json* part) const {
  for (const Json* at = part;;) {
    const auto origin = origins_.find(at);
    if (origin == origins_.end()) {
      part = at;
      break;
    }
    at = origin->second;
  }
  std::string pointer = "#";
  if (Locate(root_, part, &pointer)) return pointer;
  // Within something derived: its origin.
  for (const Json& made : made_) {
    std::string inside;
    if (Locate(made, part, &inside)) return PointerOf(&made);
  }
  return "#";
}

Status SchemaDocument::Refused(const Json* part, std::string_view keyword,
                               std::string_view what) const {
  return Error(StatusCode::kInvalidArgument,
               fmt::format("{}: {}: {}", PointerOf(part), keyword, what));
}

}  // namespace portico::grammar
