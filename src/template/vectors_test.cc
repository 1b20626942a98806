// The recorded renders, snippets and conversations under PORTICO_SHARED (or ../shared), where they are.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/source_dir_for_test.h"
#include "template/template.h"

namespace portico {
namespace {

namespace fs = std::filesystem;

fs::path DataFolder() {
  const char* shared = std::getenv("PORTICO_SHARED");
  return (shared ? fs::path(shared) : fs::path(SourceDir()) / ".." / "shared") / "data";
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::vector<Json> ReadRows(const fs::path& path) {
  std::string text;
  FILE* pipe = popen(("gzip -dc '" + path.string() + "'").c_str(), "r");
  if (pipe == nullptr) return {};
  char block[65536];
  for (size_t size; (size = fread(block, 1, sizeof(block), pipe)) > 0;) text.append(block, size);
  pclose(pipe);
  std::vector<Json> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto row = Json::Parse(line);
    EXPECT_TRUE(row.ok()) << line.substr(0, 200);
    if (row.ok()) rows.push_back(*std::move(row));
  }
  return rows;
}

// Empty where the result is what the row records, else what is wrong.
std::string Fault(const Json& row, const StatusOr<std::string>& got) {
  if (row.Find("error") != nullptr) {
    if (got.ok()) return "should fail with " + row.GetString("message");
    if (row.GetString("type") != "TemplateError") return {};
    return MessageOf(got.status()) == row.GetString("message") ? "" : "another message";
  }
  if (!got.ok()) return std::string(MessageOf(got.status()));
  return *got == row.GetString("output") ? "" : "want " + row.GetString("output") + "\ngot " + *got;
}

class VectorsTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("PORTICO_FIXED_TIME", "2024-07-26T12:34:56", 1);
    if (!fs::exists(DataFolder() / "templates" / "cases.json")) {
      GTEST_SKIP() << "the recorded vectors are not there";
    }
  }
  void TearDown() override { unsetenv("PORTICO_FIXED_TIME"); }
};

TEST_F(VectorsTest, EveryTemplateRendersEveryRecordedConversation) {
  Json cases = *Json::Parse(ReadFile(DataFolder() / "templates" / "cases.json"));
  std::string name;
  std::shared_ptr<const Template> parsed;
  for (const Json& row : ReadRows(DataFolder() / "templates" / "renders.jsonl.gz")) {
    if (row.GetString("template") != name) {
      name = row.GetString("template");
      auto made = Template::Parse(ReadFile(DataFolder() / "templates" / name));
      parsed = made.ok() ? *made : nullptr;
    }
    if (parsed == nullptr) {
      EXPECT_NE(row.Find("error"), nullptr) << name;
      continue;
    }
    Json context = *cases.Find("special_tokens");
    for (const Json& test_case : cases.Find("cases")->as_array()) {
      if (test_case.GetString("id") != row.GetString("case")) continue;
      for (const char* part : {"messages", "tools", "documents", "add_generation_prompt"}) {
        const Json* value = test_case.Find(part);
        context.Set(part, value ? *value : Json());
      }
      for (const auto& [key, value] : test_case.Find("kwargs")->as_object()) {
        context.Set(key, value);
      }
    }
    std::vector<std::pair<size_t, size_t>> spans;
    RenderOptions options;
    options.generation_spans = &spans;
    EXPECT_EQ(Fault(row, parsed->Render(context, options)), "")
        << name << " " << row.GetString("case");
    const Json* want = row.Find("generation_spans");
    if (want == nullptr || row.Find("error") != nullptr) continue;
    JsonArray got;
    for (auto [from, to] : spans) {
      got.push_back(Json(JsonArray{Json(int64_t(from)), Json(int64_t(to))}));
    }
    EXPECT_EQ(*want, Json(got)) << name << " " << row.GetString("case");
  }
}

TEST_F(VectorsTest, EverySnippetRendersAsRecorded) {
  fs::path folder = DataFolder() / "vectors" / "jinja";
  Json own = *Json::Parse(ReadFile(folder / "own_context.json"));
  for (const Json& row : ReadRows(folder / "snippets.jsonl.gz")) {
    const Json* context = row.Find("context");
    auto parsed = Template::Parse(row.GetString("template"));
    StatusOr<std::string> got = std::string();
    if (parsed.ok()) {
      got = (*parsed)->Render(context->is_string() ? own : *context);
    } else {
      got = parsed.status();
    }
    EXPECT_EQ(Fault(row, got), "") << row.GetString("name") << " " << row.GetString("template");
  }
}

TEST_F(VectorsTest, EveryEndToEndConversationRendersAsRecorded) {
  for (const Json& row : ReadRows(DataFolder() / "vectors" / "jinja" / "chat_e2e.jsonl.gz")) {
    auto parsed =
        Template::Parse(ReadFile(DataFolder() / "templates" / row.GetString("template_file")));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(Fault(row, (*parsed)->Render(*row.Find("context"))), "") << row.GetString("name");
  }
}

}  // namespace
}  // namespace portico
