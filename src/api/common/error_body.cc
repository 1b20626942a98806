#include "api/common/error_body.h"

#include "base/error_type.h"
#include "text/json_writer.h"

namespace portico::api {

std::string ErrorBody(int http_status, std::string_view message, std::string_view param,
                      std::string_view code) {
  std::string body;
  JsonWriter w(&body);
  auto text_or_null = [&w](std::string_view text) {
    if (text.empty()) {
      w.Null();
    } else {
      w.String(text);
    }
  };
  w.BeginObject().Key("error").BeginObject();
  w.Key("message").String(message);
  w.Key("type").String(ErrorType(http_status));
  w.Key("param");
  text_or_null(param);
  w.Key("code");
  text_or_null(code);
  w.EndObject().EndObject();
  return body;
}

std::string ErrorBody(const Status& status) {
  return ErrorBody(HttpStatus(status.code()), MessageOf(status), FieldOf(status), ReasonOf(status));
}

}  // namespace portico::api
