// The next tokens by which a generating model says whether a document answers a query, as Qwen3-Reranker does.
#pragma once

#include "message/sampling.h"

namespace portico {

struct JudgeTokens {
  TokenId yes = -1;
  TokenId no = -1;
};

}  // namespace portico
