// "{} {name:>10}".format(…)
#include "template/format/format.h"
#include "template/run/interpreter.h"
#include "template/value/dict_access.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

// Replacement fields of a format string.
class Fields {
 public:
  Fields(Interpreter& in, bool escape, const CallArguments* arguments, Value mapping)
      : in_(in), escape_(escape), arguments_(arguments), mapping_(mapping) {}

  void Format(std::string_view text, int depth, std::string* out) {
    for (size_t i = 0; i < text.size();) {
      char c = text[i];
      if (c != '{' && c != '}') {
        size_t end = std::min(text.find_first_of("{}", i), text.size());
        out->append(text.substr(i, end - i));
        i = end;
      } else if (i + 1 < text.size() && text[i + 1] == c) {
        out->push_back(c);
        i += 2;
      } else if (c == '}') {
        Fail("Single '}' encountered in format string");
      } else {
        i = Field(text, i + 1, depth, out);
      }
      in_.CheckSize(*out);
    }
  }

 private:
  // Where the field's name ends: at '}', ':' or '!', but not between brackets.
  static size_t NameEnd(std::string_view text, size_t at) {
    for (; at < text.size(); ++at) {
      if (text[at] == '{') Fail("unexpected '{' in field name");
      if (text[at] == '}' || text[at] == ':' || text[at] == '!') return at;
      if (text[at] == '[') at = std::min(text.find(']', at), text.size() - 1);
    }
    Fail("expected '}' before end of string");
  }

  // The brace that closes the field.
  static size_t SpecEnd(std::string_view text, size_t at) {
    for (int open = 1; at < text.size(); ++at) {
      if (text[at] == '{') ++open;
      if (text[at] == '}' && --open == 0) return at;
    }
    Fail("unmatched '{' in format spec");
  }

  // `at` is behind the brace; returns the position behind the closing one.
  size_t Field(std::string_view text, size_t at, int depth, std::string* out) {
    if (depth > 1) Fail("Max string recursion exceeded");
    if (at >= text.size()) Fail("Single '{' encountered in format string");
    size_t end = NameEnd(text, at);
    Value value = Lookup(text.substr(at, end - at));
    if (text[end] == '!') {
      if (end + 1 >= text.size()) Fail("end of string while looking for conversion specifier");
      const char conversion = text[end + 1];
      end = std::min(end + 2, text.size() - 1);
      if (text[end] != ':' && text[end] != '}') Fail("expected ':' after conversion specifier");
      value = Converted(conversion, value);
    }
    std::string spec;
    if (text[end] == ':') {
      const size_t begin = end + 1;
      end = SpecEnd(text, begin);
      Format(text.substr(begin, end - begin), depth + 1, &spec);
    }
    std::string formatted;
    AppendFormatted(in_, value, spec, &formatted);
    if (escape_ && !value.is_markup()) {
      AppendEscaped(formatted, out);
    } else {
      out->append(formatted);
    }
    return end + 1;
  }

  Value Converted(char conversion, Value value) {
    if (conversion == 's') return ToStr(in_, value);
    if (conversion == 'r') return in_.NewString(Repr(in_, value));
    if (conversion == 'a') return in_.NewString(AsciiRepr(in_, value));
    Fail("Unknown conversion specifier ", conversion);
  }

  Value Positional(size_t index) {
    if (arguments_ == nullptr || index >= arguments_->count) {
      Fail("Replacement index ", std::to_string(index), " out of range for positional args tuple");
    }
    return arguments_->positional[index];
  }

  Value Lookup(std::string_view name) {
    if (name.empty() || IsNumber(name)) return Positional(Index(name));
    size_t end = std::min(name.find_first_of(".["), name.size());
    Value value = First(name.substr(0, end));
    std::string_view rest = name.substr(end);
    while (!rest.empty()) {
      if (rest[0] == '.') {
        size_t stop = std::min(rest.find_first_of(".[", 1), rest.size());
        const auto* attribute =
            in_.arena().New<std::string_view>(in_.arena().Copy(rest.substr(1, stop - 1)));
        value = in_.GetAttr(value, attribute, FindMember(*attribute));
        rest.remove_prefix(stop);
      } else {
        size_t stop = rest.find(']');
        if (stop == std::string_view::npos) Fail("Missing ']' in format string");
        std::string_view key = rest.substr(1, stop - 1);
        value = in_.GetItem(value, IsNumber(key) ? Value::Int(ToNumber(key)) : Value::String(key));
        rest.remove_prefix(stop + 1);
        if (!rest.empty() && rest[0] != '.' && rest[0] != '[') {
          Fail("Only '.' or '[' may follow ']' in format field specifier");
        }
      }
    }
    return value;
  }

  static bool IsNumber(std::string_view text) {
    return !text.empty() && text.size() < 9 &&
           text.find_first_not_of("0123456789") == std::string_view::npos;
  }
  static int64_t ToNumber(std::string_view text) { return std::stoll(std::string(text)); }

  // "{}" counts by itself, and only where no number was named before.
  size_t Index(std::string_view name) {
    if (!name.empty()) {
      if (numbering_ == Numbering::kCounted && next_ > 0) FailNumbering();
      numbering_ = Numbering::kNamed;
      return static_cast<size_t>(ToNumber(name));
    }
    if (numbering_ == Numbering::kNamed) FailNumbering();
    numbering_ = Numbering::kCounted;
    return next_++;
  }
  [[noreturn]] static void FailNumbering() {
    Fail("cannot switch from manual field specification to automatic field numbering");
  }

  Value First(std::string_view name) {
    if (arguments_ != nullptr && IsNumber(name)) {
      return Positional(static_cast<size_t>(ToNumber(name)));
    }
    Value found;
    if (arguments_ != nullptr) {
      for (size_t i = 0; i < arguments_->named_count; ++i) {
        if (arguments_->named[i].name == name) return arguments_->named[i].value;
      }
    } else if (mapping_.is_dict() && DictLookup(in_, mapping_, Value::String(name), &found)) {
      return found;
    }
    Fail("KeyError: '", name, "'");
  }

  Interpreter& in_;
  bool escape_;
  const CallArguments* arguments_;  // null: names come from the mapping
  Value mapping_;
  enum class Numbering { kNone, kCounted, kNamed };
  Numbering numbering_ = Numbering::kNone;
  size_t next_ = 0;
};

}  // namespace

Value StrFormat(Interpreter& in, Value format, const CallArguments& arguments) {
  std::string out;
  Fields(in, format.is_markup(), &arguments, Value()).Format(format.str(), 0, &out);
  return in.NewString(out, format.flags);
}

Value StrFormatMap(Interpreter& in, Value format, Value mapping) {
  std::string out;
  Fields(in, format.is_markup(), nullptr, mapping).Format(format.str(), 0, &out);
  return in.NewString(out, format.flags);
}

}  // namespace portico::jinja
