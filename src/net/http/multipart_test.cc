#include "net/http/multipart.h"

#include <gtest/gtest.h>

namespace portico::net {
namespace {

constexpr std::string_view kType = "Multipart/Form-Data; boundary=\"b 1\"";

std::string Part(std::string_view head, std::string_view body) {
  return "--b 1\r\n" + std::string(head) + "\r\n\r\n" + std::string(body) + "\r\n";
}

constexpr std::string_view kFile = "Content-Disposition: form-data; name=\"file\"; filename=\"a\"";
constexpr std::string_view kModel = "content-disposition: form-data; name=model";

TEST(FindFormTextTest, FindsAFieldBehindAFileThatLooksLikeIt) {
  // It was looked for as text: what a file contained was taken for the field.
  const std::string form = Part(kFile, "name=\"model\"\r\n\r\nother\r\n") +
                           Part(std::string(kModel) + "\r\nContent-Type: text/plain", "m") +
                           "--b 1--\r\n";
  const auto text = FindFormText(kType, form, "model");
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(*text, "m");
  EXPECT_EQ(form.substr(static_cast<size_t>(text->data() - form.data()), 1), "m");
  EXPECT_FALSE(FindFormText(kType, form, "file").has_value()) << "a file is no text";
  EXPECT_FALSE(FindFormText("application/json", form, "model").has_value());
}

TEST(FindFormTextTest, OfAFormThatIsCutOffWhatIsWholeCounts) {
  const std::string form = Part(kModel, "first") + Part(kModel, "m") + Part(kFile, "x");
  EXPECT_EQ(FindFormText(kType, form, "model"), "m") << "the last one, as web frameworks take it";
  const size_t second = form.find("\r\nm\r\n") + 2;
  for (size_t size = 0; size <= form.size(); ++size) {
    const std::string cut = form.substr(0, size);
    const auto text = FindFormText(kType, cut, "model");
    const size_t whole = second + std::string_view("m\r\n--b 1").size();
    if (size >= whole) {
      EXPECT_EQ(text, "m") << size;
    } else {
      EXPECT_TRUE(!text.has_value() || *text == "first") << size;
    }
  }
}

TEST(ParseFormTest, RefusesMorePartsThanItTakes) {
  std::string form;
  for (int i = 0; i < 64; ++i) form += Part(kModel, "m");
  const auto parts = ParseForm(kType, form + "--b 1--\r\n");
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(parts->size(), 64u);
  EXPECT_FALSE(ParseForm(kType, form + Part(kModel, "m") + "--b 1--\r\n").ok());
  EXPECT_FALSE(ParseForm(kType, form).ok()) << "it is cut off";
}

}  // namespace
}  // namespace portico::net
