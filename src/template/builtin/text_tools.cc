#include "template/builtin/text_tools.h"

#include <algorithm>

#include "template/run/interpreter.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

Value SplitSpace(Interpreter& in, std::string_view text, int64_t limit, bool from_right,
                 uint8_t flags) {
  std::vector<Value> parts;
  auto add = [&](std::string_view part) { parts.push_back(Value::String(part, flags)); };
  if (!from_right) {
    text.remove_prefix(LeadingSpace(text));
    while (!text.empty() && limit != 0) {
      size_t end = 0;
      while (end < text.size()) {
        size_t length;
        if (IsSpace(CodePointAt(text, end, &length))) break;
        end += length;
      }
      add(text.substr(0, end));
      text.remove_prefix(end);
      text.remove_prefix(LeadingSpace(text));
      --limit;
    }
    if (!text.empty()) add(text.substr(0, text.size() - TrailingSpace(text)));
    // With splits left over the rest keeps its trailing space; without a limit it has none.
    if (!text.empty() && limit == 0) parts.back() = Value::String(text, flags);
    return in.NewList(parts);
  }
  text.remove_suffix(TrailingSpace(text));
  while (!text.empty() && limit != 0) {
    size_t start = text.size();
    while (start > 0) {
      size_t previous = PreviousCodePoint(text, start);
      size_t length;
      if (IsSpace(CodePointAt(text, previous, &length))) break;
      start = previous;
    }
    add(text.substr(start));
    text.remove_suffix(text.size() - start);
    text.remove_suffix(TrailingSpace(text));
    --limit;
  }
  if (!text.empty()) add(text);
  std::reverse(parts.begin(), parts.end());
  return in.NewList(parts);
}

}  // namespace

std::string_view TextArgument(Value v, std::string_view what) {
  if (v.is_undefined()) FailUndefined(v);
  if (!v.is_string()) {
    Fail(what, " must be str, not ", TypeName(v));
  }
  return v.str();
}

Value SplitText(Interpreter& in, std::string_view text, const Parameters& parameters,
                bool from_right, uint8_t flags) {
  int64_t limit = ToIndex(parameters.Get(1, Value::Int(-1)), "maxsplit");
  Value separator = parameters.Get(0);
  in.Step(text.size() / 16);
  if (separator.is_none()) return SplitSpace(in, text, limit, from_right, flags);
  std::string_view sep = TextArgument(separator, "separator");
  if (sep.empty()) Fail("empty separator");
  std::vector<Value> parts;
  for (; limit != 0; --limit) {
    size_t at = from_right ? text.rfind(sep) : text.find(sep);
    if (at == std::string_view::npos) break;
    if (from_right) {
      parts.push_back(Value::String(text.substr(at + sep.size()), flags));
      text = text.substr(0, at);
    } else {
      parts.push_back(Value::String(text.substr(0, at), flags));
      text.remove_prefix(at + sep.size());
    }
  }
  parts.push_back(Value::String(text, flags));
  if (from_right) std::reverse(parts.begin(), parts.end());
  return in.NewList(parts);
}

Value PartitionText(Interpreter& in, std::string_view text, Value separator, bool from_right,
                    uint8_t flags) {
  std::string_view sep = TextArgument(separator, "separator");
  if (sep.empty()) Fail("empty separator");
  size_t at = from_right ? text.rfind(sep) : text.find(sep);
  std::string_view parts[3] = {
      from_right ? std::string_view() : text, {}, from_right ? text : std::string_view()};
  if (at != std::string_view::npos) {
    parts[0] = text.substr(0, at);
    parts[1] = sep;
    parts[2] = text.substr(at + sep.size());
  }
  Value items[3];
  for (int i = 0; i < 3; ++i) items[i] = Value::String(parts[i], flags);
  return in.NewList(items, 3, Kind::kTuple);
}

Value StripText(Value text, Value characters, StripSides sides) {
  std::string_view view = text.str();
  if (characters.is_none()) {
    if (sides & kStripLeft) view.remove_prefix(LeadingSpace(view));
    if (sides & kStripRight) view.remove_suffix(TrailingSpace(view));
    return Value::String(view, text.flags);
  }
  std::string_view set = TextArgument(characters, "strip arg");
  auto in_set = [&](size_t at, size_t length) {
    return set.find(view.substr(at, length)) != std::string_view::npos;
  };
  while ((sides & kStripLeft) && !view.empty()) {
    size_t length;
    CodePointAt(view, 0, &length);
    if (!in_set(0, length)) break;
    view.remove_prefix(length);
  }
  while ((sides & kStripRight) && !view.empty()) {
    size_t start = PreviousCodePoint(view, view.size());
    if (!in_set(start, view.size() - start)) break;
    view.remove_suffix(view.size() - start);
  }
  return Value::String(view, text.flags);
}

Value ReplaceText(Interpreter& in, std::string_view text, std::string_view from,
                  std::string_view to, int64_t count, uint8_t flags) {
  in.Step(text.size() / 16);
  if (count == 0 || (!from.empty() && text.find(from) == std::string_view::npos)) {
    return Value::String(text, flags);
  }
  std::string out;
  size_t at = 0;
  if (from.empty()) {
    // Between all characters.
    for (; count != 0; --count) {
      out.append(to);
      if (at >= text.size()) break;
      size_t length;
      CodePointAt(text, at, &length);
      out.append(text.substr(at, length));
      at += length;
      in.CheckSize(out);
    }
    out.append(text.substr(std::min(at, text.size())));
    return in.NewString(out, flags);
  }
  for (; count != 0; --count) {
    size_t found = text.find(from, at);
    if (found == std::string_view::npos) break;
    out.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
    in.CheckSize(out);
  }
  out.append(text.substr(at));
  return in.NewString(out, flags);
}

Value SplitLines(Interpreter& in, std::string_view text, bool keep_ends, uint8_t flags) {
  std::vector<Value> lines;
  size_t start = 0;
  for (size_t i = 0; i < text.size();) {
    size_t length;
    uint32_t c = CodePointAt(text, i, &length);
    const bool is_break = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                          c == 0x2028 || c == 0x2029;
    if (!is_break) {
      i += length;
      continue;
    }
    size_t end = i + length;
    if (c == '\r' && end < text.size() && text[end] == '\n') ++end;
    lines.push_back(Value::String(text.substr(start, (keep_ends ? end : i) - start), flags));
    start = i = end;
  }
  if (start < text.size()) lines.push_back(Value::String(text.substr(start), flags));
  return in.NewList(lines);
}

Value CenterText(Interpreter& in, Value text, int64_t width, std::string_view fill, Member how) {
  int64_t pad = width - static_cast<int64_t>(Length(text.str()));
  if (Length(fill) != 1) Fail("The fill character must be exactly one character long");
  if (pad <= 0) return text;
  in.arena().Charge(static_cast<size_t>(pad) * fill.size());
  int64_t left = 0;
  if (how == Member::kRjust) left = pad;
  if (how == Member::kCenter) left = pad / 2 + (pad & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out.append(fill);
  out.append(text.str());
  for (int64_t i = left; i < pad; ++i) out.append(fill);
  return in.NewString(out, text.flags);
}

}  // namespace portico::jinja
