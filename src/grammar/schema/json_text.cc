#include "grammar/schema/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "text/json_writer.h"

namespace portico::grammar {
namespace {

constexpr char32_t kLastChar = 0x10FFFF;
constexpr char32_t kFirstSurrogate = 0xD800;
constexpr char32_t kLastSurrogate = 0xDFFF;

CharRanges WithoutSurrogates(const CharRanges& ranges) {
  CharRanges result;
  for (const auto& [from, to] : ranges) {
    if (from < kFirstSurrogate)
      result.emplace_back(from, std::min<char32_t>(to, kFirstSurrogate - 1));
    if (to > kLastSurrogate) result.emplace_back(std::max<char32_t>(from, kLastSurrogate + 1), to);
  }
  return result;
}

}  // namespace

CharRanges Normalized(CharRanges ranges) {
  std::sort(ranges.begin(), ranges.end());
  CharRanges merged;
  for (const auto& [from, to] : ranges) {
    if (!merged.empty() && from <= merged.back().second + 1) {
      merged.back().second = std::max(merged.back().second, to);
    } else {
      merged.emplace_back(from, to);
    }
  }
  return WithoutSurrogates(merged);
}

CharRanges Complement(const CharRanges& ranges) {
  CharRanges result;
  char32_t next = 0;
  for (const auto& [from, to] : ranges) {
    if (from > next) result.emplace_back(next, from - 1);
    next = to + 1;
  }
  if (next <= kLastChar) result.emplace_back(next, kLastChar);
  return WithoutSurrogates(result);
}

Expr JsonChar(const CharRanges& ranges) {
  CharRanges plain;
  std::vector<Expr> forms;
  // Of escapes that differ in their last character only: few states, where they are part of an automaton.
  std::map<std::string, CharRanges> escapes;
  const auto escape = [&escapes](char32_t c) {
    const auto byte = static_cast<char>(c);
    std::string text = JsonStringInside(std::string_view(&byte, 1));
    const auto last = static_cast<char32_t>(text.back());
    text.pop_back();
    escapes[text].emplace_back(last, last);
  };
  for (auto [from, to] : ranges) {
    for (; from <= to && from < 0x20; ++from) escape(from);
    for (const char32_t special : {U'"', U'\\'}) {
      if (from > special || to < special) continue;
      escape(special);
      if (from < special) plain.emplace_back(from, special - 1);
      from = special + 1;
    }
    if (from <= to) plain.emplace_back(from, to);
  }
  if (!plain.empty()) forms.push_back(Expr::Class(std::move(plain)));
  for (auto& [begin, last] : escapes) {
    forms.push_back(Expr::Sequence({Expr::Text(begin), Expr::Class(Normalized(std::move(last)))}));
  }
  Expr made = Expr::Choice(std::move(forms));
  made.one_char = true;
  made.chars = ranges;
  return made;
}

Expr AnyJsonChar() {
  static const Expr any = [] {
    Expr control = Expr::Sequence({Expr::Text("\\u00"), Expr::Class({{U'0', U'1'}}),
                                   Expr::Class({{U'0', U'9'}, {U'a', U'f'}})});
    Expr escape = Expr::Sequence({Expr::Text("\\"), Expr::Class({{U'"', U'"'},
                                                                 {U'\\', U'\\'},
                                                                 {U'b', U'b'},
                                                                 {U'f', U'f'},
                                                                 {U'n', U'n'},
                                                                 {U'r', U'r'},
                                                                 {U't', U't'}})});
    Expr made = Expr::Choice({Expr::Class({{U' ', U'!'},
                                           {U'#', U'['},
                                           {U']', kFirstSurrogate - 1},
                                           {kLastSurrogate + 1, kLastChar}}),
                              std::move(escape), std::move(control)});
    made.one_char = true;
    made.chars = Complement({});
    return made;
  }();
  return any;
}

Expr JsonCharBut(const CharRanges& left_out) {
  // AnyJsonChar() has these by a second escape.
  Expr twice = Expr::Sequence(
      {Expr::Text("\\u000"), Expr::Class({{U'8', U'9'}, {U'a', U'a'}, {U'c', U'd'}})});
  twice.one_char = true;
  Expr made = Expr::Choice({JsonChar(Complement(left_out)), std::move(twice)});
  made.one_char = true;
  return made;
}

Expr Spacing::operator()() const {
  if (!allowed) return Expr::Empty();
  return Expr::Repeat(Expr::Class({{U'\t', U'\n'}, {U'\r', U'\r'}, {U' ', U' '}}), 0, -1);
}

std::string JsonStringInside(std::string_view utf8) {
  std::string inside;
  AppendJsonEscaped(utf8, &inside);
  return inside;
}

Expr JsonValue(const Json& value, const Spacing& space) {
  const auto list = [&space](std::string_view open, std::vector<Expr> items,
                             std::string_view close) {
    std::vector<Expr> parts{Expr::Text(open), space()};
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) {
        parts.push_back(space());
        parts.push_back(Expr::Text(","));
        parts.push_back(space());
      }
      parts.push_back(std::move(items[i]));
    }
    if (!items.empty()) parts.push_back(space());
    parts.push_back(Expr::Text(close));
    return Expr::Sequence(std::move(parts));
  };
  std::vector<Expr> items;
  if (value.is_array()) {
    for (const Json& item : value.as_array()) items.push_back(JsonValue(item, space));
    return list("[", std::move(items), "]");
  }
  if (value.is_object()) {
    for (const auto& [key, member] : value.as_object()) {
      items.push_back(Expr::Sequence({Expr::Text(Json(key).Dump()), space(), Expr::Text(":"),
                                      space(), JsonValue(member, space)}));
    }
    return list("{", std::move(items), "}");
  }
  return Expr::Text(value.Dump());
}

}  // namespace portico::grammar
