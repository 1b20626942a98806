// Methods of str.
#include <algorithm>

#include "template/builtin/methods.h"
#include "template/builtin/text_tools.h"
#include "template/format/format.h"
#include "template/run/interpreter.h"
#include "template/value/bigint.h"
#include "template/value/unicode.h"
#include "text/utf8.h"

namespace portico::jinja {
namespace {

// The part of a text that start and end arguments name, as slices do.
struct Part {
  std::string_view text;
  size_t byte = 0;      // where it begins
  bool beyond = false;  // start lies behind the end of the text
};

Part PartOf(std::string_view text, Value start, Value end) {
  if (start.is_none() && end.is_none()) return {text};
  const int64_t length = static_cast<int64_t>(Length(text));
  auto place = [&](Value v, int64_t fallback) {
    if (v.is_none()) return fallback;
    int64_t i = ToIndex(v, "slice");
    if (i < 0) i = std::max<int64_t>(0, i + length);
    return i;
  };
  int64_t from = place(start, 0);
  int64_t to = std::min(place(end, length), length);
  Part part;
  part.beyond = from > length || from > to;
  if (part.beyond) return part;
  part.byte = ByteOffset(text, static_cast<size_t>(from));
  size_t stop = ByteOffset(text, static_cast<size_t>(to));
  part.text = text.substr(part.byte, stop - part.byte);
  return part;
}

int64_t FindIn(std::string_view text, const Parameters& parameters, bool last) {
  std::string_view wanted = TextArgument(parameters.Get(0), "argument");
  Part part = PartOf(text, parameters.Get(1), parameters.Get(2));
  if (part.beyond) return -1;
  size_t at = last ? part.text.rfind(wanted) : part.text.find(wanted);
  if (at == std::string_view::npos) return -1;
  return static_cast<int64_t>(Length(text.substr(0, part.byte + at)));
}

int64_t CountIn(std::string_view text, std::string_view wanted) {
  if (wanted.empty()) return static_cast<int64_t>(Length(text)) + 1;
  int64_t count = 0;
  for (size_t at = text.find(wanted); at != std::string_view::npos;
       at = text.find(wanted, at + wanted.size())) {
    ++count;
  }
  return count;
}

bool StartsOrEnds(std::string_view text, const Parameters& parameters, bool ends) {
  Part part = PartOf(text, parameters.Get(1), parameters.Get(2));
  auto holds = [&](Value v) {
    std::string_view wanted = TextArgument(v, ends ? "endswith argument" : "startswith argument");
    if (part.beyond) return false;
    return ends ? part.text.ends_with(wanted) : part.text.starts_with(wanted);
  };
  Value wanted = parameters.Get(0);
  if (!wanted.is(Kind::kTuple)) return holds(wanted);
  return std::any_of(wanted.items->data, wanted.items->data + wanted.items->size, holds);
}

bool AllAre(std::string_view text, CharacterClass kind) {
  if (text.empty()) return false;
  for (size_t i = 0; i < text.size();) {
    size_t length;
    if (!IsA(kind, CodePointAt(text, i, &length))) return false;
    i += length;
  }
  return true;
}

// isupper and islower: no cased character of another kind, and one of this.
bool CasedAre(std::string_view text, CharacterClass kind) {
  bool any = false;
  for (size_t i = 0; i < text.size();) {
    size_t length;
    uint32_t c = CodePointAt(text, i, &length);
    if (IsA(kind, c)) {
      any = true;
    } else if (IsA(CharacterClass::kCased, c)) {
      return false;
    }
    i += length;
  }
  return any;
}

bool IsTitle(std::string_view text) {
  bool any = false;
  bool previous_cased = false;
  for (size_t i = 0; i < text.size();) {
    size_t length;
    uint32_t c = CodePointAt(text, i, &length);
    const bool upper = IsA(CharacterClass::kUpper, c) || IsA(CharacterClass::kTitle, c);
    const bool lower = IsA(CharacterClass::kLower, c);
    if ((upper && previous_cased) || (lower && !previous_cased)) return false;
    any |= upper || lower;
    previous_cased = upper || lower;
    i += length;
  }
  return any;
}

bool IsIdentifier(std::string_view text) {
  size_t length;
  return !text.empty() && IsA(CharacterClass::kIdentifierStart, CodePointAt(text, 0, &length)) &&
         NameLength(text) == text.size();
}

Value JoinItems(Interpreter& in, Value separator, Value iterable) {
  if (!IsIterable(iterable)) Fail("can only join an iterable");
  std::string out;
  Iterator it(in, iterable);
  Value item;
  for (size_t i = 0; it.Next(in, &item); ++i) {
    in.Step();
    if (i > 0) out.append(separator.str());
    if (!item.is_string()) {
      if (!separator.is_markup()) {
        Fail("sequence item ", std::to_string(i), ": expected str instance, ", TypeName(item),
             " found");
      }
      AppendStr(in, item, &out);
    } else if (separator.is_markup() && !item.is_markup()) {
      AppendEscaped(item.str(), &out);
    } else {
      out.append(item.str());
    }
    in.CheckSize(out);
  }
  return in.NewString(out, separator.flags);
}

Value ExpandTabs(Interpreter& in, std::string_view text, int64_t size, uint8_t flags) {
  if (size > 1000) LimitReached("the tab size is too large");
  std::string out;
  int64_t column = 0;
  for (char c : text) {
    if (c == '\t') {
      int64_t fill = size > 0 ? size - column % size : 0;
      out.append(static_cast<size_t>(fill), ' ');
      column += fill;
      in.CheckSize(out);
    } else {
      out.push_back(c);
      if (c == '\n' || c == '\r') {
        column = 0;
      } else if (!IsTailByte(c)) {
        ++column;
      }
    }
  }
  return in.NewString(out, flags);
}

Value ZeroFill(Interpreter& in, Value text, int64_t width) {
  std::string_view view = text.str();
  int64_t missing = width - static_cast<int64_t>(Length(view));
  if (missing <= 0) return text;
  in.arena().Charge(static_cast<size_t>(missing));
  const bool sign = !view.empty() && (view[0] == '+' || view[0] == '-');
  std::string out(view.substr(0, sign));
  out.append(static_cast<size_t>(missing), '0').append(view.substr(sign));
  return in.NewString(out, text.flags);
}

Value ChangeCase(Interpreter& in, std::string_view view, Member member, uint8_t flags) {
  switch (member) {
    case Member::kUpper:
      return in.NewString(Upper(view), flags);
    case Member::kLower:
      return in.NewString(Lower(view), flags);
    case Member::kCasefold:
      return in.NewString(CaseFold(view), flags);
    case Member::kSwapcase:
      return in.NewString(SwapCase(view), flags);
    case Member::kTitle:
      return in.NewString(TitleCase(view), flags);
    default:
      return in.NewString(Capitalize(view), flags);
  }
}

bool Classify(std::string_view view, Member member) {
  switch (member) {
    case Member::kIsalnum:
      return AllAre(view, CharacterClass::kAlnum);
    case Member::kIsalpha:
      return AllAre(view, CharacterClass::kAlpha);
    case Member::kIsascii:
      return IsAscii(view);
    case Member::kIsdecimal:
      return AllAre(view, CharacterClass::kDecimal);
    case Member::kIsdigit:
      return AllAre(view, CharacterClass::kDigit);
    case Member::kIsidentifier:
      return IsIdentifier(view);
    case Member::kIslower:
      return CasedAre(view, CharacterClass::kLower);
    case Member::kIsupper:
      return CasedAre(view, CharacterClass::kUpper);
    case Member::kIsnumeric:
      return AllAre(view, CharacterClass::kNumeric);
    case Member::kIsprintable:
      return view.empty() || AllAre(view, CharacterClass::kPrintable);
    case Member::kIsspace:
      return AllAre(view, CharacterClass::kSpace);
    default:
      return IsTitle(view);
  }
}

Value Replace(Interpreter& in, Value text, const CallArguments& arguments) {
  Parameters p(arguments, "replace", {"old", "new", "count"}, 2, 2);
  std::string_view from = TextArgument(p.Get(0), "replace() argument 1");
  std::string_view to = TextArgument(p.Get(1), "replace() argument 2");
  int64_t count = ToIndex(p.Get(2, Value::Int(-1)), "count");
  if (!text.is_markup() || p.Get(1).is_markup()) {
    return ReplaceText(in, text.str(), from, to, count, text.flags);
  }
  std::string escaped;
  AppendEscaped(to, &escaped);
  return ReplaceText(in, text.str(), from, escaped, count, text.flags);
}

}  // namespace

Value CallStringMethod(Interpreter& in, Value text, Member member, const CallArguments& arguments) {
  std::string_view view = text.str();
  const uint8_t flags = text.flags;
  switch (member) {
    case Member::kStrip:
    case Member::kLstrip:
    case Member::kRstrip: {
      Parameters p(arguments, "strip", {"chars"}, 0, 1);
      return StripText(text, p.Get(0),
                       member == Member::kStrip    ? kStripBoth
                       : member == Member::kLstrip ? kStripLeft
                                                   : kStripRight);
    }
    case Member::kSplit:
    case Member::kRsplit: {
      Parameters p(arguments, "split", {"sep", "maxsplit"});
      return SplitText(in, view, p, member == Member::kRsplit, flags);
    }
    case Member::kStartswith:
    case Member::kEndswith: {
      Parameters p(arguments, "startswith", {"prefix", "start", "end"}, 1, 3);
      return Value::Bool(StartsOrEnds(view, p, member == Member::kEndswith));
    }
    case Member::kReplace:
      return Replace(in, text, arguments);
    case Member::kUpper:
    case Member::kLower:
    case Member::kCasefold:
    case Member::kSwapcase:
    case Member::kTitle:
    case Member::kCapitalize: {
      Parameters p(arguments, "str method", {});
      in.Step(view.size() / 64);
      return ChangeCase(in, view, member, flags);
    }
    case Member::kJoin: {
      Parameters p(arguments, "join", {"iterable"}, 1, 1);
      return JoinItems(in, text, p.Get(0));
    }
    case Member::kFormat:
      return StrFormat(in, text, arguments);
    case Member::kFormatMap: {
      Parameters p(arguments, "format_map", {"mapping"}, 1, 1);
      return StrFormatMap(in, text, p.Get(0));
    }
    case Member::kFind:
    case Member::kRfind:
    case Member::kIndex:
    case Member::kRindex: {
      Parameters p(arguments, "find", {"sub", "start", "end"}, 1, 3);
      const bool last = member == Member::kRfind || member == Member::kRindex;
      int64_t at = FindIn(view, p, last);
      if (at < 0 && (member == Member::kIndex || member == Member::kRindex)) {
        Fail("substring not found");
      }
      return Value::Int(at);
    }
    case Member::kCount: {
      Parameters p(arguments, "count", {"sub", "start", "end"}, 1, 3);
      Part part = PartOf(view, p.Get(1), p.Get(2));
      std::string_view wanted = TextArgument(p.Get(0), "argument");
      return Value::Int(part.beyond ? 0 : CountIn(part.text, wanted));
    }
    case Member::kPartition:
    case Member::kRpartition: {
      Parameters p(arguments, "partition", {"sep"}, 1, 1);
      return PartitionText(in, view, p.Get(0), member == Member::kRpartition, flags);
    }
    case Member::kRemoveprefix:
    case Member::kRemovesuffix: {
      Parameters p(arguments, "removeprefix", {"prefix"}, 1, 1);
      std::string_view cut = TextArgument(p.Get(0), "argument");
      if (member == Member::kRemoveprefix) {
        if (view.starts_with(cut)) view.remove_prefix(cut.size());
      } else if (view.ends_with(cut)) {
        view.remove_suffix(cut.size());
      }
      return Value::String(view, flags);
    }
    case Member::kSplitlines: {
      Parameters p(arguments, "splitlines", {"keepends"});
      return SplitLines(in, view, IsTrue(p.Get(0)), flags);
    }
    case Member::kCenter:
    case Member::kLjust:
    case Member::kRjust: {
      Parameters p(arguments, "center", {"width", "fillchar"}, 1, 2);
      Value fill = p.Get(1, Value::String(" "));
      return CenterText(in, text, ToIndex(p.Get(0), "width"), TextArgument(fill, "fill"), member);
    }
    case Member::kZfill: {
      Parameters p(arguments, "zfill", {"width"}, 1, 1);
      return ZeroFill(in, text, ToIndex(p.Get(0), "width"));
    }
    case Member::kExpandtabs: {
      Parameters p(arguments, "expandtabs", {"tabsize"});
      return ExpandTabs(in, view, ToIndex(p.Get(0, Value::Int(8)), "tabsize"), flags);
    }
    default: {
      Parameters p(arguments, "str method", {});
      return Value::Bool(Classify(view, member));
    }
  }
}

}  // namespace portico::jinja
