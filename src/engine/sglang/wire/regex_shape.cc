#include "engine/sglang/wire/regex_shape.h"

#include <algorithm>

namespace portico::sglang {

RegexShape OneOf(const CharacterSet& characters) {
  RegexShape shape;
  shape.first = shape.all = characters;
  shape.nullable = false;
  return shape;
}

void Append(const RegexShape& next, RegexShape* shape) {
  const bool clear = (shape->follow & next.first).none();
  if (!clear) shape->pending |= shape->open;
  shape->degree = (shape->pending & next.loops).any() ? shape->degree + next.degree
                                                      : std::max(shape->degree, next.degree);
  shape->pending |= next.pending;
  shape->open = next.nullable ? shape->open | next.open : next.open;
  shape->loops |= next.loops;
  if (shape->nullable) shape->first |= next.first;
  shape->follow = next.nullable ? shape->follow | next.follow : next.follow;
  shape->all |= next.all;
  shape->nullable = shape->nullable && next.nullable;
  shape->deterministic = shape->deterministic && next.deterministic && clear;
  shape->ways *= next.ways;
}

void AddAlternative(const RegexShape& next, RegexShape* alternatives) {
  const bool clear =
      (alternatives->first & next.first).none() && !(alternatives->nullable && next.nullable);
  alternatives->deterministic = alternatives->deterministic && next.deterministic && clear;
  alternatives->ways =
      clear ? std::max(alternatives->ways, next.ways) : alternatives->ways + next.ways;
  alternatives->nullable = alternatives->nullable || next.nullable;
  alternatives->first |= next.first;
  alternatives->follow |= next.follow;
  if (alternatives->nullable) alternatives->follow |= alternatives->first;
  alternatives->all |= next.all;
  alternatives->loops |= next.loops;
  alternatives->open |= next.open;
  alternatives->pending |= next.pending;
  alternatives->degree = std::max(alternatives->degree, next.degree);
}

bool RepeatsClearly(const RegexShape& shape) {
  if (shape.first.none()) return true;  // it matches the empty text alone
  return shape.deterministic && !shape.nullable && (shape.follow & shape.first).none();
}

void Repeat(bool optional, bool several, int choices, RegexShape* shape) {
  constexpr int kMostChoices = 64;  // beyond, it is as if there were no end
  if (several) shape->ways = 1;
  if (several && choices != 1) shape->follow |= shape->first;
  if (optional) {
    shape->nullable = true;
    shape->follow |= shape->first;
  }
  if (choices > 0 && choices <= kMostChoices) {
    shape->ways *= choices;
    return;
  }
  shape->loops = shape->open = shape->all;
  shape->degree = std::max(shape->degree, 1);
}

}  // namespace portico::sglang
