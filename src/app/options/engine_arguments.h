// What stands behind -- on the command line: SGLang's own server arguments. Some of them are for a front end, and that is
// Portico.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "app/options/options_table.h"

namespace portico {

// Gives them to the one model whose SGLang is started here. What its front end must know of them, and of the YAML file
// that a --config among them names, becomes the options' own, unless it is `given` on the command line or set already.
// INVALID_ARGUMENT for what has to stand before the --.
Status GiveToEngine(const std::vector<std::string>& arguments, std::set<const Option*> given,
                    ServeOptions* options);

}  // namespace portico
