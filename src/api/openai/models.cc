#include "api/openai/models.h"

#include "text/json_writer.h"

namespace portico::api::openai {
namespace {

void AppendCard(const ModelCard& card, JsonWriter* w) {
  w->BeginObject();
  w->Key("id").String(card.id);
  w->Key("object").String("model");
  w->Key("created").Int(card.created);
  w->Key("owned_by").String("portico");
  w->Key("root").String(card.id);
  w->Key("parent").Null();
  w->Key("max_model_len").Int(card.max_model_len);
  w->EndObject();
}

}  // namespace

std::string ModelBody(const ModelCard& card) {
  std::string body;
  JsonWriter w(&body);
  AppendCard(card, &w);
  return body;
}

std::string ModelListBody(const std::vector<ModelCard>& cards) {
  std::string body;
  JsonWriter w(&body);
  w.BeginObject().Key("object").String("list").Key("data").BeginArray();
  for (const ModelCard& card : cards) AppendCard(card, &w);
  w.EndArray().EndObject();
  return body;
}

}  // namespace portico::api::openai
