// The pipeline and the models of a program that Portico is a part of.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "app/client/local_answer.h"
#include "app/omni/portico_omni.h"
#include "app/options/options.h"
#include "app/serve/http_service.h"

namespace portico::omni {

// What `portico omni serve` would serve. INVALID_ARGUMENT, NOT_FOUND.
StatusOr<ServeOptions> OptionsOf(const Config& config);

class OmniClient final : public Client {
 public:
  static StatusOr<std::shared_ptr<OmniClient>> Load(const Config& config);

  StatusOr<Answer> Submit(const Request& request) override;
  std::unique_ptr<AnswerStream> Stream(const Request& request) override;
  Status Abort(std::string_view request_id) override;
  StatusOr<std::string> Health() override;
  StatusOr<std::string> Admin(std::string_view action, const std::string& payload) override;
  std::string ModelName() override { return name_; }

  HttpService& service() { return *service_; }
  const ServeOptions& options() const { return options_; }

 private:
  explicit OmniClient(ServeOptions options) : options_(std::move(options)) {}
  Status Open();
  std::unique_ptr<LocalAnswer> Send(const Request& request, bool whole);
  StatusOr<std::string> Ask(Request request);

  const ServeOptions options_;
  std::unique_ptr<HttpService> service_;
  std::string name_;
  std::atomic<size_t> next_{0};
};

}  // namespace portico::omni
