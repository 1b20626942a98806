#include "api/sglang/decode_generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "api/common/extra_fields.h"
#include "api/common/field_reader.h"
#include "api/common/generation_fields.h"
#include "api/common/prompt_field.h"
#include "api/common/refused_fields.h"
#include "api/sglang/decode_sampling.h"
#include "api/sglang/media_data.h"

namespace portico::api::sglang {
namespace {

using Request = NativeGenerateRequest;

constexpr size_t kMaxMediaOfBatch = 4 * kMaxNativePrompts;
constexpr std::string_view kRoom = "bootstrap_room";

// One value, or one for each prompt. Longer lists are refused before they are read: an empty object of three bytes would
// become parameters of hundreds.
template <typename T, typename Read>
Status ReadForEachPrompt(std::string_view name, Element value, OneOrEach<T>* out, Read read) {
  simdjson::dom::array list;
  if (!value.get(list)) {
    PORTICO_RETURN_IF_ERROR(CheckMembers(name, list.size(), kMaxNativePrompts, "values"));
  }
  return ReadOneOrEach(name, value, out, read);
}

Status ReadRid(std::string_view name, Element value, Request* request) {
  return ReadForEachPrompt(name, value, &request->rid, ReadRequestName);
}

Status ReadReturnLogprob(std::string_view name, Element value, Request* request) {
  return ReadForEachPrompt(name, value, &request->return_logprob, ReadBool);
}

template <OneOrEach<int32_t> Request::* kMember, int64_t kMin, int64_t kMax>
Status ReadCounts(std::string_view name, Element value, Request* request) {
  return ReadForEachPrompt(name, value, &(request->*kMember),
                           [](auto field, Element item, int32_t* out) {
                             return ReadInt32(field, item, IntRange{kMin, kMax}, out);
                           });
}

// Ids for all prompts, or a list of ids (or null) for each.
Status ReadTokenIdsLogprob(std::string_view name, Element value, Request* request) {
  auto& out = request->token_ids_logprob;
  simdjson::dom::array list;
  if (value.get(list)) return WrongValue(name, "a list of token ids or of such lists", value);
  if (list.size() == 0) return OkStatus();
  if ((*list.begin()).is_number()) {
    PORTICO_RETURN_IF_ERROR(CheckMembers(name, list.size(), kMaxLogprobIds, "token ids"));
    return ReadTokenIds(name, std::string(name), value, &out.values.emplace_back());
  }
  PORTICO_RETURN_IF_ERROR(CheckMembers(name, list.size(), kMaxNativePrompts, "values"));
  out.is_list = true;
  for (Element item : list) {
    const std::string place = fmt::format("{}[{}]", name, out.values.size());
    std::vector<TokenId>& ids = out.values.emplace_back();
    if (item.is_null()) continue;
    simdjson::dom::array asked;
    if (item.get(asked)) return WrongValueAt(name, place, "a list of token ids", item);
    if (asked.size() == 0) continue;
    PORTICO_RETURN_IF_ERROR(CheckMembers(name, asked.size(), kMaxLogprobIds, "token ids"));
    PORTICO_RETURN_IF_ERROR(ReadTokenIds(name, place, item, &ids));
  }
  return OkStatus();
}

Status StartPrompts(std::string_view name, Request* request) {
  if (!request->prompts.empty()) {
    return InvalidArgument(name, "give either text, input_ids or input_embeds, only one of them");
  }
  request->prompt_field = name;
  return OkStatus();
}

Status CheckBatch(std::string_view name, const simdjson::dom::array& items) {
  if (items.size() == 0) {
    return InvalidArgument(name, fmt::format("{} must not be an empty list", name));
  }
  if (items.size() <= kMaxNativePrompts) return OkStatus();
  return InvalidArgument(name,
                         fmt::format("{} must hold at most {} prompts", name, kMaxNativePrompts));
}

Status ReadText(std::string_view name, Element value, Request* request) {
  PORTICO_RETURN_IF_ERROR(StartPrompts(name, request));
  if (!value.is_array()) {
    if (!value.is_string()) return WrongValue(name, "a string or a list of strings", value);
    return ReadString(name, value, &request->prompts.emplace_back().text);
  }
  const simdjson::dom::array items(value);
  PORTICO_RETURN_IF_ERROR(CheckBatch(name, items));
  request->is_batch = true;
  for (Element item : items) {
    const std::string place = fmt::format("{}[{}]", name, request->prompts.size());
    std::string_view text;
    if (item.get(text)) return WrongValueAt(name, place, "a string", item);
    request->prompts.emplace_back().text = text;
  }
  return OkStatus();
}

Status ReadIds(std::string_view name, const std::string& place, Element list, Request* request) {
  CompletionRequest::Prompt& prompt = request->prompts.emplace_back();
  prompt.is_ids = true;
  return ReadTokenIds(name, place, list, &prompt.ids);
}

Status ReadInputIds(std::string_view name, Element value, Request* request) {
  PORTICO_RETURN_IF_ERROR(StartPrompts(name, request));
  simdjson::dom::array items;
  if (value.get(items)) {
    return WrongValue(name, "a list of token ids or a list of lists of them", value);
  }
  if (items.size() == 0) return InvalidArgument(name, "input_ids must not be an empty list");
  if (!(*items.begin()).is_array()) return ReadIds(name, std::string(name), value, request);
  PORTICO_RETURN_IF_ERROR(CheckBatch(name, items));
  request->is_batch = true;
  for (Element item : items) {
    const std::string place = fmt::format("{}[{}]", name, request->prompts.size());
    if (!item.is_array()) return WrongValueAt(name, place, "a list of token ids", item);
    PORTICO_RETURN_IF_ERROR(ReadIds(name, place, item, request));
  }
  return OkStatus();
}

Status ReadPriority(std::string_view name, Element value, Request* request) {
  return ReadInt32(name, value, {-kMaxInt32, kMaxInt32}, &request->priority);
}

using ExtrasPtr = std::shared_ptr<const RequestExtras>;

// What a prompt has of its own, made from what all have.
void GiveEachPromptItsExtras(Request* request) {
  OneOrEach<ExtrasPtr>& extras = request->extras;
  if (extras.is_list || !request->is_batch) return;
  const ExtrasPtr common = extras.Of(0, nullptr);
  extras.is_list = true;
  extras.values.assign(request->prompts.size(), common);
}

// Its rows stand for tokens, of which the engine makes no use.
Status ReadEmbeddings(std::string_view name, Element rows, size_t prompt, Request* request) {
  auto made = std::make_shared<RequestExtras>();
  PORTICO_RETURN_IF_ERROR(ReadEmbeddingRows(name, rows, made.get()));
  CompletionRequest::Prompt& as_ids = request->prompts.emplace_back();
  as_ids.is_ids = true;
  const auto width = static_cast<size_t>(made->embedding_size);
  as_ids.ids.assign(made->input_embeddings.size() / width, 1);
  request->extras.values.resize(prompt + 1);
  request->extras.values[prompt] = std::move(made);
  return OkStatus();
}

Status ReadInputEmbeds(std::string_view name, Element value, Request* request) {
  PORTICO_RETURN_IF_ERROR(StartPrompts(name, request));
  simdjson::dom::array items;
  simdjson::dom::array row;
  if (value.get(items) || items.size() == 0 || (*items.begin()).get(row) || row.size() == 0) {
    return WrongValue(name, "a list of rows of numbers or a list of such lists", value);
  }
  if (!(*row.begin()).is_array()) return ReadEmbeddings(name, value, 0, request);
  PORTICO_RETURN_IF_ERROR(CheckBatch(name, items));
  request->is_batch = true;
  request->extras.is_list = true;
  size_t prompt = 0;
  for (Element item : items) {
    PORTICO_RETURN_IF_ERROR(ReadEmbeddings(name, item, prompt++, request));
  }
  return OkStatus();
}

// No two answers meet in the same room. As in SGLang, one number for a batch is that of its first prompt, and the rooms of
// a further choice of each prompt come behind those of all prompts.
Status SpreadRooms(bool is_list, Request* request) {
  const auto prompts = static_cast<int64_t>(request->prompts.size());
  int64_t i = 0;
  for (ExtrasPtr& extras : request->extras.values) {
    if (extras == nullptr || !extras->bootstrap_room) continue;
    auto own = std::make_shared<RequestExtras>(*extras);
    own->bootstrap_room_step = static_cast<int32_t>(prompts);
    if (!is_list) {
      if (*own->bootstrap_room > INT64_MAX - prompts) {
        return InvalidArgument(kRoom, "bootstrap_room is too large for so many prompts");
      }
      *own->bootstrap_room += i++;
    }
    extras = std::move(own);
  }
  return OkStatus();
}

// After the prompts, whose number it depends on.
Status ReadExtra(std::string_view name, Element value, Request* request) {
  simdjson::dom::array list;
  const bool each = IsPerPromptExtra(name) && !value.get(list) && request->is_batch;
  const auto says_nothing = [](Element item) { return item.is_null(); };
  if (each && std::all_of(list.begin(), list.end(), says_nothing)) return OkStatus();
  if (each && list.size() != request->prompts.size()) {
    return InvalidArgument(name, fmt::format("{} must have one value a prompt: {}, got {}", name,
                                             request->prompts.size(), list.size()));
  }
  const bool is_room = name == kRoom && request->is_batch && !value.is_null();
  if (each || is_room) GiveEachPromptItsExtras(request);
  if (request->extras.values.empty()) request->extras.values.emplace_back();
  size_t i = 0;
  for (ExtrasPtr& extras : request->extras.values) {
    PORTICO_RETURN_IF_ERROR(
        ReadExtraField(name, each ? list.at(i++).value_unsafe() : value, &extras));
  }
  return is_room ? SpreadRooms(each, request) : OkStatus();
}

std::optional<MediaKind> KindOfField(std::string_view name) {
  return FindMediaKind(name, &MediaWords::data);
}

// After the prompts: a batch has a value, a list or null for each.
Status ReadMediaField(MediaKind kind, Element value, Request* request) {
  const std::string_view name = WordsOf(kind).data;
  simdjson::dom::array list;
  const bool is_list = !value.get(list);
  if (value.is_null() || (is_list && list.size() == 0)) return OkStatus();
  if (!request->is_batch) {
    if (request->extras.values.empty()) request->extras.values.emplace_back();
    return ReadMediaData(kind, value, &request->extras.values.front());
  }
  const auto says_nothing = [](Element item) { return item.is_null(); };
  if (is_list && std::all_of(list.begin(), list.end(), says_nothing)) return OkStatus();
  if (!is_list || list.size() != request->prompts.size()) {
    return InvalidArgument(name, fmt::format("{} must be a list with one value a prompt: {}", name,
                                             request->prompts.size()));
  }
  size_t items = 0;
  for (Element item : list) {
    simdjson::dom::array several;
    items += item.get(several) ? 1 : several.size();
  }
  PORTICO_RETURN_IF_ERROR(CheckMembers(name, items, kMaxMediaOfBatch, "items"));
  GiveEachPromptItsExtras(request);
  size_t i = 0;
  for (Element item : list) {
    PORTICO_RETURN_IF_ERROR(ReadMediaData(kind, item, &request->extras.values[i++]));
  }
  return OkStatus();
}

Status ReadMaxThinking(std::string_view name, Element value, Request* request) {
  return ReadInt32(name, value, {0, kMaxInt32}, &request->max_thinking_tokens);
}

// Fields of the native body alone that cannot be honoured, or have no effect on the answer.
constexpr RefusedField kRefusedNatively[] = {
    {"background", "false"},
    {"encoder_urls", "[]"},
    {"external_trace_header", "*"},
    {"kv_router_hint", "*"},
    {"log_metrics", "*"},
    {"multi_item_delimiter_indices", ""},
    {"no_logs", "*"},
    {"received_time", "*"},
    {"return_entropy", "false"},
    {"return_flat_raw_top_logprobs", "false"},
    {"return_flat_raw_top_logprobs_b64", "false"},
    {"return_indexer_topk", "false"},
    {"return_sampling_mask", "false"},
    {"routing_key", "*"},
};
static_assert(IsSortedByName(kRefusedNatively));

constexpr FieldReader<Request> kFields[] = {
    {"input_embeds", ReadInputEmbeds, /*is_long=*/true},
    {"input_ids", ReadInputIds, /*is_long=*/true},
    {"logprob_start_len", ReadCounts<&Request::logprob_start_len, -1, kMaxInt32>},
    {"max_thinking_tokens", ReadMaxThinking},
    {"model", api::ReadText<Request, &Request::model>},
    {"priority", ReadPriority},
    {"require_reasoning", ReadFlag<Request, &Request::require_reasoning>},
    {"return_logprob", ReadReturnLogprob},
    {"return_prompt_token_ids", ReadFlag<Request, &Request::return_prompt_token_ids>},
    {"return_text_in_logprobs", ReadFlag<Request, &Request::return_text_in_logprobs>},
    {"rid", ReadRid},
    {"sampling_params", ReadSamplingParams},
    {"stream", ReadFlag<Request, &Request::stream>},
    {"text", ReadText, /*is_long=*/true},
    {"token_ids_logprob", ReadTokenIdsLogprob},
    {"top_logprobs_num", ReadCounts<&Request::top_logprobs_num, 0, 20>},
};
static_assert(IsSortedByName(kFields));

// Reads what the cost depends on of parameters that an outline has left out. False where they are none.
StatusOr<bool> ReadLongSampling(const LeftOutMember& member, simdjson::dom::parser& parser,
                                Request* request) {
  if (request->sampling.given()) return false;  // doubled
  if (member.kind == '[') {
    PORTICO_RETURN_IF_ERROR(CheckMembers(member.name, member.items, kMaxNativePrompts, "values"));
  }
  const auto outline = OutlineOfEach(
      member.value, [](std::string_view name) { return name == "max_new_tokens" || name == "n"; });
  if (!outline) return false;
  PORTICO_RETURN_IF_ERROR(CheckLeftOut(outline->left_out));
  const std::string body = fmt::format("{{\"{}\":{}}}", member.name, outline->text);
  const Status read =
      ReadBody(body, parser, kFields, request, [](auto, auto) { return OkStatus(); });
  if (!read.ok() && FieldOf(read).empty()) return false;  // no JSON
  PORTICO_RETURN_IF_ERROR(read);
  return true;
}

// Of a member that an outline has left out: there are more values than prompts in the largest batch.
Status CheckLongList(const LeftOutMember& member) {
  constexpr std::string_view kEach[] = {"logprob_start_len", "return_logprob", "rid",
                                        "top_logprobs_num"};
  if (member.kind != '[' ||
      std::find(std::begin(kEach), std::end(kEach), member.name) == std::end(kEach)) {
    return OkStatus();
  }
  return CheckMembers(member.name, member.items, kMaxNativePrompts, "values");
}

}  // namespace

Status CheckLongGenerate(const std::string& body, simdjson::dom::parser& parser,
                         const NativeCheck& check) {
  NativeGenerateRequest request;
  PORTICO_ASSIGN_OR_RETURN(
      const auto left_out,
      ReadShortFields(body, parser, kFields, &request, [](auto, auto) { return OkStatus(); }));
  if (!left_out) return OkStatus();
  size_t prompts = 1;
  for (const LeftOutMember& member : *left_out) {
    if (member.kind == 'n') continue;                      // null: not given
    if (member.name == "input_embeds") return OkStatus();  // how many prompts there are is not seen
    if (member.name == "sampling_params") {
      PORTICO_ASSIGN_OR_RETURN(const bool read, ReadLongSampling(member, parser, &request));
      if (!read) return OkStatus();  // they might ask for less
    } else if (member.name == "text" || member.name == "input_ids") {
      request.prompt_field = member.name;
      prompts = CountPrompts(*left_out, member.name);
    } else {
      PORTICO_RETURN_IF_ERROR(CheckLongList(member));
    }
  }
  return check(request, prompts);
}

StatusOr<NativeGenerateRequest> DecodeGenerate(const std::string& body,
                                               simdjson::dom::parser& parser,
                                               std::vector<std::string>* unknown_fields) {
  NativeGenerateRequest request;
  BodyReader reader(parser);
  PORTICO_ASSIGN_OR_RETURN(const FieldList fields, reader.Read(body));
  for (const auto& [name, value] : fields) {
    if (IsExtraField(name) || KindOfField(name)) continue;
    Status status;
    if (const auto* field = FindReader(kFields, name)) {
      status = field->read(name, value, &request);
    } else if (!IsRefusedField(kRefusedNatively, name, value, &status) &&
               !IsRefusedField(name, value, &status)) {
      if (IsSamplingName(name)) {
        status = InvalidArgument(name, fmt::format("{} belongs in sampling_params", name));
      } else {
        status = RefuseConstraint(name, value);
        NoteUnknown(name, unknown_fields);
      }
    }
    PORTICO_RETURN_IF_ERROR(status);
  }
  if (request.prompts.empty()) return InvalidArgument("text", "text or input_ids is required");
  for (const auto& [name, value] : fields) {
    if (IsExtraField(name)) PORTICO_RETURN_IF_ERROR(ReadExtra(name, value, &request));
    if (const auto kind = KindOfField(name)) {
      PORTICO_RETURN_IF_ERROR(ReadMediaField(*kind, value, &request));
    }
  }
  return request;
}

}  // namespace portico::api::sglang
