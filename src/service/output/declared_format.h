// Formats of answers that a checkpoint itself declares (parser/declared/response_template.h).
#pragma once

#include "base/status.h"
#include "service/output/output_format.h"
#include "text/json.h"

namespace portico {

// As MakeOutputFormat(), for a model whose tokenizer_config.json has this `response_template`; null: it has none. Its parsers are
// used where their name is given, and with `auto` where nothing else tells a format. What was declared is kept as long as the
// program runs.
StatusOr<ModelOutputFormat> MakeOutputFormat(const OutputFormatSource& source,
                                             const Json& response_template,
                                             const Tokenizer& tokenizer);

}  // namespace portico
