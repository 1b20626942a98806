// One call to an OpenAI-compatible server, for stages: what it answers comes as bytes or as the
// objects of server-sent events.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/http/http1_client.h"
#include "net/loop/shard.h"
#include "text/json.h"

namespace portico {

// Where the server is: "https://host:8443/v1".
struct UpstreamUrl {
  std::string host;
  int port = 80;
  bool tls = false;
  std::string path;  // without a "/" at its end
};
// INVALID_ARGUMENT: no http or https URL.
StatusOr<UpstreamUrl> ParseUpstreamUrl(std::string_view url);

// The parts of a multipart/form-data body: fields, and one file.
struct UpstreamForm {
  std::vector<std::pair<std::string, std::string>> fields;
  std::string file_name;
  std::string file;
};
std::string FormBody(const UpstreamForm& form, std::string_view boundary);

struct UpstreamRequest {
  std::string path;  // behind the URL's: "/chat/completions"
  std::string content_type = "application/json";
  std::string body;
};

// What comes, on the call's shard. The head's 2xx is checked: everything else is a failure.
struct UpstreamEvents {
  std::function<void(const net::ResponseHead&)> on_head;
  std::function<void(std::string_view)> on_bytes;
  std::function<void(Status)> on_end;  // once
};

// Lives on a shard, once it has been started there; Drop() on it ends the work without a word.
class UpstreamCall final : public net::HttpCallEvents {
 public:
  UpstreamCall(std::string stage, UpstreamEvents events)
      : stage_(std::move(stage)), events_(std::move(events)) {}

  // On the shard. `api_key` may be empty.
  void Start(net::Http1Client& client, const UpstreamUrl& url, const std::string& api_key,
             UpstreamRequest request);
  void Drop();
  void Pause();
  void Resume();

 private:
  void OnHead(net::ResponseHead& head) override;
  void OnBody(std::string_view bytes) override;
  void OnDone() override;
  void OnFailed(net::CallFailure failure, const std::string& why) override;
  void End(Status status);
  Status Refusal() const;

  const std::string stage_;
  UpstreamEvents events_;
  std::unique_ptr<net::Http1Call> call_;
  int status_ = 0;
  std::string refusal_;  // the body of an answer that is no 2xx
  bool ended_ = false;
};

// The `data:` of server-sent events, one after the other.
class EventLines {
 public:
  static constexpr size_t kMaxLine = 4 << 20;

  // Calls `on_data` for each that is complete. False: a line is longer than kMaxLine.
  bool Feed(std::string_view bytes, const std::function<void(std::string_view)>& on_data);

 private:
  std::string held_;
};

}  // namespace portico
