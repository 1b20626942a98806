#include "message/pooling.h"

#include <fmt/format.h>

namespace portico {

std::string_view PoolingName(Pooling pooling) {
  switch (pooling) {
    case Pooling::kMean:
      return "mean";
    case Pooling::kCls:
      return "cls";
    case Pooling::kLast:
      return "last";
  }
  return "";
}

StatusOr<Pooling> ParsePooling(std::string_view name) {
  for (Pooling pooling : {Pooling::kMean, Pooling::kCls, Pooling::kLast}) {
    if (name == PoolingName(pooling)) return pooling;
  }
  return Error(StatusCode::kInvalidArgument,
               fmt::format("unknown pooling '{}': it is mean, cls or last", name));
}

}  // namespace portico
