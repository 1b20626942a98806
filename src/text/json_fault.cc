#include "text/json_fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace portico {
namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  size_t Run() {
    while (true) {
      Space();
      switch (expect_) {
        case Expect::kEnd:
          return at_ == text_.size() ? std::string_view::npos : at_;
        case Expect::kValueOrEnd:
          if (Take(']')) {
            Close();
            break;
          }
          [[fallthrough]];
        case Expect::kValue:
          if (!Value()) return at_;
          break;
        case Expect::kKeyOrEnd:
          if (Take('}')) {
            Close();
            break;
          }
          [[fallthrough]];
        case Expect::kKey:
          if (!String()) return at_;
          expect_ = Expect::kColon;
          break;
        case Expect::kColon:
          if (!Take(':')) return at_;
          expect_ = Expect::kValue;
          break;
        case Expect::kCommaOrEnd:
          if (Take(',')) {
            expect_ = in_object_.back() ? Expect::kKey : Expect::kValue;
          } else if (Take(in_object_.back() ? '}' : ']')) {
            Close();
          } else {
            return at_;
          }
          break;
      }
    }
  }

 private:
  enum class Expect { kValue, kValueOrEnd, kKey, kKeyOrEnd, kColon, kCommaOrEnd, kEnd };

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  void Space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  void Open(bool object) {
    in_object_.push_back(object);
    expect_ = object ? Expect::kKeyOrEnd : Expect::kValueOrEnd;
  }
  void Close() {
    in_object_.pop_back();
    AfterValue();
  }
  void AfterValue() { expect_ = in_object_.empty() ? Expect::kEnd : Expect::kCommaOrEnd; }

  bool Value() {
    if (Take('{')) {
      Open(true);
      return true;
    }
    if (Take('[')) {
      Open(false);
      return true;
    }
    const bool good = Peek() == '"'   ? String()
                      : Peek() == 't' ? Word("true")
                      : Peek() == 'f' ? Word("false")
                      : Peek() == 'n' ? Word("null")
                                      : Number();
    if (good) AfterValue();
    return good;
  }

  bool Word(std::string_view word) {
    for (const char c : word) {
      if (!Take(c)) return false;
    }
    return true;
  }

  bool Digits() {
    const size_t begin = at_;
    while (Peek() >= '0' && Peek() <= '9') ++at_;
    return at_ > begin;
  }

  bool Number() {
    Take('-');
    if (!Take('0') && !Digits()) return false;
    if (Take('.') && !Digits()) return false;
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      return Digits();
    }
    return true;
  }

  bool String() {
    if (!Take('"')) return false;
    while (at_ < text_.size() && static_cast<unsigned char>(text_[at_]) >= 0x20) {
      if (Take('"')) return true;
      if (!Take('\\')) {
        ++at_;
        continue;
      }
      if (Take('u')) {
        for (int i = 0; i < 4; ++i, ++at_) {
          if (std::string_view("0123456789abcdefABCDEF").find(Peek()) == std::string_view::npos) {
            return false;
          }
        }
      } else if (std::string_view("\"\\/bfnrt").find(Peek()) == std::string_view::npos) {
        return false;
      } else {
        ++at_;
      }
    }
    return false;
  }

  const std::string_view text_;
  size_t at_ = 0;
  Expect expect_ = Expect::kValue;
  std::vector<bool> in_object_;
};

}  // namespace

size_t JsonFaultOffset(std::string_view text) { return Scanner(text).Run(); }

std::string TextPlace(std::string_view text, size_t offset) {
  if (offset == std::string_view::npos) return "";
  const std::string_view before = text.substr(0, offset);
  const size_t line = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto characters = std::count_if(before.begin() + static_cast<ptrdiff_t>(line), before.end(),
                                        [](char c) { return (c & 0xC0) != 0x80; });
  return fmt::format("line {}, column {}", std::count(before.begin(), before.end(), '\n') + 1,
                     characters + 1);
}

}  // namespace portico
