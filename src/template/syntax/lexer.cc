#include "template/syntax/lexer.h"

#include <algorithm>
#include <cmath>

#include "template/run/failure.h"
#include "template/syntax/string_literal.h"
#include "template/value/bigint.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view StripEnd(std::string_view text) {
  return text.substr(0, text.size() - TrailingSpace(text));
}

class Lexer {
 public:
  Lexer(std::string_view source, Arena* arena) : source_(source), arena_(arena) {}

  std::vector<Token> Run() {
    while (position_ < source_.size()) Root();
    Add(TokenType::kEnd, {});
    return std::move(tokens_);
  }

 private:
  bool At(std::string_view text) const { return source_.substr(position_).starts_with(text); }
  bool AtFrom(size_t from, std::string_view text) const {
    return from <= source_.size() && source_.substr(from).starts_with(text);
  }
  void Advance(size_t count) {
    line_ += static_cast<int>(
        std::count(source_.begin() + position_, source_.begin() + position_ + count, '\n'));
    position_ += count;
    if (count > 0) line_starting_ = source_[position_ - 1] == '\n';
  }
  void Add(TokenType type, std::string_view text) {
    tokens_.push_back({type, line_, text, Value()});
  }
  void AddData(std::string_view text) {
    if (!text.empty()) Add(TokenType::kData, text);
  }
  size_t SpaceFrom(size_t from) const { return LeadingSpace(source_.substr(from)); }

  // The text before a tag, less what the tag strips.
  std::string_view Strip(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return StripEnd(text);
    if (sign == '+' || is_variable) return text;
    size_t newline = text.rfind('\n');
    size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
    if (line_start == 0 && !line_starting_) return text;
    std::string_view rest = text.substr(line_start);
    if (!rest.empty() && LeadingSpace(rest) == rest.size()) return text.substr(0, line_start);
    return text;
  }

  void Root() {
    size_t tag = position_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        AddData(source_.substr(position_));
        Advance(source_.size() - position_);
        return;
      }
      char next = source_[tag + 1];
      if (next == '{' || next == '%' || next == '#') break;
    }
    std::string_view text = source_.substr(position_, tag - position_);
    char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    size_t length = sign == '-' || sign == '+' ? 3 : 2;
    char opener = source_[tag + 1];
    text = Strip(text, sign, opener == '{');
    AddData(text);
    Advance(tag - position_);
    if (opener == '#') {
      Advance(length);
      Comment();
    } else if (opener == '{') {
      Add(TokenType::kVariableBegin, {});
      Advance(length);
      Tag("}}", TokenType::kVariableEnd);
    } else if (size_t raw = RawBegin(tag + length)) {
      Advance(raw - position_);
      Raw();
    } else {
      Add(TokenType::kBlockBegin, {});
      Advance(length);
      Tag("%}", TokenType::kBlockEnd);
    }
  }

  void Comment() {
    size_t end = source_.find("#}", position_);
    if (end == std::string_view::npos) SyntaxError(line_, "Missing end of comment tag");
    char sign = end > position_ ? source_[end - 1] : '\0';
    Advance(end + 2 - position_);
    AfterEnd(sign, true);
  }

  // After the end of a tag: what it strips on its right.
  void AfterEnd(char sign, bool trims_newline) {
    if (sign == '-') {
      Advance(SpaceFrom(position_));
    } else if (sign != '+' && trims_newline && At("\n")) {
      Advance(1);
    }
  }

  // The position behind `raw %}` if it begins at `from`, else 0.
  size_t RawBegin(size_t from) const {
    size_t at = from + SpaceFrom(from);
    if (!AtFrom(at, "raw")) return 0;
    at += 3;
    at += SpaceFrom(at);
    if (AtFrom(at, "%}")) return at + 2;
    if (AtFrom(at, "-%}")) return at + 3 + SpaceFrom(at + 3);
    return 0;
  }

  void Raw() {
    for (size_t tag = source_.find("{%", position_); tag != std::string_view::npos;
         tag = source_.find("{%", tag + 1)) {
      size_t at = tag + 2;
      char sign = at < source_.size() ? source_[at] : '\0';
      if (sign == '-' || sign == '+') ++at;
      at += SpaceFrom(std::min(at, source_.size()));
      if (!AtFrom(at, "endraw")) continue;
      at += 6;
      at += SpaceFrom(at);
      char end_sign = at < source_.size() ? source_[at] : '\0';
      if (end_sign == '-' || end_sign == '+') ++at;
      if (!AtFrom(at, "%}")) continue;
      AddData(Strip(source_.substr(position_, tag - position_), sign, false));
      Advance(at + 2 - position_);
      AfterEnd(end_sign, true);
      return;
    }
    SyntaxError(line_, "Missing end of raw directive");
  }

  // Tokens up to the end of a {{ }} or {% %}; an end that stands inside brackets is not one.
  void Tag(std::string_view end, TokenType end_type) {
    std::string open;
    while (true) {
      if (position_ >= source_.size()) return;  // the parser sees the end of the template
      if (open.empty()) {
        char sign = source_[position_];
        if (sign == '-' && AtFrom(position_ + 1, end)) {
          Add(end_type, {});
          Advance(1 + end.size());
          return AfterEnd('-', false);
        }
        if (sign == '+' && end_type == TokenType::kBlockEnd && AtFrom(position_ + 1, end)) {
          Add(end_type, {});
          return Advance(1 + end.size());
        }
        if (At(end)) {
          Add(end_type, {});
          Advance(end.size());
          return AfterEnd('\0', end_type == TokenType::kBlockEnd);
        }
      }
      if (size_t space = SpaceFrom(position_)) {
        Advance(space);
      } else {
        One(&open);
      }
    }
  }

  void One(std::string* open) {
    char c = source_[position_];
    if (IsDigit(c)) return Number();
    if (c == '\'' || c == '"') return StringToken(c);
    if (size_t length = NameLength(source_.substr(position_))) {
      Add(TokenType::kName, source_.substr(position_, length));
      return Advance(length);
    }
    Operator(open);
  }

  void Operator(std::string* open) {
    static constexpr std::string_view kOperators[] = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (std::string_view op : kOperators) {
      if (!At(op)) continue;
      char c = op[0];
      if (c == '(' || c == '[' || c == '{') {
        open->push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
      } else if (c == ')' || c == ']' || c == '}') {
        if (open->empty() || open->back() != c) {
          if (open->empty()) SyntaxError(line_, "unexpected '", op, "'");
          SyntaxError(line_, "unexpected '", op, "', expected '", open->substr(open->size() - 1),
                      "'");
        }
        open->pop_back();
      }
      Add(TokenType::kOperator, op);
      return Advance(op.size());
    }
    size_t length = std::max<size_t>(1, Utf8SequenceLength(source_.substr(position_)));
    SyntaxError(line_, "unexpected char '", source_.substr(position_, length), "'");
  }

  // Digits with single underscores between them, from `at`; returns the end.
  template <typename IsOne>
  size_t Digits(size_t at, IsOne is_one, bool underscore_first = false) const {
    size_t end = at;
    while (at < source_.size()) {
      if (is_one(source_[at])) {
        end = ++at;
      } else if (source_[at] == '_' && (end == at) && (at > position_ || underscore_first) &&
                 at + 1 < source_.size() && is_one(source_[at + 1])) {
        ++at;
      } else {
        break;
      }
    }
    return end;
  }

  size_t FloatEnd() const {
    if (position_ > 0 && source_[position_ - 1] == '.') return 0;
    size_t end = Digits(position_, IsDigit);
    bool is_float = false;
    if (AtFrom(end, ".") && end + 1 < source_.size() && IsDigit(source_[end + 1])) {
      end = Digits(end + 1, IsDigit);
      is_float = true;
    }
    if (AtFrom(end, "e") || AtFrom(end, "E")) {
      size_t at = end + 1;
      if (AtFrom(at, "+") || AtFrom(at, "-")) ++at;
      if (at < source_.size() && IsDigit(source_[at])) {
        end = Digits(at, IsDigit);
        is_float = true;
      }
    }
    return is_float ? end : 0;
  }

  void Number() {
    size_t end = FloatEnd();
    const bool is_float = end != 0;
    int base = 10;
    if (!is_float) end = IntegerEnd(&base);
    std::string text(source_.substr(position_, end - position_));
    std::erase(text, '_');
    Add(TokenType::kNumber, {});
    if (is_float) {
      tokens_.back().number = Value::Float(ParseDouble(text));
    } else {
      tokens_.back().number = ParseInteger(base == 10 ? text : text.substr(2), base, arena_);
    }
    Advance(end - position_);
  }

  size_t IntegerEnd(int* base) const {
    struct Form {
      char letter;
      int base;
    };
    if (source_[position_] == '0' && position_ + 1 < source_.size()) {
      for (Form form : {Form{'b', 2}, Form{'o', 8}, Form{'x', 16}}) {
        if ((source_[position_ + 1] | 0x20) != form.letter) continue;
        auto is_one = [&](char c) { return DigitValue(c) < form.base; };
        size_t end = Digits(position_ + 2, is_one, true);
        if (end > position_ + 2) {
          *base = form.base;
          return end;
        }
      }
    }
    if (source_[position_] == '0') {
      return Digits(position_, [](char c) { return c == '0'; });
    }
    return Digits(position_, IsDigit);
  }

  void StringToken(char quote) {
    size_t at = position_ + 1;
    while (at < source_.size() && source_[at] != quote) at += source_[at] == '\\' ? 2 : 1;
    if (at >= source_.size()) {
      SyntaxError(line_, "unexpected char '", quote, "'");
    }
    std::string_view body = source_.substr(position_ + 1, at - position_ - 1);
    if (body.find('\\') != std::string_view::npos) body = Unescape(body, line_, arena_);
    Add(TokenType::kString, body);
    Advance(at + 1 - position_);
  }

  std::string_view source_;
  Arena* arena_;
  size_t position_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::string NormalizeSource(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out.push_back(source[i]);
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::vector<Token> Tokenize(std::string_view source, Arena* arena) {
  return Lexer(source, arena).Run();
}

}  // namespace portico::jinja
