// portico serve: loads models and answers HTTP until SIGINT or SIGTERM.
#pragma once

#include <string_view>

#include "app/options/options.h"

namespace portico {

// `argv` begins after the command's name. The exit status.
int ServeCommand(int argc, char** argv);
// The same with options that are read already; `command` is what its messages begin with.
int ServeWith(const ServeOptions& options, std::string_view command = "serve");

// Not for people: what a server starts in the place of a grammar compiler that has died.
inline constexpr char kGrammarCommand[] = "compile-grammars";
int GrammarCommand(int argc, char** argv);

}  // namespace portico
