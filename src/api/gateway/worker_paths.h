// Which workers a request is for, by its path: the table of what the gateway does not answer itself.
#pragma once

#include <string_view>
#include <vector>

namespace portico::api {

enum class Recipients : unsigned char {
  kNone,    // no worker has such a path
  kOne,     // any one worker of the model
  kAll,     // what a server does for all its clients: every server is asked
  kItself,  // means one certain server, or a connection between two: ask that server itself
};

// `path` is unescaped, without the query.
Recipients RecipientsOf(std::string_view path);

// Whether operators' keys are needed where there are any.
bool IsControlPath(std::string_view path);

// Whether a GET changes nothing; SGLang has controls that change something by GET too.
bool GetOnlyReads(std::string_view path);

// For tests: every path that is named here, and whether it is another server's (vLLM's, a cloud's) that
// Portico's does not have.
std::vector<std::string_view> NamedWorkerPaths();
bool IsOthersPath(std::string_view path);

}  // namespace portico::api
