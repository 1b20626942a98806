#include "router/proxy/error_body.h"

#include "base/error_type.h"
#include "text/json_writer.h"

namespace portico::router {

std::string GatewayErrorBody(int status, std::string_view message, std::string_view code,
                             std::string_view field) {
  std::string body;
  JsonWriter writer(&body);
  writer.BeginObject().Key("error").BeginObject();
  writer.Key("message").String(message).Key("type").String(ErrorType(status));
  writer.Key("param");
  field.empty() ? writer.Null() : writer.String(field);
  writer.Key("code");
  code.empty() ? writer.Null() : writer.String(code);
  writer.EndObject().EndObject();
  return body;
}

std::string CutEvents(std::string_view path, std::string_view message, std::string_view code) {
  if (path.ends_with("/messages")) {  // Anthropic's
    std::string body;
    JsonWriter writer(&body);
    writer.BeginObject().Key("type").String("error").Key("error").BeginObject();
    writer.Key("type").String("api_error").Key("message").String(message);
    writer.EndObject().EndObject();
    return "event: error\ndata: " + body + "\n\n";
  }
  return "data: " + GatewayErrorBody(500, message, code) + "\n\ndata: [DONE]\n\n";
}

}  // namespace portico::router
