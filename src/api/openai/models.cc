#include "api/openai/models.h"

#include "api/model_facts.h"
#include "text/json_writer.h"

namespace portico::api::openai {
namespace {

void AppendPrompts(const EmbeddingPrompts& prompts, JsonWriter* w) {
  if (prompts.texts.empty()) return;
  w->Key("prompts").BeginObject();
  for (const auto& [name, text] : prompts.texts) w->Key(name).String(text);
  w->EndObject();
  if (!prompts.default_name.empty()) w->Key("default_prompt_name").String(prompts.default_name);
}

void AppendCard(const ServingModel& model, JsonWriter* w) {
  w->BeginObject();
  w->Key("id").String(model.id);
  w->Key("object").String("model");
  w->Key("created").Int(model.created);
  w->Key("owned_by").String("portico");
  w->Key("root").String(model.id);
  w->Key("parent").Null();
  w->Key("max_model_len").Int(model.engine->info().context_length);
  AppendTaskFacts(model.engine->info(), w);
  AppendPrompts(model.prompts, w);
  w->EndObject();
}

}  // namespace

std::string ModelBody(const ServingModel& model) {
  std::string body;
  JsonWriter w(&body);
  AppendCard(model, &w);
  return body;
}

std::string ModelListBody(const std::vector<const ServingModel*>& models, std::string_view pipeline,
                          int64_t created) {
  std::string body;
  JsonWriter w(&body);
  w.BeginObject().Key("object").String("list").Key("data").BeginArray();
  for (const ServingModel* model : models) AppendCard(*model, &w);
  if (!pipeline.empty()) {
    w.BeginObject().Key("id").String(pipeline).Key("object").String("model");
    w.Key("created")
        .Int(created)
        .Key("owned_by")
        .String("portico")
        .Key("root")
        .String(pipeline)
        .EndObject();
  }
  w.EndArray().EndObject();
  return body;
}

}  // namespace portico::api::openai
