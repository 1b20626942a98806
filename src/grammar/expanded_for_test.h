// For tests: what a grammar takes, as an automaton of bytes that has each repetition as states of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace portico::grammar {

class Expanded {
 public:
  // Adds what comes behind a state, and returns the state behind that.
  using Part = std::function<int(Expanded*, int)>;
  // The states that a text leads to, by number.
  using States = int;
  // Nothing that the grammar takes begins so.
  static constexpr States kNone = -1;

  explicit Expanded(const Part& whole) {
    const int start = Add();
    end_ = whole(this, start);
    Numbered({start});
  }

  States start() const { return 0; }
  bool IsEnd(States states) const {
    return states != kNone && sets_[static_cast<size_t>(states)].count(end_) > 0;
  }

  States Behind(States states, std::string_view text) {
    for (const char c : text) {
      if (states == kNone) break;
      states = Behind(states, static_cast<uint8_t>(c));
    }
    return states;
  }

  int Add() {
    edges_.emplace_back();
    skips_.emplace_back();
    return static_cast<int>(edges_.size()) - 1;
  }
  void Skip(int from, int to) { skips_[static_cast<size_t>(from)].push_back(to); }
  int Byte(int from, int first, int last) {
    const int to = Add();
    edges_[static_cast<size_t>(from)].push_back(
        {static_cast<uint8_t>(first), static_cast<uint8_t>(last), to});
    return to;
  }

 private:
  struct Edge {
    uint8_t first;
    uint8_t last;
    int to;
  };
  static constexpr States kUnknown = -2;

  States Behind(States states, uint8_t byte) {
    const auto index = static_cast<size_t>(states);
    if (next_[index][byte] != kUnknown) return next_[index][byte];
    std::set<int> next;
    for (const int state : sets_[index]) {
      for (const Edge& edge : edges_[static_cast<size_t>(state)]) {
        if (edge.first <= byte && byte <= edge.last) next.insert(edge.to);
      }
    }
    const States found = next.empty() ? kNone : Numbered(std::move(next));
    return next_[index][byte] = found;
  }

  States Numbered(std::set<int> states) {
    std::vector<int> open(states.begin(), states.end());
    while (!open.empty()) {
      const int state = open.back();
      open.pop_back();
      for (const int to : skips_[static_cast<size_t>(state)]) {
        if (states.insert(to).second) open.push_back(to);
      }
    }
    const auto [found, added] = numbers_.emplace(states, static_cast<int>(sets_.size()));
    if (added) {
      sets_.push_back(std::move(states));
      next_.emplace_back().fill(kUnknown);
    }
    return found->second;
  }

  std::vector<std::vector<Edge>> edges_;
  std::vector<std::vector<int>> skips_;
  int end_ = 0;
  std::map<std::set<int>, States> numbers_;
  std::vector<std::set<int>> sets_;
  std::vector<std::array<States, 256>> next_;
};

inline Expanded::Part Literal(std::string_view text) {
  return [text](Expanded* to, int at) {
    for (const char c : text) at = to->Byte(at, static_cast<uint8_t>(c), static_cast<uint8_t>(c));
    return at;
  };
}

inline Expanded::Part Bytes(std::vector<std::pair<int, int>> ranges) {
  return [ranges](Expanded* to, int at) {
    for (const auto& [first, last] : ranges) at = to->Byte(at, first, last);
    return at;
  };
}

inline Expanded::Part AllOf(std::vector<Expanded::Part> parts) {
  return [parts](Expanded* to, int at) {
    for (const auto& part : parts) at = part(to, at);
    return at;
  };
}

inline Expanded::Part OneOf(std::vector<Expanded::Part> parts) {
  return [parts](Expanded* to, int at) {
    const int end = to->Add();
    for (const auto& part : parts) to->Skip(part(to, at), end);
    return end;
  };
}

// -1: without end.
inline Expanded::Part Times(Expanded::Part part, int least, int most) {
  return [part, least, most](Expanded* to, int at) {
    for (int i = 0; i < least; ++i) at = part(to, at);
    const int end = to->Add();
    to->Skip(at, end);
    if (most < 0) {
      to->Skip(part(to, end), end);
      return end;
    }
    for (int i = least; i < most; ++i) {
      at = part(to, at);
      to->Skip(at, end);
    }
    return end;
  };
}

// All characters of several bytes.
inline std::vector<Expanded::Part> LongChars() {
  const std::pair<int, int> more{0x80, 0xBF};
  return {Bytes({{0xC2, 0xDF}, more}),
          Bytes({{0xE0, 0xE0}, {0xA0, 0xBF}, more}),
          Bytes({{0xE1, 0xEC}, more, more}),
          Bytes({{0xED, 0xED}, {0x80, 0x9F}, more}),
          Bytes({{0xEE, 0xEF}, more, more}),
          Bytes({{0xF0, 0xF0}, {0x90, 0xBF}, more, more}),
          Bytes({{0xF1, 0xF3}, more, more, more}),
          Bytes({{0xF4, 0xF4}, {0x80, 0x8F}, more, more})};
}

// A character of a string of JSON, as Expr::JsonChars() has it.
inline Expanded::Part AnyChar() {
  std::vector<Expanded::Part> chars = LongChars();
  for (const auto& range :
       {std::pair(0x20, int{'!'}), std::pair(int{'#'}, int{'['}), std::pair(int{']'}, 0x7F)}) {
    chars.push_back(Bytes({range}));
  }
  chars.push_back(AllOf(
      {Literal("\\u00"), Bytes({{'0', '1'}}), OneOf({Bytes({{'0', '9'}}), Bytes({{'a', 'f'}})})}));
  for (const char* const escape : {"\\\"", "\\\\", "\\b", "\\f", "\\n", "\\r", "\\t"}) {
    chars.push_back(Literal(escape));
  }
  return OneOf(std::move(chars));
}

// A string of JSON with so many of them.
inline Expanded::Part JsonText(int least, int most) {
  return AllOf({Literal("\""), Times(AnyChar(), least, most), Literal("\"")});
}

}  // namespace portico::grammar
