#include "template/pair_template.h"

#include <gtest/gtest.h>

namespace portico {
namespace {

TEST(PairTemplateTest, IsToldByRolesOrByTheAnswer) {
  constexpr std::string_view kRoles =
      R"({{ messages | selectattr('role', 'eq', 'query') | first }} {{ messages | selectattr("role", "==", "document") }})";
  EXPECT_TRUE(IsPairTemplate(kRoles));
  EXPECT_FALSE(AsksForYesOrNo(kRoles));
  constexpr std::string_view kAnswer =
      R"(Note that the answer can only be "yes" or "no". {{ messages[0]["content"] }})";
  EXPECT_TRUE(IsPairTemplate(kAnswer));
  EXPECT_TRUE(AsksForYesOrNo(kAnswer));
}

TEST(PairTemplateTest, ChatTemplatesAreNone) {
  EXPECT_FALSE(
      IsPairTemplate(R"({% if message.role == "user" %}{{ documents }} query{% endif %})"));
  EXPECT_FALSE(IsPairTemplate(""));
}

TEST(PairTemplateTest, APlainOneIsFilledOnce) {
  constexpr std::string_view kPlain = "<q>{query}</q> {document}{x}";
  EXPECT_TRUE(IsPlainPairTemplate(kPlain));
  EXPECT_EQ(FillPlainPairTemplate(kPlain, "{document}", "{query}"), "<q>{document}</q> {query}{x}");
  for (const char* other :
       {"", "{query}", "{{query}} {document}", "{query} {document} {% if a %}"}) {
    EXPECT_FALSE(IsPlainPairTemplate(other)) << other;
  }
}

}  // namespace
}  // namespace portico
