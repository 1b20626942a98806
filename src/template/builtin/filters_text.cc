// Filters on text.
#include <algorithm>

#include "template/builtin/filters.h"
#include "template/builtin/globals.h"
#include "template/builtin/methods.h"
#include "template/builtin/text_tools.h"
#include "template/builtin/text_wrap.h"
#include "template/format/format.h"
#include "template/run/interpreter.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

// str(v) that keeps marked-up text marked.
Value SoftStr(Interpreter& in, Value v) { return v.is_string() ? v : ToStr(in, v); }

std::string_view NeedText(Value v) {
  if (v.is_undefined()) FailUndefined(v);
  if (!v.is_string()) Fail("expected a string, not ", TypeName(v));
  return v.str();
}

Value FilterUpper(Interpreter& in, Value v, const CallArguments& arguments) {
  return CallStringMethod(in, SoftStr(in, v), Member::kUpper, arguments);
}

Value FilterLower(Interpreter& in, Value v, const CallArguments& arguments) {
  return CallStringMethod(in, SoftStr(in, v), Member::kLower, arguments);
}

Value FilterCapitalize(Interpreter& in, Value v, const CallArguments& arguments) {
  return CallStringMethod(in, SoftStr(in, v), Member::kCapitalize, arguments);
}

// Jinja's own title: words begin behind white space and -({[<.
Value FilterTitle(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "title", {});
  Value text = SoftStr(in, v);
  std::string_view view = text.str();
  std::string out;
  bool first = true;
  std::string word;
  auto flush = [&] {
    if (word.empty()) return;
    size_t length;
    CodePointAt(word, 0, &length);
    out.append(Upper(std::string_view(word).substr(0, length)));
    out.append(Lower(std::string_view(word).substr(length)));
    word.clear();
  };
  for (size_t i = 0; i < view.size();) {
    size_t length;
    uint32_t c = CodePointAt(view, i, &length);
    const bool border = c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || IsSpace(c);
    if (border != first) flush();
    first = border;
    word.append(view.substr(i, length));
    i += length;
  }
  flush();
  return in.NewString(out, text.flags);
}

Value FilterTrim(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "trim", {"chars"});
  return StripText(SoftStr(in, v), p.Get(0), kStripBoth);
}

Value FilterReplace(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "replace", {"old", "new", "count"}, 2);
  std::string text, from, to;
  std::string_view view = StrView(in, v, &text);
  std::string_view old = StrView(in, p.Get(0), &from);
  std::string_view replacement = StrView(in, p.Get(1), &to);
  int64_t count = p.Get(2).is_none() ? -1 : ToIndex(p.Get(2), "count");
  if (!v.is_string()) view = in.arena().Copy(view);
  return ReplaceText(in, view, old, replacement, count, 0);
}

Value FilterString(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "string", {});
  return SoftStr(in, v);
}

Value FilterSafe(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "safe", {});
  Value text = SoftStr(in, v);
  text.flags = kMarkup;
  return text;
}

Value FilterForceEscape(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "forceescape", {});
  std::string scratch, out;
  AppendEscaped(StrView(in, v, &scratch), &out);
  return in.NewString(out, kMarkup);
}

Value FilterEscape(Interpreter& in, Value v, const CallArguments& arguments) {
  return v.is_markup() ? v : FilterForceEscape(in, v, arguments);
}

Value FilterStripTags(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "striptags", {});
  std::string scratch;
  return in.NewString(StripTags(StrView(in, v, &scratch)));
}

Value FilterIndent(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "indent", {"width", "first", "blank"});
  Value width = p.Get(0, Value::Int(4));
  std::string indention;
  if (width.is_string()) {
    indention = width.str();
  } else {
    int64_t count = std::max<int64_t>(0, ToIndex(width, "width"));
    in.arena().Charge(static_cast<size_t>(count));
    indention.assign(static_cast<size_t>(count), ' ');
  }
  const bool first = IsTrue(p.Get(1, Value::Bool(false)));
  const bool blank = IsTrue(p.Get(2, Value::Bool(false)));
  std::string text(NeedText(v));
  text.push_back('\n');
  Value lines = SplitLines(in, text, false, 0);
  std::string out;
  for (size_t i = 0; i < SequenceSize(lines); ++i) {
    std::string_view line = SequenceItem(lines, i).str();
    if (i > 0) out.push_back('\n');
    if (i == 0 ? first : blank || !line.empty()) out.append(indention);
    out.append(line);
    in.CheckSize(out);
  }
  return in.NewString(out, v.flags);
}

Value FilterCenter(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "center", {"width"});
  int64_t width = ToIndex(p.Get(0, Value::Int(80)), "width");
  return CenterText(in, SoftStr(in, v), width, " ", Member::kCenter);
}

Value FilterTruncate(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "truncate", {"length", "killwords", "end", "leeway"});
  int64_t length = ToIndex(p.Get(0, Value::Int(255)), "length");
  Value end = p.Get(2, Value::String("..."));
  int64_t leeway = p.Get(3).is_none() ? 5 : ToIndex(p.Get(3), "leeway");
  int64_t end_length = static_cast<int64_t>(Length(NeedText(end)));
  if (length < end_length) Fail("expected length >= ", std::to_string(end_length));
  if (leeway < 0) Fail("expected leeway >= 0");
  if (v.is_undefined()) return v;
  if (static_cast<int64_t>(LengthOf(in, v)) <= length + leeway) return v;
  std::string_view text = NeedText(v);
  std::string_view cut = text.substr(0, ByteOffset(text, static_cast<size_t>(length - end_length)));
  if (!IsTrue(p.Get(1, Value::Bool(false)))) cut = cut.substr(0, cut.rfind(' '));
  return in.NewString(std::string(cut).append(end.str()), v.flags);
}

Value FilterWordWrap(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "wordwrap",
               {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  WrapOptions options;
  options.width = ToIndex(p.Get(0, Value::Int(79)), "width");
  if (options.width <= 0) Fail("invalid width (must be > 0)");
  options.break_long_words = IsTrue(p.Get(1, Value::Bool(true)));
  options.break_on_hyphens = IsTrue(p.Get(3, Value::Bool(true)));
  std::string_view separator = p.Get(2).is_none() ? "\n" : NeedText(p.Get(2));
  Value lines = SplitLines(in, NeedText(v), false, 0);
  std::string out;
  for (size_t i = 0; i < SequenceSize(lines); ++i) {
    if (i > 0) out.append(separator);
    std::vector<std::string> wrapped = WrapText(SequenceItem(lines, i).str(), options);
    for (size_t j = 0; j < wrapped.size(); ++j) {
      if (j > 0) out.append(separator);
      out.append(wrapped[j]);
      in.CheckSize(out);
    }
    in.Step(wrapped.size());
  }
  return in.NewString(out);
}

Value FilterWordCount(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "wordcount", {});
  std::string scratch;
  std::string_view text = StrView(in, v, &scratch);
  int64_t count = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    size_t length;
    const bool word = IsA(CharacterClass::kWord, CodePointAt(text, i, &length));
    if (word && !inside) ++count;
    inside = word;
    i += length;
  }
  return Value::Int(count);
}

Value FilterFormat(Interpreter& in, Value v, const CallArguments& arguments) {
  if (arguments.count != 0 && arguments.named_count != 0) {
    Fail("can't handle positional and keyword arguments at the same time");
  }
  if (arguments.named_count == 0) {
    Value values = in.NewList(arguments.positional, arguments.count, Kind::kTuple);
    return PercentFormat(in, SoftStr(in, v), values);
  }
  return PercentFormat(in, SoftStr(in, v), Value::Of(BuildDict(in, arguments)));
}

// Percent-encodes as urllib.parse.quote; `in_query` also encodes slashes and writes blanks as +.
void AppendQuoted(std::string_view text, bool in_query, std::string* out) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (char c : text) {
    unsigned char byte = static_cast<unsigned char>(c);
    const bool plain = DigitValue(c) < 36 || c == '_' || c == '.' || c == '-' || c == '~' ||
                       (c == '/' && !in_query);
    if (plain) {
      out->push_back(c);
    } else if (c == ' ' && in_query) {
      out->push_back('+');
    } else {
      out->push_back('%');
      out->push_back(kHex[byte >> 4]);
      out->push_back(kHex[byte & 15]);
    }
  }
}

Value FilterUrlEncode(Interpreter& in, Value v, const CallArguments& arguments) {
  Parameters p(arguments, "urlencode", {});
  std::string out, scratch;
  if (v.is_string() || !IsIterable(v)) {
    AppendQuoted(StrView(in, v, &scratch), false, &out);
    return in.NewString(out);
  }
  Value pairs = v.is_dict() ? in.CallMethod(v, Member::kItems, {}) : v;
  Iterator it(in, pairs);
  for (Value pair; it.Next(in, &pair);) {
    Value items = ListOf(in, pair);
    if (SequenceSize(items) != 2) Fail("not enough values to unpack (expected 2)");
    if (!out.empty()) out.push_back('&');
    AppendQuoted(StrView(in, SequenceItem(items, 0), &scratch), true, &out);
    out.push_back('=');
    AppendQuoted(StrView(in, SequenceItem(items, 1), &scratch), true, &out);
    in.CheckSize(out);
  }
  return in.NewString(out);
}

constexpr NamedFilter kFilters[] = {
    {"capitalize", FilterCapitalize},
    {"center", FilterCenter},
    {"e", FilterEscape},
    {"escape", FilterEscape},
    {"forceescape", FilterForceEscape},
    {"format", FilterFormat},
    {"indent", FilterIndent},
    {"lower", FilterLower},
    {"replace", FilterReplace},
    {"safe", FilterSafe},
    {"string", FilterString},
    {"striptags", FilterStripTags},
    {"title", FilterTitle},
    {"trim", FilterTrim},
    {"truncate", FilterTruncate},
    {"upper", FilterUpper},
    {"urlencode", FilterUrlEncode},
    {"wordcount", FilterWordCount},
    {"wordwrap", FilterWordWrap},
};

}  // namespace

std::span<const NamedFilter> TextFilters() { return kFilters; }

}  // namespace portico::jinja
