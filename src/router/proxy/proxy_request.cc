// What a request asks for and whose it is, read from its head and body before any worker is chosen.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "net/http/multipart.h"
#include "router/proxy/body_fields.h"
#include "router/proxy/proxy_call.h"
#include "text/byte_order_mark.h"
#include "text/json_writer.h"
#include "text/white_space.h"

namespace portico::router {
namespace {

constexpr std::string_view kSessionHeaders[] = {"x-smg-routing-key", "x-session-id"};

// What a prefill and a decode worker answer together.
constexpr std::string_view kPairPaths[] = {"/generate", "/v1/chat/completions", "/v1/completions"};
// What generates too, but has no place for the fields by which the two find each other.
constexpr std::string_view kNeverPaired[] = {"/v1/messages",    "/v1/responses", "/api/chat",
                                             "/api/generate",   "/invocations",  "/v1/embeddings",
                                             "/vertex_generate"};

template <size_t N>
bool IsAmongPaths(std::string_view path, const std::string_view (&paths)[N]) {
  return std::find(std::begin(paths), std::end(paths), path) != std::end(paths);
}

// What can be asked for: the models that workers name, and the aliases of these.
std::string NamesOf(const WorkerSet& set) {
  constexpr size_t kMaxNames = 64;
  const std::vector<std::string> models = set.Models();
  std::vector<std::string> names = models;
  for (const auto& [alias, model] : set.aliases()) {
    if (std::binary_search(models.begin(), models.end(), model)) names.push_back(alias);
  }
  if (names.empty()) return "none, as no worker has named its models yet";
  const size_t more = names.size() - std::min(names.size(), kMaxNames);
  names.resize(names.size() - more);
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (more > 0) text += fmt::format(" and {} more", more);
  return text;
}

// Of multipart/form-data, which may be cut off: the text of the field "model".
RequestFacts FormFacts(std::string_view content_type, std::string_view body) {
  constexpr size_t kMaxModelName = 1024;
  RequestFacts facts;
  const auto text = net::FindFormText(content_type, body, "model");
  if (!text.has_value() || text->size() > kMaxModelName) return facts;
  facts.model_at = static_cast<size_t>(text->data() - body.data());
  facts.model = *text;
  facts.model_size = text->size();
  return facts;
}

}  // namespace

ProxyCall::Reading ProxyCall::ReadingFor(const WorkerSet& set) const {
  const GatewayOptions& options = gateway_.options();
  return {.model = set.has_groups() || options.strict_models || !set.aliases().empty(),
          .prompt = options.pairs
                        ? set.wants_prompt(Role::kPrefill) || set.wants_prompt(Role::kDecode)
                        : set.wants_prompt(Role::kRegular),
          .session = gateway_.sessions().any() && !options.pairs};
}

bool ProxyCall::ReadFacts() {
  net::HttpRequest& request = exchange_->request;
  const GatewayOptions& options = gateway_.options();
  pair_ = options.pairs && request.method == "POST" && IsAmongPaths(request.path, kPairPaths);
  facts_ = {};
  read_ = ReadingFor(*set_);
  const bool multipart = net::IsForm(request.Header("content-type"));
  const std::string_view coding = request.BodyCoding();
  if (!coding.empty() && !request.body.empty() && (pair_ || options.strict_models)) {
    Refuse(415,
           fmt::format("the body is encoded (content-encoding: {:.64}): send it as it is", coding),
           "", false);
    return false;
  }
  // Of another encoding's mark the worker says what is wrong.
  if (!multipart && coding.empty()) static_cast<void>(DropByteOrderMark(&request.body));
  if (read_.prompt || read_.model || read_.session) FindFacts(multipart);
  if (!MayPassRest(multipart)) {
    Collect();
    return false;
  }
  if (!FindGroups()) return false;
  for (const std::string_view name : kSessionHeaders) {
    const std::string_view value = request.Header(name);
    if (!value.empty()) {
      facts_.session = std::string(value);
      break;
    }
  }
  rest_ = {.open = exchange_->body_open(), .bytes = exchange_->rest_bytes()};
  const size_t body = request.body.size() + static_cast<size_t>(std::max<int64_t>(0, rest_.bytes));
  const size_t text = facts_.text.empty() || rest_.open ? body : facts_.text.size();
  const int64_t tokens =
      facts_.token_count > 0 ? facts_.token_count : static_cast<int64_t>(text / 4);
  key_ = {.model = facts_.model,
          .text = facts_.text,
          .tokens = facts_.tokens,
          .session = facts_.session,
          .rid = request_id_,
          .prompt_tokens = std::max<int64_t>(1, tokens)};
  if (pair_ || (options.dp_aware && !request.body.empty() && !multipart)) {
    Status fields =
        pair_ ? CheckFields(shard_.parser(), request.body, kPairFields, &rooms_) : OkStatus();
    json_object_ = fields.ok();
    if (fields.ok() && options.dp_aware) {
      fields = CheckFields(shard_.parser(), request.body, kRankFields);
      json_object_ = fields.ok();
    }
    if (!fields.ok() && (pair_ || !FieldOf(fields).empty())) {
      Refuse(400, MessageOf(fields), "", false);
      return false;
    }
  }
  const bool has_body =
      !request.body.empty() || (request.method != "GET" && request.method != "HEAD");
  if (has_body) body_ = std::make_shared<const std::string>(std::move(request.body));
  return true;
}

void ProxyCall::FindFacts(bool multipart) {
  const std::string& body = exchange_->request.body;
  facts_ = multipart
               ? FormFacts(exchange_->request.Header("content-type"), body)
               : ReadRequestFacts(shard_.parser(), body, read_.prompt, exchange_->body_open());
  ResolveAlias(multipart);
}

bool ProxyCall::MayPassRest(bool multipart) const {
  if (!exchange_->body_open()) return true;
  const GatewayOptions& options = gateway_.options();
  if (pair_ || (options.dp_aware && !multipart)) return false;
  const std::string& body = exchange_->request.body;
  const size_t first = body.find_first_not_of(kWhiteSpace);
  // Of blanks alone nothing is known yet. A form often names the model behind its file.
  const bool may_name = multipart ? exchange_->request.BodyCoding().empty()
                                  : first == std::string::npos || body[first] == '{';
  if (read_.model && may_name && facts_.model.empty()) return false;
  // Nor need a request name its session first, and only one worker has the history.
  if (read_.session && !multipart && may_name && facts_.opened.empty()) return false;
  // A request may come to any worker of its group.
  const WorkerGroup* group = set_->Find(facts_.model, options.strict_models,
                                        options.pairs ? Role::kDecode : Role::kRegular);
  return group == nullptr ||
         std::all_of(group->workers.begin(), group->workers.end(),
                     [](const Worker* worker) { return worker->protocol() != Protocol::kGrpc; });
}

void ProxyCall::ResolveAlias(bool multipart) {
  net::HttpRequest& request = exchange_->request;
  constexpr std::string_view kModels = "/v1/models/";
  if (request.path.starts_with(kModels)) {
    // Its slashes may be escaped.
    const std::string named =
        absl::StrReplaceAll(request.path.substr(kModels.size()), {{"%2F", "/"}, {"%2f", "/"}});
    const std::string* model = set_->ModelOf(named);
    if (model != nullptr) request.path = std::string(kModels) + *model;
    facts_.model = model != nullptr ? *model : named;
    return;
  }
  const std::string* model = set_->ModelOf(facts_.model);
  if (model == nullptr) return;
  std::string named;
  multipart ? void(named = *model) : AppendJsonString(*model, &named);
  request.body.reserve(request.body.size() + named.size() + simdjson::SIMDJSON_PADDING);
  request.body.replace(facts_.model_at, facts_.model_size, named);
  facts_.model = *model;
}

bool ProxyCall::FindGroups() {
  const GatewayOptions& options = gateway_.options();
  const std::string& path = exchange_->request.path;
  if (options.pairs && IsAmongPaths(path, kNeverPaired)) {
    Refuse(501, path + " is not available with prefill and decode workers", "not_implemented",
           false);
    return false;
  }
  group_ = set_->Find(facts_.model, options.strict_models,
                      options.pairs ? Role::kDecode : Role::kRegular);
  if (pair_) prefill_group_ = set_->Find(facts_.model, options.strict_models, Role::kPrefill);
  if (group_ != nullptr && (!pair_ || prefill_group_ != nullptr)) return true;
  Refuse(404,
         fmt::format("The model `{}` does not exist; this gateway has: {}", facts_.model,
                     NamesOf(*set_)),
         "model_not_found", false, "model");
  return false;
}

bool ProxyCall::PinToSession() {
  pinned_ = 0;
  if (facts_.opened.empty() || pair_) return true;
  OpenSessions& sessions = gateway_.sessions();
  const std::string url = sessions.WorkerOf(facts_.opened).value_or("");
  if (!url.empty()) {
    const WorkerPtr worker = set_->FindWorker(url);
    if (worker == nullptr) {
      Refuse(410,
             "the worker that has this session's history has been removed; open another session",
             "session_lost", false);
      return false;
    }
    pinned_ = worker->number();
  }
  sessions.NoteUse(facts_.opened, Clock::now());
  return true;
}

}  // namespace portico::router
