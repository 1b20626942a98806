// The models and the pipeline of a server, and the compiler of its grammars.
#pragma once

#include <memory>

#include "app/options/options.h"
#include "app/serve/http_service.h"
#include "grammar/compile/grammar_compiler.h"

namespace portico {

// Loads the models one after the other; then the pipeline starts and all can be found. The name of a
// model that fails, and of one that is loading, is told where there are several. Blocks.
Status LoadModels(const ServeOptions& options,
                  const std::shared_ptr<grammar::GrammarCompiler>& grammars, HttpService* service);

grammar::GrammarCompilerOptions GrammarOptions(const ServeOptions& options);

}  // namespace portico
