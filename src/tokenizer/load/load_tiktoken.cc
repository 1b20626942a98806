#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tokenizer/load/load.h"
#include "tokenizer/load/mapped_file.h"
#include "tokenizer/model/bpe.h"
#include "tokenizer/model/byte_level.h"
#include "tokenizer/normalize/charsmap.h"
#include "tokenizer/split/split_pattern.h"

namespace portico::tokenizer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kR50kPattern =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)";
constexpr std::string_view kCl100kPattern =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";
constexpr std::string_view kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// What a rank file does not say itself.
struct Spec {
  std::string pattern;
  std::vector<std::pair<std::string, TokenId>> special_tokens;
};

// The encodings that tiktoken knows by name.
std::optional<Spec> SpecOfName(std::string_view name) {
  if (name == "r50k_base" || name == "gpt2" || name == "p50k_base" || name == "p50k_edit") {
    Spec spec{std::string(kR50kPattern), {{"<|endoftext|>", 50256}}};
    if (name == "p50k_edit") {
      spec.special_tokens.insert(
          spec.special_tokens.end(),
          {{"<|fim_prefix|>", 50281}, {"<|fim_middle|>", 50282}, {"<|fim_suffix|>", 50283}});
    }
    return spec;
  }
  if (name == "cl100k_base") {
    return Spec{std::string(kCl100kPattern),
                {{"<|endoftext|>", 100257},
                 {"<|fim_prefix|>", 100258},
                 {"<|fim_middle|>", 100259},
                 {"<|fim_suffix|>", 100260},
                 {"<|endofprompt|>", 100276}}};
  }
  if (name == "o200k_base") {
    return Spec{std::string(kO200kPattern),
                {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}}};
  }
  return std::nullopt;
}

StatusOr<Spec> ReadSpec(const fs::path& path) {
  PORTICO_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path.string()));
  PORTICO_ASSIGN_OR_RETURN(Json json, Json::Parse(file.text()));
  Spec spec;
  spec.pattern = json.GetString("pat_str");
  const Json* specials = json.Find("special_tokens");
  if (spec.pattern.empty() || specials == nullptr || !specials->is_object()) {
    return Error(StatusCode::kInvalidArgument,
                 "tiktoken_spec.json needs pat_str and special_tokens");
  }
  for (const auto& [token, id] : specials->as_object()) {
    if (!id.is_int() || id.as_int() < 0 || id.as_int() >= INT32_MAX) {
      return Error(StatusCode::kInvalidArgument, "tiktoken_spec.json has a token without an id");
    }
    spec.special_tokens.emplace_back(token, static_cast<TokenId>(id.as_int()));
  }
  return spec;
}

StatusOr<Spec> FindSpec(const std::string& path) {
  fs::path file(path);
  fs::path beside = file.parent_path() / "tiktoken_spec.json";
  std::error_code error;
  if (fs::is_regular_file(beside, error)) return ReadSpec(beside);
  if (std::optional<Spec> known = SpecOfName(file.stem().string())) return *std::move(known);
  return Error(
      StatusCode::kInvalidArgument,
      "a rank file does not say how text is split: it needs a tiktoken_spec.json with pat_str "
      "and special_tokens beside it");
}

// "base64 rank" lines.
StatusOr<std::vector<std::pair<std::string, TokenId>>> ReadRanks(std::string_view file) {
  std::vector<std::pair<std::string, TokenId>> ranks;
  while (!file.empty()) {
    size_t end = std::min(file.find('\n'), file.size());
    std::string_view line = file.substr(0, end);
    file.remove_prefix(std::min(end + 1, file.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    size_t space = line.find(' ');
    TokenId rank = -1;
    if (space != std::string_view::npos) {
      const char* last = line.data() + line.size();
      auto [at, failure] = std::from_chars(line.data() + space + 1, last, rank);
      if (failure != std::errc() || at != last) rank = -1;
    }
    if (rank < 0) {
      return Error(StatusCode::kInvalidArgument,
                   "the rank file has a line that is not 'token rank'");
    }
    PORTICO_ASSIGN_OR_RETURN(std::string bytes, DecodeBase64(line.substr(0, space)));
    if (bytes.empty()) {
      return Error(StatusCode::kInvalidArgument, "the rank file has an empty token");
    }
    ranks.emplace_back(std::move(bytes), rank);
  }
  return ranks;
}

// Two tokens merge as early as the rank of what they make: every way to cut a token into two is a merge.
MergeTable MergesOf(const std::vector<std::pair<std::string, TokenId>>& ranks,
                    const Vocabulary& bytes) {
  struct Row {
    TokenId left, right, whole;
  };
  std::vector<Row> rows;
  for (const auto& [token, rank] : ranks) {
    std::string_view text = token;
    for (size_t cut = 1; cut < text.size(); ++cut) {
      std::optional<TokenId> left = bytes.Find(text.substr(0, cut));
      if (!left) continue;
      std::optional<TokenId> right = bytes.Find(text.substr(cut));
      if (right) rows.push_back({*left, *right, rank});
    }
  }
  MergeTable merges;
  merges.Reserve(rows.size());
  for (const Row& row : rows) {
    merges.Add(row.left, row.right, {static_cast<uint32_t>(row.whole), row.whole});
  }
  return merges;
}

StatusOr<std::unique_ptr<const Model>> ModelOfRanks(std::string_view file) {
  PORTICO_ASSIGN_OR_RETURN(auto ranks, ReadRanks(file));
  Vocabulary bytes;
  Vocabulary spelled;
  constexpr size_t kLongest = 1 << 16;  // splits are tried at every place: no token may be huge
  for (const auto& [token, rank] : ranks) {
    if (token.size() > kLongest) {
      return Error(StatusCode::kInvalidArgument, "the rank file has a token that is too long");
    }
    bytes.Add(token, rank);
    spelled.Add(ToByteLevel(token), rank);
  }
  bytes.Seal();
  spelled.Seal();
  BpeOptions options;
  options.ignore_merges = true;
  return std::unique_ptr<const Model>(
      std::make_unique<Bpe>(std::move(spelled), MergesOf(ranks, bytes), options));
}

}  // namespace

StatusOr<PipelineParts> PartsFromTiktoken(std::string_view file, const std::string& path,
                                          std::unique_ptr<const Model> model) {
  PORTICO_ASSIGN_OR_RETURN(Spec spec, FindSpec(path));
  PipelineParts parts;
  parts.description = "tiktoken rank file";
  parts.model = std::move(model);
  if (!parts.model) {
    PORTICO_ASSIGN_OR_RETURN(parts.model, ModelOfRanks(file));
  }
  for (auto& [token, id] : spec.special_tokens) {
    AddedToken added;
    added.content = std::move(token);
    added.normalized = false;
    added.special = true;
    added.id = id;
    parts.added_tokens.push_back(std::move(added));
  }
  PORTICO_ASSIGN_OR_RETURN(SplitPattern pattern,
                           SplitPattern::FromRegex(spec.pattern, Regex::Syntax::kFancyRegex));
  parts.byte_level = PlanOfPattern(pattern.known());
  parts.pre_tokenizer = MakeByteLevelSplit(std::move(pattern));
  Json decoder(JsonObject{{"type", Json("ByteLevel")},
                          {"add_prefix_space", Json(false)},
                          {"trim_offsets", Json(false)}});
  PORTICO_ASSIGN_OR_RETURN(parts.decoder, Decoder::FromJson(decoder));
  parts.decode_plan = PlanDecode(decoder);
  return parts;
}

}  // namespace portico::tokenizer
