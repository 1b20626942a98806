// "%s and %5.2f" % values
#include <cmath>

#include "template/format/format.h"
#include "template/format/format_spec.h"
#include "template/run/interpreter.h"
#include "template/value/bigint.h"
#include "template/value/dict_access.h"
#include "template/value/unicode.h"

namespace portico::jinja {
namespace {

struct Conversion {
  bool left = false, plus = false, space = false, zero = false, alternate = false;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

class Formatter {
 public:
  Formatter(Interpreter& in, Value format, Value values)
      : in_(in),
        format_(format.str()),
        escape_(format.is_markup()),
        values_(values),
        is_row_(values.is(Kind::kTuple)),
        value_(values),
        left_(is_row_ ? SequenceSize(values) : 1) {}

  std::string Run() {
    for (size_t i = 0; i < format_.size();) {
      size_t percent = format_.find('%', i);
      out_.append(format_.substr(i, percent - i));
      if (percent == std::string_view::npos) break;
      at_ = percent + 1;
      One();
      i = at_;
      in_.CheckSize(out_);
    }
    if (!IsMapping() && left_ > 0) Fail("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  // Python takes anything that can be indexed for one; an undefined value then fails when it is.
  bool IsMapping() const {
    return values_.is_dict() || values_.is_list() || values_.is(Kind::kRange) ||
           values_.is_undefined();
  }

  char Peek() const {
    if (at_ >= format_.size()) Fail("incomplete format");
    return format_[at_];
  }

  Value NextValue() {
    if (left_ == 0) Fail("not enough arguments for format string");
    --left_;
    if (!is_row_) return value_;
    return SequenceItem(values_, SequenceSize(values_) - 1 - left_);
  }

  int64_t Count() {
    if (Peek() == '*') {
      ++at_;
      Value count = NextValue();
      if (!IsInteger(count)) Fail("* wants int");
      return LimitedCount(ToIndex(count, "* wants int"));
    }
    std::string_view rest = format_.substr(at_);
    const int64_t count = TakeCount(&rest);
    at_ = format_.size() - rest.size();
    return std::max<int64_t>(count, 0);
  }

  void One() {
    if (Peek() == '%') {
      ++at_;
      out_.push_back('%');
      return;
    }
    Conversion c;
    if (Peek() == '(') {
      size_t end = format_.find(')', at_);
      if (end == std::string_view::npos) Fail("incomplete format key");
      if (values_.is_undefined()) FailUndefined(values_);
      if (!values_.is_dict()) Fail("format requires a mapping");
      Value key = Value::String(format_.substr(at_ + 1, end - at_ - 1));
      Value value;
      if (!DictLookup(in_, values_, key, &value)) Fail(Repr(in_, key));
      // The value found is the only one from here on.
      is_row_ = false;
      value_ = value;
      left_ = 1;
      at_ = end + 1;
    }
    for (;; ++at_) {
      char flag = Peek();
      if (flag == '-')
        c.left = true;
      else if (flag == '+')
        c.plus = true;
      else if (flag == ' ')
        c.space = true;
      else if (flag == '0')
        c.zero = true;
      else if (flag == '#')
        c.alternate = true;
      else
        break;
    }
    c.width = Count();
    if (c.width < 0) {
      c.left = true;
      c.width = -c.width;
    }
    if (Peek() == '.') {
      ++at_;
      c.precision = std::max<int64_t>(0, Count());
    }
    if (Peek() == 'l' || Peek() == 'h' || Peek() == 'L') ++at_;
    Peek();
    c.type = format_[at_++];
    Convert(c, NextValue());
  }

  void Convert(const Conversion& c, Value value) {
    switch (c.type) {
      case 's':
      case 'r':
      case 'a':
        return Text(c, value);
      case 'c': {
        std::string text;
        if (IsInteger(value)) {
          AppendCharacter(value, &text);
        } else if (value.is_string() && Length(value.str()) == 1) {
          text = value.str();
        } else {
          Fail("%c requires int or char");
        }
        return PadText(c, text);
      }
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return Number(c, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': {
        if (value.is_undefined()) FailUndefined(value);
        if (!value.is_number()) {
          Fail("must be real number, not ", TypeName(value));
        }
        return Signed(c, FormatDouble(RealOf(value), c.type, DigitsOf(c.precision), c.alternate));
      }
      default:
        Fail("unsupported format character '", c.type, "'");
    }
  }

  void Text(const Conversion& c, Value value) {
    std::string text;
    if (c.type == 's') {
      AppendStr(in_, value, &text);
    } else {
      text = c.type == 'r' ? Repr(in_, value) : AsciiRepr(in_, value);
    }
    if (c.precision >= 0) text.resize(ByteOffset(text, static_cast<size_t>(c.precision)));
    if (escape_ && !value.is_markup()) {
      std::string escaped;
      AppendEscaped(text, &escaped);
      text = std::move(escaped);
    }
    PadText(c, text);
  }

  void Number(const Conversion& c, Value value) {
    if (value.is_undefined()) FailUndefined(value);
    const bool decimal = c.type == 'd' || c.type == 'i' || c.type == 'u';
    if (value.is(Kind::kFloat) && decimal && std::isfinite(value.d)) {
      value = IntegerFromDouble(value.d, &in_.arena());
    }
    if (!IsInteger(value)) {
      Fail("%", c.type, " format: a real number is required, not ", TypeName(value));
    }
    std::string text;
    AppendInteger(value, &text, decimal ? 10 : c.type == 'o' ? 8 : 16);
    const bool negative = text.starts_with('-');
    std::string digits = text.substr(negative);
    if (c.type == 'X') digits = Upper(digits);
    if (static_cast<int64_t>(digits.size()) < c.precision) {
      digits.insert(0, static_cast<size_t>(c.precision) - digits.size(), '0');
    }
    std::string prefix = c.alternate && !decimal ? std::string("0") + c.type : std::string();
    Signed(c, (negative ? "-" : "") + digits, prefix);
  }

  void Signed(const Conversion& c, std::string text, const std::string& prefix = {}) {
    std::string sign;
    if (text.starts_with('-')) {
      sign = "-";
      text.erase(0, 1);
    } else if (c.plus) {
      sign = "+";
    } else if (c.space) {
      sign = " ";
    }
    Pad(c, sign + prefix, text);
  }

  // Zeros fill up numbers alone.
  void PadText(Conversion c, const std::string& text) {
    c.zero = false;
    Pad(c, {}, text);
  }

  void Pad(const Conversion& c, const std::string& sign, const std::string& text) {
    int64_t fill = c.width - static_cast<int64_t>(Length(sign) + Length(text));
    size_t count = fill > 0 ? static_cast<size_t>(fill) : 0;
    if (c.left) {
      out_.append(sign).append(text).append(count, ' ');
    } else if (c.zero) {
      out_.append(sign).append(count, '0').append(text);
    } else {
      out_.append(count, ' ').append(sign).append(text);
    }
  }

  Interpreter& in_;
  std::string_view format_;
  bool escape_;
  Value values_;
  bool is_row_;  // a tuple of values
  Value value_;  // else the one value
  size_t left_;  // values that were not used yet
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

Value PercentFormat(Interpreter& in, Value format, Value values) {
  return in.NewString(Formatter(in, format, values).Run(), format.flags);
}

}  // namespace portico::jinja
