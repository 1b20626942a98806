// What a model that gives vectors was trained to find before its texts, by name: sentence-transformers' prompts.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace portico {

struct EmbeddingPrompts {
  std::vector<std::pair<std::string, std::string>> texts;  // name and text, in the folder's order
  std::string default_name;  // of texts whose request names none; or empty

  // Null: there is none of this name.
  const std::string* Find(const std::string& name) const {
    for (const auto& [key, text] : texts) {
      if (key == name) return &text;
    }
    return nullptr;
  }
};

}  // namespace portico
