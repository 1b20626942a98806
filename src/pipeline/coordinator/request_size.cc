#include "pipeline/coordinator/request_size.h"

#include <algorithm>
#include <string_view>

namespace portico::pipeline {
namespace {

// Takes the size of the text from `left`. False: it is longer.
bool TextFits(std::string_view text, size_t* left) {
  const bool fits = text.size() < *left;
  if (fits) *left -= text.size();
  return fits;
}

bool JsonFits(const Json& json, size_t* left) {
  const std::string_view text = json.is_string() ? std::string_view(json.as_string()) : "0123";
  if (!TextFits(text, left)) return false;
  if (json.is_array()) {
    return std::all_of(json.as_array().begin(), json.as_array().end(),
                       [left](const Json& one) { return JsonFits(one, left); });
  }
  return !json.is_object() ||
         std::all_of(json.as_object().begin(), json.as_object().end(), [left](const auto& field) {
           return TextFits(field.first, left) && JsonFits(field.second, left);
         });
}

}  // namespace

bool IsShort(const Request& request) {
  size_t left = kShortBytes;
  for (const Json* json : {&request.stage_params, &request.stage_sampling, &request.sampling,
                           &request.speech_fields}) {
    if (!JsonFits(*json, &left)) return false;
  }
  if (!request.references.empty() || !TextFits(request.instructions, &left)) return false;
  return request.chat == nullptr ||
         (JsonFits(request.chat->messages, &left) && JsonFits(request.chat->tools, &left));
}

}  // namespace portico::pipeline
