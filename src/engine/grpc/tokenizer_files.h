// The zip archive in which a worker gives its tokenizer away (GetTokenizer): what is in it, from a
// peer that is not trusted. Entries are stored or deflated; folders in their names are dropped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace portico {

struct TokenizerFile {
  std::string name;  // without a folder; of a tokenizer's or template's file
  std::string content;
};

// Files that are of no use to a tokenizer are left out. INVALID_ARGUMENT for what is no such archive,
// has more than 1,024 entries or more than 512 MiB.
StatusOr<std::vector<TokenizerFile>> ReadTokenizerArchive(std::string_view archive);

// Its checksum as it is sent behind the archive: SHA-256, lower-case hexadecimal.
std::string TokenizerArchiveSum(std::string_view archive);

}  // namespace portico
