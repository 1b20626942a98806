// What may have been meant by a name that is none.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace portico {

// The one of `names` that is closest to `name`, underscores for dashes, or empty if none is close.
std::string_view NearestName(std::string_view name, std::span<const std::string_view> names);

// "; did you mean MARK NAME MARK?" with the closest one, or nothing. `before` and `behind` stand around it.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> names,
                       std::string_view before = "`", std::string_view behind = "`");

}  // namespace portico
