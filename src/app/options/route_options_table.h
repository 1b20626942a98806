// The option table of `portico route`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/options/route_options.h"

namespace portico {

struct RouteOption {
  using Member =
      std::variant<std::string RouteOptions::*, bool RouteOptions::*, int64_t RouteOptions::*,
                   double RouteOptions::*, std::vector<std::string> RouteOptions::*>;
  std::string_view group;
  std::string_view name;
  Member member;
  std::string_view metavar = {};
  std::string_view help = {};
  double min = 0;  // of numbers, inclusive
  double max = 9007199254740992.0;
  std::string_view choices = {};       // "a|b"
  std::string_view choices_note = {};  // a clause: why there are no others
  bool secret = false;
  std::string_view no_zero = {};  // of whole numbers: why 0 is refused

  bool is_switch() const { return std::holds_alternative<bool RouteOptions::*>(member); }
  bool is_list() const {
    return std::holds_alternative<std::vector<std::string> RouteOptions::*>(member);
  }
};

std::span<const RouteOption> RouteOptionTable();
// Its parts, each in a file of its own.
std::span<const RouteOption> FleetOptionTable();
std::span<const RouteOption> RequestOptionTable();

// Errors do not name the option.
Status SetRouteOption(const RouteOption& option, const std::vector<std::string>& values,
                      RouteOptions* options);
// The option that a key of the file sets, with dashes or underscores, or null.
const RouteOption* RouteOptionOfKey(const std::string& key);

std::string RouteOptionText(const RouteOption& option, const RouteOptions& options);

}  // namespace portico
