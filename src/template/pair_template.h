// Templates of rerankers, which put a query and a document together: messages of the roles "query" and "document", in
// this order, and of "system" with an instruction, which SGLang's call `instruct`.
#pragma once

#include <string>
#include <string_view>

namespace portico {

// Whether the template picks its messages by these roles, as sentence-transformers and vLLM have them, or asks for "yes"
// or "no".
bool IsPairTemplate(std::string_view source);

// Whether the answer that it asks for is "yes" or "no"; SGLang tells by the same words.
bool AsksForYesOrNo(std::string_view source);

// Whether it is one of llama.cpp's, which its GGUF files name "rerank": a text with "{query}" and "{document}" in it,
// not Jinja.
bool IsPlainPairTemplate(std::string_view source);

// That text with both put in. What they contain is not looked at.
std::string FillPlainPairTemplate(std::string_view source, std::string_view query,
                                  std::string_view document);

}  // namespace portico
