// Structural tags: text with tags whose inside is constrained. What they hold of schemas goes through our own compiler, so that
// it is enforced or refused as a schema alone is; token names become ids.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "grammar/compile/vocabulary.h"
#include "grammar/schema/json_schema.h"

namespace portico::grammar {

// A structural tag as xgrammar reads it. Takes {"type":"structural_tag","format":{…}} and SGLang's older form with
// "structures" and "triggers". INVALID_ARGUMENT without a field.
StatusOr<std::string> RewriteStructuralTag(std::string_view text, const Vocabulary& vocabulary,
                                           const SchemaOptions& options);

}  // namespace portico::grammar
