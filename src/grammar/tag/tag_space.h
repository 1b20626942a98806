// What of the white space in a structural tag is bounded.
#pragma once

#include <string_view>

#include "grammar/mask/space_bound.h"

namespace portico::grammar {

// `tag`: of either form, as the client or the service wrote it. kJson where all is JSON and fixed text; kFree where a regular
// expression or a grammar in it may take white space of its own, and for what is no JSON.
SpaceRule SpaceRuleOfTag(std::string_view tag);

}  // namespace portico::grammar
