// "%s and %5.2f" % values
#include <cmath>

#include "template/bigint.h"
#include "template/dict_access.h"
#include "template/format.h"
#include "template/interpreter.h"
#include "template/unicode.h"

namespace portico::jinja {
namespace {

constexpr int64_t kMaxWidth = 100'000;

struct Conversion {
  bool left = false, plus = false, space = false, zero = false, alternate = false;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

class Formatter {
 public:
  Formatter(Interpreter& in, Value format, Value values)
      : in_(in), format_(format.str()), escape_(format.is_markup()), values_(values) {}

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
    const bool all_used = values_.is(Kind::kTuple) ? next_ >= SequenceSize(values_)
                                                   : next_ > 0 || by_name_ || IsMapping();
    if (!all_used && !values_.is_list()) {
      Fail("not all arguments converted during string formatting");
    }
    return std::move(out_);
  }

 private:
  // Python takes anything that can be indexed for one; an undefined value then fails when it is.
  bool IsMapping() const { return values_.is_dict() || values_.is_undefined(); }

  char Peek() const {
    if (at_ >= format_.size()) Fail("incomplete format");
    return format_[at_];
  }

  Value NextValue() {
    if (!values_.is(Kind::kTuple)) {
      if (next_++ > 0) Fail("not enough arguments for format string");
      return values_;
    }
    if (next_ >= SequenceSize(values_)) Fail("not enough arguments for format string");
    return SequenceItem(values_, next_++);
  }

  int64_t Count() {
    if (Peek() == '*') {
      ++at_;
      return Limited(ToIndex(NextValue(), "* wants int"));
    }
    int64_t count = 0;
    while (Peek() >= '0' && Peek() <= '9') count = Limited(count * 10 + (format_[at_++] - '0'));
    return count;
  }
  static int64_t Limited(int64_t count) {
    if (count > kMaxWidth) LimitReached("the width of a format is too large");
    return count;
  }

  void One() {
    Conversion c;
    Value value;
    if (Peek() == '(') {
      size_t end = format_.find(')', at_);
      if (end == std::string_view::npos) Fail("incomplete format key");
      if (values_.is_undefined()) FailUndefined(values_);
      if (!values_.is_dict()) Fail("format requires a mapping");
      Value key = Value::String(format_.substr(at_ + 1, end - at_ - 1));
      if (!DictLookup(in_, values_, key, &value)) Fail(Repr(in_, key));
      by_name_ = true;
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
    while (Peek() == 'l' || Peek() == 'h' || Peek() == 'L') ++at_;
    c.type = format_[at_++];
    if (c.type == '%') {
      out_.push_back('%');
      return;
    }
    if (value.is(Kind::kMissing)) value = NextValue();
    Convert(c, value);
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
          AppendUtf8(static_cast<uint32_t>(ToIndex(value, "%c")), &text);
        } else if (value.is_string() && Length(value.str()) == 1) {
          text = value.str();
        } else {
          Fail("%c requires int or char");
        }
        return Pad(c, {}, text);
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
        int precision = c.precision < 0 ? 6 : static_cast<int>(std::min<int64_t>(c.precision, 500));
        std::string text = FormatDouble(ToDouble(value), c.type, precision, c.alternate);
        return Signed(c, text);
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
      AppendRepr(in_, value, &text);
    }
    if (c.precision >= 0) text.resize(ByteOffset(text, static_cast<size_t>(c.precision)));
    if (escape_ && !value.is_markup()) {
      std::string escaped;
      AppendEscaped(text, &escaped);
      text = std::move(escaped);
    }
    Conversion plain = c;
    plain.zero = false;
    Pad(plain, {}, text);
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
  size_t at_ = 0;
  size_t next_ = 0;
  bool by_name_ = false;
  std::string out_;
};

}  // namespace

Value PercentFormat(Interpreter& in, Value format, Value values) {
  return in.NewString(Formatter(in, format, values).Run(), format.flags);
}

}  // namespace portico::jinja
