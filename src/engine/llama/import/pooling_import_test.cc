// What is refused of folders that give vectors and classes, and what sentence-transformers' files say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/llama/import/importer.h"
#include "engine/llama/pooling/bert_for_test.h"

namespace portico::llama {
namespace {

using testing::HasSubstr;

class PoolingImportTest : public testing::Test {
 protected:
  PoolingImportTest() {
    std::mt19937 random(5);
    model_.tensors["pooler.dense.weight"] = RandomTensor({32, 32}, &random);
    model_.tensors["pooler.dense.bias"] = RandomTensor({32}, &random);
    model_.tensors["classifier.weight"] = RandomTensor({3, 32}, &random);
    model_.tensors["classifier.bias"] = RandomTensor({3}, &random);
  }

  void Classifies(JsonObject labels = {{"0", "a"}, {"1", "b"}, {"2", "c"}}) {
    model_.config.Set("architectures", JsonArray{"BertForSequenceClassification"});
    model_.config.Set("id2label", std::move(labels));
  }

  StatusOr<ImportedModel> Import(const ImportOptions& options = {}) {
    model_.Write(folder_.path());
    return ImportFolder(folder_.path(), options, nullptr);
  }
  std::string Complaint() { return std::string(MessageOf(Import().status())); }

  void WriteModules(const std::string& modules, const std::string& pooling) {
    WriteFile(folder_.File("modules.json"), modules);
    std::filesystem::create_directories(folder_.File("1_Pooling"));
    WriteFile(folder_.File("1_Pooling/config.json"), pooling);
  }

  static constexpr char kModules[] =
      R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
      {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
      {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])";

  TempFolder cache_{"XDG_CACHE_HOME"};
  TempFolder folder_;
  TestModel model_ = RandomBert(SmallBertConfig());
};

TEST_F(PoolingImportTest, ReadsTheHeadAndItsLabels) {
  Classifies();
  const auto model = Import();
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  EXPECT_EQ(model->pooling->head.output_size(), 3u);
  EXPECT_THAT(model->pooling->labels, testing::ElementsAre("a", "b", "c"));
  EXPECT_TRUE(model->notes.empty());
}

TEST_F(PoolingImportTest, ReadsWhatTheLogitsSay) {
  const std::pair<Json, ProblemType> types[] = {
      {Json(), ProblemType::kSingleLabel},
      {"single_label_classification", ProblemType::kSingleLabel},
      {"multi_label_classification", ProblemType::kMultiLabel},
      {"regression", ProblemType::kRegression}};
  for (const auto& [named, type] : types) {
    Classifies();
    model_.config.Set("problem_type", named);
    const auto model = Import();
    ASSERT_TRUE(model.ok()) << MessageOf(model.status());
    EXPECT_EQ(model->pooling->problem_type, type);
  }
  model_.config.Set("problem_type", "riddle");
  EXPECT_THAT(Complaint(), HasSubstr("'riddle'"));
}

TEST_F(PoolingImportTest, RefusesAHeadThatIsNotWhole) {
  Classifies();
  const TestModel whole = model_;
  for (const char* name : {"pooler.dense.weight", "classifier.weight"}) {
    model_ = whole;
    model_.tensors.erase(name);
    EXPECT_THAT(Complaint(), HasSubstr(name));
  }
  model_ = whole;
  model_.tensors["classifier.weight"] = model_.tensors["classifier.bias"];
  EXPECT_THAT(Complaint(), HasSubstr("classifier.weight"));
  model_ = whole;
  model_.tensors["classifier.bias"] = model_.tensors["pooler.dense.bias"];
  EXPECT_THAT(Complaint(), HasSubstr("classifier.bias"));
  model_ = whole;
  model_.tensors["classifier.weight"].values[5] = NAN;
  EXPECT_THAT(Complaint(), HasSubstr("not finite"));
}

TEST_F(PoolingImportTest, RefusesLabelsThatDoNotFitTheHead) {
  Classifies({{"0", "a"}, {"1", "b"}});
  EXPECT_THAT(Complaint(), HasSubstr("names 2 labels, but the head gives 3"));
  Classifies({{"0", "a"}, {"1", "b"}, {"3", "c"}});
  EXPECT_THAT(Complaint(), HasSubstr("no label 2"));
}

TEST_F(PoolingImportTest, RefusesWhatLibllamaWouldComputeOtherwise) {
  model_.config.Set("hidden_act", "relu");
  EXPECT_THAT(Complaint(), HasSubstr("'relu'"));
  model_.config.Set("hidden_act", "gelu_10");
  EXPECT_THAT(Complaint(), HasSubstr("'gelu_10'"));
  model_.config.Set("hidden_act", "gelu");
  model_.config.Set("position_embedding_type", "relative_key");
  EXPECT_THAT(Complaint(), HasSubstr("'relative_key'"));
}

TEST_F(PoolingImportTest, FollowsSentenceTransformersFiles) {
  WriteModules(kModules, R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  WriteFile(folder_.File("sentence_bert_config.json"),
            R"({"max_seq_length": 77, "do_lower_case": true})");
  const auto model = Import();
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  EXPECT_EQ(model->pooling->pooling, Pooling::kCls);
  EXPECT_TRUE(model->pooling->normalized);
  EXPECT_EQ(model->usual_context, 77);
  EXPECT_TRUE(model->lower_case);
}

TEST_F(PoolingImportTest, ReadsTheFirstOfSentenceTransformersOldFilesThatSaysAnything) {
  WriteModules(kModules, R"({"pooling_mode_cls_token": true})");
  WriteFile(folder_.File("sentence_xlm-roberta_config.json"),
            R"({"max_seq_length": 77, "do_lower_case": true})");
  const auto model = Import();
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  EXPECT_EQ(model->usual_context, 77);
  EXPECT_TRUE(model->lower_case);
  WriteFile(folder_.File("sentence_roberta_config.json"), R"({"max_seq_length": 66})");
  WriteFile(folder_.File("sentence_bert_config.json"), "{}");
  const auto first = Import();
  ASSERT_TRUE(first.ok()) << MessageOf(first.status());
  EXPECT_EQ(first->usual_context, 66);
  EXPECT_FALSE(first->lower_case);
  WriteFile(folder_.File("sentence_roberta_config.json"), R"({"max_seq_length": "long"})");
  EXPECT_THAT(Complaint(), HasSubstr("sentence_roberta_config.json"));
}

TEST_F(PoolingImportTest, ReadsPromptsAndTheirDefault) {
  const std::string prompts = folder_.File("config_sentence_transformers.json");
  const std::string mean = R"({"pooling_mode_mean_tokens": true})";
  WriteModules(kModules, mean);
  WriteFile(prompts, R"({"prompts": {"query": "find: ", "document": ""},
                         "default_prompt_name": "query"})");
  const auto model = Import();
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  ASSERT_NE(model->prompts.Find("query"), nullptr);
  EXPECT_EQ(*model->prompts.Find("query"), "find: ");
  EXPECT_EQ(model->prompts.default_name, "query");
  WriteFile(prompts, R"({"prompts": {"query": "find: "}, "default_prompt_name": "passage"})");
  EXPECT_THAT(Complaint(), HasSubstr("'passage'"));
  WriteFile(prompts, R"({"prompts": {"query": 7}})");
  EXPECT_THAT(Complaint(), HasSubstr("query is not a text"));
  WriteFile(prompts, R"({"prompts": {"query": "find: "}})");
  WriteModules(kModules, R"({"pooling_mode_mean_tokens": true, "include_prompt": false})");
  EXPECT_THAT(Complaint(), HasSubstr("include_prompt"));
}

TEST_F(PoolingImportTest, RefusesPoolingThatItDoesNotKnowUnlessToldAnother) {
  WriteModules(kModules, R"({"pooling_mode_max_tokens": true})");
  EXPECT_THAT(Complaint(), HasSubstr("max_tokens"));
  ImportOptions options;
  options.pooling = Pooling::kMean;
  EXPECT_TRUE(Import(options).ok());
}

TEST_F(PoolingImportTest, RefusesModulesThatItDoesNotKnow) {
  WriteModules(R"([{"path": "2_LSTM", "type": "sentence_transformers.models.LSTM"}])", "{}");
  EXPECT_THAT(Complaint(), HasSubstr("models.LSTM"));
}

TEST_F(PoolingImportTest, ReadsADenseModule) {
  WriteModules(R"([{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                   {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])",
               R"({"pooling_mode_mean_tokens": true})");
  std::filesystem::create_directories(folder_.File("2_Dense"));
  WriteFile(folder_.File("2_Dense/config.json"),
            R"({"activation_function": "torch.nn.modules.activation.Tanh"})");
  EXPECT_THAT(Complaint(), HasSubstr("safetensors only"));
  std::mt19937 random(5);
  const TestTensor weight = RandomTensor({8, 32}, &random);
  WriteFile(folder_.File("2_Dense/model.safetensors"),
            SafetensorsBytes(
                {{"linear.weight", "F32", weight.shape, EncodeWeights(weight.values, "F32")}}));
  const auto model = Import();
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  EXPECT_EQ(model->pooling->head.output_size(), 8u);
  EXPECT_FALSE(model->pooling->normalized);
}

}  // namespace
}  // namespace portico::llama
