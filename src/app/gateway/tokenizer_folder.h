// The tokenizer that a worker has sent, as files.
#pragma once

#include <string>

#include "base/own_folder.h"
#include "base/status.h"

namespace portico {

// The files of an archive (engine/grpc/tokenizer_files.h) in a folder of their own.
StatusOr<OwnFolder> UnpackTokenizer(const std::string& archive);

}  // namespace portico
