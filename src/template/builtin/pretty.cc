#include "template/builtin/pretty.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/stable_sort.h"
#include "template/builtin/text_tools.h"
#include "template/value/dict_access.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

constexpr int64_t kWidth = 80;
constexpr int kMaxDepth = 200;

std::string_view ClassName(Value v) {
  return v.is_undefined() ? "jinja2.runtime.Undefined"
         : v.is_markup()  ? "markupsafe.Markup"
                          : TypeName(v);
}

// By value, or by type where the two have no order.
bool KeyLess(Interpreter& in, Value a, Value b) {
  try {
    return Ordered(in, CompareOp::kLt, a, b);
  } catch (const Failure& failure) {
    if (failure.code == StatusCode::kResourceExhausted) throw;
    return ClassName(a) < ClassName(b);
  }
}

std::vector<std::pair<Value, Value>> SortedEntries(Interpreter& in, Value dict) {
  std::vector<std::pair<Value, Value>> entries;
  for (size_t i = 0, size = DictSize(dict); i < size; ++i) {
    in.Step();
    entries.emplace_back(DictKeyAt(dict, i), DictValueAt(dict, i));
  }
  StableSort(&entries, [&](const auto& a, const auto& b) { return KeyLess(in, a.first, b.first); });
  return entries;
}

// repr() with sorted dicts.
void AppendSortedRepr(Interpreter& in, Value v, std::string* out, int depth = 0) {
  if (depth > kMaxDepth) LimitReached("values are nested too deeply");
  in.Step();
  in.CheckSize(*out);
  if (v.is_dict()) {
    out->push_back('{');
    bool first = true;
    for (const auto& [key, value] : SortedEntries(in, v)) {
      if (!std::exchange(first, false)) out->append(", ");
      AppendSortedRepr(in, key, out, depth + 1);
      out->append(": ");
      AppendSortedRepr(in, value, out, depth + 1);
    }
    out->push_back('}');
  } else if (v.is_sequence()) {
    out->push_back(v.is_list() ? '[' : '(');
    const size_t size = SequenceSize(v);
    for (size_t i = 0; i < size; ++i) {
      if (i > 0) out->append(", ");
      AppendSortedRepr(in, SequenceItem(v, i), out, depth + 1);
    }
    out->append(v.is_list() ? "]" : size == 1 ? ",)" : ")");
  } else {
    AppendRepr(in, v, out, depth);
  }
}

std::string SortedRepr(Interpreter& in, Value v) {
  std::string out;
  AppendSortedRepr(in, v, &out);
  return out;
}

std::string StringRepr(std::string_view text) {
  std::string out;
  AppendStringRepr(text, &out);
  return out;
}

int64_t Width(std::string_view text) { return static_cast<int64_t>(Length(text)); }

// A line as words, each with the white space behind it.
std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  bool in_space = false;
  for (size_t at = 0; at < line.size();) {
    size_t length;
    const bool space = IsSpace(CodePointAt(line, at, &length));
    if (in_space && !space) {
      out.push_back(line.substr(begin, at - begin));
      begin = at;
    }
    in_space = space;
    at += length;
  }
  if (begin < line.size()) out.push_back(line.substr(begin));
  return out;
}

// `indent`: where the value begins in its line; `allowance`: how much comes behind it there.
class Printer {
 public:
  Printer(Interpreter& in, std::string* out) : in_(in), out_(*out) {}

  void Print(Value v, int64_t indent, int64_t allowance, int level) {
    if (level > kMaxDepth) LimitReached("values are nested too deeply");
    std::string whole = SortedRepr(in_, v);
    in_.Step(whole.size() / 64);
    in_.CheckSize(out_);
    if (Width(whole) <= kWidth - indent - allowance) {
      out_.append(whole);
    } else if (v.is_dict()) {
      PrintDict(v, indent, allowance, level + 1);
    } else if (v.is_sequence()) {
      PrintSequence(v, indent, allowance, level + 1);
    } else if (v.is_string() && !v.is_markup() && v.size > 0) {
      PrintString(v.str(), indent, allowance, level + 1);
    } else {
      out_.append(whole);
    }
  }

 private:
  void NewLine(int64_t indent) {
    in_.Step();
    in_.CheckSize(out_);
    out_.push_back('\n');
    out_.append(static_cast<size_t>(indent), ' ');
  }

  void PrintDict(Value v, int64_t indent, int64_t allowance, int level) {
    out_.push_back('{');
    std::vector<std::pair<Value, Value>> entries = SortedEntries(in_, v);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) {
        out_.push_back(',');
        NewLine(indent + 1);
      }
      std::string key = SortedRepr(in_, entries[i].first);
      out_.append(key).append(": ");
      const bool last = i + 1 == entries.size();
      Print(entries[i].second, indent + 1 + Width(key) + 2, last ? allowance + 1 : 1, level);
    }
    out_.push_back('}');
  }

  void PrintSequence(Value v, int64_t indent, int64_t allowance, int level) {
    const size_t size = SequenceSize(v);
    std::string_view end = v.is_list() ? "]" : size == 1 ? ",)" : ")";
    out_.push_back(v.is_list() ? '[' : '(');
    for (size_t i = 0; i < size; ++i) {
      if (i > 0) {
        out_.push_back(',');
        NewLine(indent + 1);
      }
      const bool last = i + 1 == size;
      Print(SequenceItem(v, i), indent + 1, last ? allowance + Width(end) : 1, level);
    }
    out_.append(end);
  }

  // As strings side by side, one a line: of whole lines, or of words where a line is too long.
  void PrintString(std::string_view text, int64_t indent, int64_t allowance, int level) {
    const bool alone = level == 1;
    if (alone) {
      ++indent;
      ++allowance;
    }
    std::vector<std::string> chunks;
    Value lines = SplitLines(in_, text, /*keep_ends=*/true, 0);
    for (size_t i = 0, size = SequenceSize(lines); i < size; ++i) {
      std::string_view line = SequenceItem(lines, i).str();
      std::string whole = StringRepr(line);
      const int64_t behind = i + 1 == size ? allowance : 0;
      in_.Step(line.size() / 16);
      if (Width(whole) <= kWidth - indent - behind) {
        chunks.push_back(std::move(whole));
      } else {
        AppendWords(line, kWidth - indent, behind, &chunks);
      }
    }
    const bool brackets = alone && chunks.size() > 1;
    if (brackets) out_.push_back('(');
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (i > 0) NewLine(indent);
      out_.append(chunks[i]);
    }
    if (brackets) out_.push_back(')');
  }

  void AppendWords(std::string_view line, int64_t width, int64_t behind,
                   std::vector<std::string>* chunks) {
    std::vector<std::string_view> words = Words(line);
    std::string_view current = line.substr(0, 0);
    for (size_t i = 0; i < words.size(); ++i) {
      std::string_view candidate(current.data(), current.size() + words[i].size());
      if (i + 1 == words.size()) width -= behind;
      in_.Step(candidate.size() / 64);
      if (Width(StringRepr(candidate)) <= width) {
        current = candidate;
        continue;
      }
      if (!current.empty()) chunks->push_back(StringRepr(current));
      current = words[i];
    }
    if (!current.empty()) chunks->push_back(StringRepr(current));
  }

  Interpreter& in_;
  std::string& out_;
};

}  // namespace

std::string Pretty(Interpreter& in, Value v) {
  std::string out;
  Printer(in, &out).Print(v, 0, 0, 0);
  return out;
}

}  // namespace portico::jinja
