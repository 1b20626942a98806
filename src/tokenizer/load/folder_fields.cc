#include "tokenizer/load/folder_fields.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include "tokenizer/load/mapped_file.h"

namespace portico::tokenizer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMapFile = "special_tokens_map.json";
constexpr std::string_view kAddedFile = "added_tokens.json";
constexpr std::string_view kModelSpecific = "model_specific_special_tokens";

class FolderReader {
 public:
  Status Read(const fs::path& folder, const Json& settings, const PipelineParts& parts,
              bool is_json);
  FolderFields Take() { return std::move(out_); }

 private:
  Status ReadSettings(const Json& settings);
  Status ReadDecoder(const Json& decoder);
  Status ReadOlderFiles(const fs::path& folder);
  Status ReadAddedFile(const Json& added);
  void ReadFileTokens(const PipelineParts& parts);
  void AddNumbered(int64_t id, NamedToken token);

  FolderFields out_;
  std::map<std::string, NamedToken, std::less<>> by_content_;
};

bool ConcernsTokens(std::string_view name) {
  return name.ends_with("_token") || name == kExtra || name == kAdditional ||
         name == kModelSpecific || name == "extra_ids";
}

Status FolderReader::ReadSettings(const Json& settings) {
  if (settings.is_null()) return OkStatus();
  for (const auto& [name, value] : settings.as_object()) {
    if (!ConcernsTokens(name)) continue;
    PORTICO_ASSIGN_OR_RETURN(TokenField field, FieldOfJson(value, kSettingsFile));
    out_.fields.Set(name, std::move(field));
  }
  const TokenField* extra = out_.fields.Find(kExtra);
  if (out_.fields.Find(kAdditional) != nullptr && (extra == nullptr || !extra->IsTrue())) {
    out_.fields.Set(kExtra, out_.fields.Take(kAdditional));
  }
  std::vector<std::string> named;
  for (const auto& [name, field] : out_.fields.all()) {
    if (!IsSpecialName(name) && name.ends_with("_token") && field.is_text()) {
      named.push_back(name);
    }
  }
  TokenFields found;
  for (const std::string& name : named) found.Set(name, out_.fields.Take(name));
  if (extra = out_.fields.Find(kExtra); extra != nullptr && extra->is_object()) {
    found.SetAll(out_.fields.Take(kExtra).members);
  }
  if (found.all().empty()) {
    const TokenField* given = out_.fields.Find(kModelSpecific);
    if (given == nullptr || given->is_null()) return OkStatus();
    if (!given->is_object()) return CannotLoad(kModelSpecific, "it is not an object");
    found.SetAll(out_.fields.Take(kModelSpecific).members);
  }
  out_.specific = std::move(found);
  return OkStatus();
}

void FolderReader::AddNumbered(int64_t id, NamedToken token) {
  by_content_.insert_or_assign(token.content, token);
  out_.numbered.insert_or_assign(id, std::move(token));
}

Status FolderReader::ReadDecoder(const Json& decoder) {
  constexpr std::string_view kDecoder = "added_tokens_decoder";
  if (!decoder.is_object()) return CannotLoad(kDecoder, "it is not an object");
  for (const auto& [key, value] : decoder.as_object()) {
    int64_t id = 0;
    const char* end = key.data() + key.size();
    const auto [at, failure] = std::from_chars(key.data(), end, id);
    if (failure != std::errc() || at != end) return CannotLoad(kDecoder, "'" + key + "' is no id");
    if (!value.is_object()) return CannotLoad(kDecoder, "a token of it is not an object");
    PORTICO_ASSIGN_OR_RETURN(NamedToken token, TokenOfObject(value, kSettingsFile));
    AddNumbered(id, std::move(token));
  }
  return OkStatus();
}

Status FolderReader::ReadOlderFiles(const fs::path& folder) {
  PORTICO_ASSIGN_OR_RETURN(const Json map, ReadFolderJson(folder, kMapFile));
  if (map.is_object()) {
    for (const auto& [name, value] : map.as_object()) {
      if (!ConcernsTokens(name)) continue;
      if (name == kExtra && value.is_array()) {
        PORTICO_ASSIGN_OR_RETURN(TokenField more, SpecialListOf(value, kMapFile));
        out_.fields.AppendTo(kExtra, std::move(more.items));
      } else if (value.is_object() && name != kExtra) {
        PORTICO_ASSIGN_OR_RETURN(NamedToken token, TokenOfObject(value, kMapFile, true));
        out_.fields.Set(name, TokenField::Of(std::move(token)));
      } else {
        PORTICO_ASSIGN_OR_RETURN(TokenField field, FieldOfJson(value, kMapFile));
        out_.fields.Set(name, std::move(field));
      }
    }
    const TokenField* extra = out_.fields.Find(kExtra);
    if (extra != nullptr && extra->is_object()) {
      out_.specific.SetAll(out_.fields.Take(kExtra).members);
    }
  }
  PORTICO_ASSIGN_OR_RETURN(const Json added, ReadFolderJson(folder, kAddedFile));
  return added.is_object() ? ReadAddedFile(added) : OkStatus();
}

Status FolderReader::ReadAddedFile(const Json& added) {
  std::vector<std::string> specials;
  for (std::string_view name : kSpecialNames) {
    const TokenField* field = out_.fields.Find(name);
    if (field != nullptr && !field->was_typed) specials.push_back(field->Text());
  }
  if (const TokenField* extra = out_.fields.Find(kExtra); extra != nullptr) {
    for (const TokenField& item : extra->items) {
      if (!item.was_typed) specials.push_back(item.Text());
    }
  }
  for (const auto& [content, id] : added.as_object()) {
    if (!id.is_int()) return CannotLoad(kAddedFile, "a token of it has no id");
    NamedToken token;
    token.content = content;
    token.special = std::find(specials.begin(), specials.end(), content) != specials.end();
    token.is_normalized = !token.special;
    token.source = kAddedFile;
    AddNumbered(id.as_int(), std::move(token));
  }
  return OkStatus();
}

void FolderReader::ReadFileTokens(const PipelineParts& parts) {
  for (size_t i = 0; i < parts.added_tokens.size(); ++i) {
    AddNumbered((*parts.added_token_ids)[i], NamedToken::Of(parts.added_tokens[i]));
  }
}

Status FolderReader::Read(const fs::path& folder, const Json& settings, const PipelineParts& parts,
                          bool is_json) {
  PORTICO_RETURN_IF_ERROR(ReadSettings(settings));
  if (const Json* decoder = settings.Find("added_tokens_decoder")) {
    PORTICO_RETURN_IF_ERROR(ReadDecoder(*decoder));
  } else {
    PORTICO_RETURN_IF_ERROR(ReadOlderFiles(folder));
    if (is_json && !parts.added_token_ids) {
      return CannotLoad("tokenizer.json", "it has no added_tokens");
    }
    if (is_json) ReadFileTokens(parts);
  }
  for (std::string_view name : kSpecialNames) {
    TokenField* field = out_.fields.Find(name);
    if (field == nullptr || (!field->is_text() && !field->is_token())) continue;
    const auto known = by_content_.find(field->Text());
    if (known != by_content_.end()) *field = TokenField::Of(known->second);
  }
  return OkStatus();
}

}  // namespace

bool HasOtherFiles(const fs::path& folder) {
  std::error_code error;
  for (std::string_view name : {kSettingsFile, kConfigFile, kMapFile, kAddedFile}) {
    if (fs::exists(folder / name, error)) return true;
  }
  return false;
}

StatusOr<Json> ReadFolderJson(const fs::path& folder, std::string_view name) {
  std::error_code error;
  const fs::path path = folder / name;
  if (!fs::exists(path, error)) return Json();
  PORTICO_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path.string()));
  StatusOr<Json> json = Json::Parse(file.text());
  if (json.ok() && json->is_object()) return json;
  return CannotLoad(name, "it is not a JSON object");
}

StatusOr<FolderFields> ReadFolderFields(const fs::path& folder, const Json& settings,
                                        const PipelineParts& parts, bool is_json) {
  FolderReader reader;
  PORTICO_RETURN_IF_ERROR(reader.Read(folder, settings, parts, is_json));
  return reader.Take();
}

}  // namespace portico::tokenizer
