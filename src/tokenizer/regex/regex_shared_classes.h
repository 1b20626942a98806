// The classes of a translated pattern, which PCRE2 has room for only once where they are long.
#pragma once

#include <map>
#include <string>
#include <utility>

namespace portico::tokenizer {

class SharedClasses {
 public:
  // `share`: long classes are written once, in front of the pattern, and called where they stand.
  explicit SharedClasses(bool share) : share_(share) {}

  // What to write where the class `text` stands.
  std::string Use(std::string text, bool ignores_case) {
    ++count_;
    if (!share_ || text.size() < kMinShared) return text;
    if (ignores_case) text = "(?i:" + std::move(text) + ")";
    const auto [found, added] = numbers_.try_emplace(std::move(text), numbers_.size());
    if (added) size_ += found->first.size();
    return "(?&c" + std::to_string(found->second) + ")";
  }

  // What to write in front.
  std::string Definitions() const {
    if (numbers_.empty()) return {};
    std::string out = "(?(DEFINE)";
    for (const auto& [text, number] : numbers_) {
      out += "(?<c" + std::to_string(number) + ">" + text + ")";
    }
    return out + ")";
  }

  // Classes so far, shared or not.
  size_t count() const { return count_; }
  // Bytes of those in front.
  size_t size() const { return size_; }

 private:
  // Shorter classes are written where they stand.
  static constexpr size_t kMinShared = 256;

  bool share_;
  size_t count_ = 0;
  std::map<std::string, size_t> numbers_;
  size_t size_ = 0;
};

}  // namespace portico::tokenizer
