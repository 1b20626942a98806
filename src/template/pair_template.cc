#include "template/pair_template.h"

#include <string>

namespace portico {
namespace {

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

}  // namespace portico
