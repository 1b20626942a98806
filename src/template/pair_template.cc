#include "template/pair_template.h"

namespace portico {
namespace {

constexpr std::string_view kQuery = "{query}", kDocument = "{document}";

// Without spaces, and with one kind of quotes.
std::string Bare(std::string_view source) {
  std::string bare;
  for (const char c : source) {
    if (c != ' ') bare.push_back(c == '\'' ? '"' : c);
  }
  return bare;
}

bool Picks(const std::string& bare, const std::string& role) {
  for (const char* test : {"\"eq\",", "\"equalto\",", "\"==\",", "=="}) {
    if (bare.find(test + ('"' + role + '"')) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

bool IsPairTemplate(std::string_view source) {
  if (AsksForYesOrNo(source)) return true;
  const std::string bare = Bare(source);
  return Picks(bare, "query") && Picks(bare, "document");
}

bool AsksForYesOrNo(std::string_view source) {
  return Bare(source).find("answercanonlybe\"yes\"or\"no\"") != std::string::npos;
}

bool IsPlainPairTemplate(std::string_view source) {
  for (const std::string_view jinja : {"{{", "{%"}) {
    if (source.find(jinja) != std::string_view::npos) return false;
  }
  return source.find(kQuery) != std::string_view::npos &&
         source.find(kDocument) != std::string_view::npos;
}

std::string FillPlainPairTemplate(std::string_view source, std::string_view query,
                                  std::string_view document) {
  std::string text;
  while (!source.empty()) {
    if (source.starts_with(kQuery)) {
      text += query;
      source.remove_prefix(kQuery.size());
    } else if (source.starts_with(kDocument)) {
      text += document;
      source.remove_prefix(kDocument.size());
    } else {
      text += source.front();
      source.remove_prefix(1);
    }
  }
  return text;
}

}  // namespace portico
