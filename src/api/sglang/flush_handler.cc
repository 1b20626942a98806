#include "api/sglang/flush_handler.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "api/common/control_fields.h"
#include "api/flush_call.h"
#include "api/query.h"
#include "api/reply.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

struct AskedFlush {
  std::string model;  // empty: all
  std::optional<float> timeout;
};

Status ReadTimeout(std::string_view name, Element value, AskedFlush* asked) {
  return ReadNumber(name, value, kFlushTimeout, &asked->timeout);
}

constexpr FieldReader<AskedFlush> kFlushFields[] = {
    {"model", ReadText<AskedFlush, &AskedFlush::model>},
    {"timeout", ReadTimeout},
};
static_assert(IsSortedByName(kFlushFields));

// SGLang has the timeout in the query; both may be in either place, but not in both.
StatusOr<AskedFlush> ReadFlush(const net::HttpRequest& request, simdjson::dom::parser& parser) {
  AskedFlush asked;
  PORTICO_RETURN_IF_ERROR(CheckQueryNames(request, {"model", "timeout"}));
  if (request.method == "POST") {
    PORTICO_RETURN_IF_ERROR(ReadControlBody(request, parser, kFlushFields, {}, &asked));
  }
  PORTICO_ASSIGN_OR_RETURN(const auto model, QueryValue(request.query, "model"));
  PORTICO_ASSIGN_OR_RETURN(const auto timeout, QueryValue(request.query, "timeout"));
  if (model && !asked.model.empty() && asked.model != *model) {
    return InvalidArgument("model", "the query and the body name two models");
  }
  if (model) asked.model = *model;
  if (!timeout) return asked;
  if (asked.timeout) return InvalidArgument("timeout", "timeout is in the query and in the body");
  double seconds = 0;
  if (!absl::SimpleAtod(*timeout, &seconds) || !kFlushTimeout.Holds(seconds)) {
    return InvalidArgument(
        "timeout", fmt::format("timeout must be {}, got \"{:.48}\"", kFlushTimeout.text, *timeout));
  }
  asked.timeout = static_cast<float>(seconds);
  return asked;
}

void AnswerFlush(ExchangePtr exchange, ShardContext& shard, const Status& status) {
  if (!status.ok()) return ReplyError(*exchange, shard.api, status);
  ReplyText(*exchange, shard.api, 200, "Cache flushed.\n");
}

}  // namespace

void HandleFlush(ExchangePtr exchange, ShardContext& shard) {
  StatusOr<AskedFlush> asked = ReadFlush(exchange->request, shard.parser);
  if (!asked.ok()) return ReplyError(*exchange, shard.api, asked.status());
  const auto patience = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(asked->timeout.value_or(0)));
  using Flush = FlushCall<net::Exchange, decltype(&AnswerFlush)>;
  Flush::Start(std::move(exchange), shard, std::move(asked->model), patience, AnswerFlush);
}

}  // namespace portico::api
