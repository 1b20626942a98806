// The recorded tokenizers and vectors that lie beside the repository, for tests; they may be absent.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/source_dir_for_test.h"
#include "text/json.h"
#include "tokenizer/token_id.h"

namespace portico::tokenizer {

namespace fs = std::filesystem;

// Where the recorded vectors are; empty if they are not here.
inline fs::path SharedData() {
  const char* set = std::getenv("PORTICO_SHARED");
  fs::path shared = set ? fs::path(set) : fs::path(SourceDir()) / "../shared";
  fs::path data = shared / "data" / "tokenizers";
  std::error_code error;
  return fs::is_directory(data, error) ? data : fs::path();
}

inline std::string Unpacked(const fs::path& file) {
  std::string command = "gzip -dc '" + file.string() + "'";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string out;
  char block[65536];
  for (size_t n = 0; pipe && (n = fread(block, 1, sizeof(block), pipe.get())) > 0;) {
    out.append(block, n);
  }
  return out;
}

inline std::vector<Json> Rows(const fs::path& file) {
  std::vector<Json> rows;
  std::string text = Unpacked(file);
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    auto row = Json::Parse(std::string_view(text).substr(at, end - at));
    if (row.ok()) rows.push_back(*std::move(row));
    at = end + 1;
  }
  return rows;
}

inline std::vector<TokenId> IdsOf(const Json& list) {
  std::vector<TokenId> ids;
  for (const Json& id : list.as_array()) ids.push_back(static_cast<TokenId>(id.as_int()));
  return ids;
}

}  // namespace portico::tokenizer
