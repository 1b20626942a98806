// Finds what --model-path names, and reads what a Hugging Face folder says about generating with
// it.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "message/generation_defaults.h"
#include "message/sampling.h"

namespace portico::llama {

struct ModelSource {
  bool is_folder = false;  // a Hugging Face folder; else a GGUF file
  std::string path;
};

// `path` is a GGUF file, a folder with config.json (or with one GGUF file), or a hub id "org/name"
// that is in the Hugging Face cache ($HF_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub,
// ~/.cache/huggingface/hub): its snapshot of refs/main. Errors: NOT_FOUND, with the command that
// downloads where it looks like a hub id; INVALID_ARGUMENT for a file or folder that is no model.
StatusOr<ModelSource> FindModel(const std::string& path);

struct FolderGeneration {
  // The eos_token_id of generation_config.json, then those of config.json; each once, none below zero.
  std::vector<TokenId> eos_token_ids;
  // generation_config.json's, none if it says do_sample: false.
  GenerationDefaults defaults;
};

// Errors: a file that is not JSON, or a value of the wrong type.
StatusOr<FolderGeneration> ReadGeneration(const std::string& folder);

}  // namespace portico::llama
