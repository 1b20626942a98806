#include "api/model_facts.h"

#include <string>

#include "service/model_task.h"

namespace portico::api {

std::string LabelsAsJson(const EngineInfo& engine) {
  std::string labels;
  if (engine.labels.empty()) return labels;
  JsonWriter w(&labels);
  w.BeginObject();
  for (size_t i = 0; i < engine.labels.size(); ++i) {
    w.Key(std::to_string(i)).String(engine.labels[i]);
  }
  w.EndObject();
  return labels;
}

void AppendTaskFacts(const EngineInfo& engine, JsonWriter* w) {
  w->Key("task").String(TaskName(engine.task));
  w->Key("is_generation").Bool(engine.task == ModelTask::kGenerate);
  w->Key("is_embedding").Bool(engine.task == ModelTask::kEmbed);
  if (engine.task == ModelTask::kGenerate) return;
  w->Key("pooling").String(PoolingName(engine.pooling));
  if (engine.task == ModelTask::kEmbed) {
    w->Key("embedding_size").Int(engine.embedding_size);
    w->Key("normalized").Bool(engine.normalized);
    if (engine.embedding_sizes.empty()) return;
    w->Key("matryoshka_dimensions").BeginArray();
    for (int32_t size : engine.embedding_sizes) w->Int(size);
    w->EndArray();
    return;
  }
  w->Key("num_labels").Int(static_cast<int64_t>(engine.labels.size()));
  w->Key("id2label").Raw(engine.labels.empty() ? "{}" : LabelsAsJson(engine));
}

}  // namespace portico::api
