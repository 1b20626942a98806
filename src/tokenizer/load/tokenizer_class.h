// What a tokenizer_config.json leaves to its tokenizer_class.
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace portico::tokenizer {

// ("bos_token", "<s>") …: the special tokens that transformers 5.23 gives the class where the file does not name them,
// with or without "Fast" at the end. None for other classes, and for those that have none.
std::span<const std::pair<std::string_view, std::string_view>> DefaultTokensOf(
    std::string_view tokenizer_class);

}  // namespace portico::tokenizer
