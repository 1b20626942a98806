// Flags of smg's and sglang-router's command lines that `portico route` does not have, and what is said of them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace portico {

struct RouteFlagHint {
  std::string_view
      name;  // without dashes in front; one with a dash at its end stands for all that begin so
  std::string_view flag = {};  // of `portico route`, which has its place; empty: none has
  std::string_view note = {};  // a clause about it, in which flags of `portico route` begin with --
};

// Of sglang-router 0.3.2: a name that is shortened may stand for one of them.
std::span<const RouteFlagHint> SglangRouterFlagHints();
// Of smg 1.13 alone.
std::span<const RouteFlagHint> SmgFlagHints();

// That of smg's flags whose name this is, or the first that begins so; null: it is none.
const RouteFlagHint* FindSmgFlagHint(std::string_view name);

// "unknown flag --model-alias; here it is --aliases". `name`: as it was given; `prefix`: of flags behind their dashes
// ("router-").
std::string NoSuchRouteFlag(std::string_view name, const RouteFlagHint& hint,
                            std::string_view prefix);

}  // namespace portico
