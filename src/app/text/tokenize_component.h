// `portico tokenize --component --jsonl`: one part of a tokenizer.json at a time, for checking.
#pragma once

namespace portico {

// Reads standard input, writes standard output. Returns the exit status.
int TokenizeComponents();

}  // namespace portico
