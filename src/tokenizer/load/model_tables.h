// The large tables of a tokenizer.json's model, read one by one as they stream by. Each text lies in a buffer with
// SIMDJSON_PADDING readable bytes behind it.
#pragma once

#include <simdjson.h>

#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/merge/merge_table.h"
#include "tokenizer/model/vocabulary.h"

namespace portico::tokenizer {

// INVALID_ARGUMENT: "`what`: " and what the JSON library says.
Status BadJson(simdjson::error_code error, std::string_view what);

simdjson::padded_string_view Padded(std::string_view json);

// True if nothing but white space follows what was read.
bool AtEnd(simdjson::ondemand::document& document);

// {"token": id, …}
StatusOr<Vocabulary> ReadVocabulary(std::string_view json);

// [["left", "right"], …] or, in older files, ["left right", …]; all of one form. `prefix_length`: bytes of the
// continuing_subword_prefix that a right side loses in what it is merged to.
StatusOr<MergeTable> ReadMerges(std::string_view json, const Vocabulary& vocabulary,
                                size_t prefix_length);

// [["token", score], …]: the scores by id; the tokens go to `vocabulary`.
StatusOr<std::vector<double>> ReadScores(std::string_view json, Vocabulary* vocabulary);

}  // namespace portico::tokenizer
