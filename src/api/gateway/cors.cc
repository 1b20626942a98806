#include "api/gateway/cors.h"

#include <algorithm>
#include <utility>

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

// Puts the headers into what another exchange answers.
class CorsExchange final : public net::Exchange {
 public:
  CorsExchange(ExchangePtr inner, net::Headers headers)
      : inner_(std::move(inner)), headers_(std::move(headers)) {
    request = std::move(inner_->request);
    inner_->set_on_closed([this] {
      auto closed = std::move(on_closed_);
      if (closed) closed();
    });
  }

  net::Shard& shard() override { return inner_->shard(); }
  void Respond(net::HttpResponse response) override { inner_->Respond(With(std::move(response))); }
  void StartStream(net::HttpResponse response) override {
    inner_->StartStream(With(std::move(response)));
  }
  void Write(std::string_view bytes) override { inner_->Write(bytes); }
  void End() override { inner_->End(); }
  size_t unsent_bytes() const override { return inner_->unsent_bytes(); }
  void CallWhenBelow(size_t bytes, absl::AnyInvocable<void()> call) override {
    inner_->CallWhenBelow(bytes, std::move(call));
  }
  void NoteAbort() override { inner_->NoteAbort(); }
  void Cut() override { inner_->Cut(); }
  bool body_open() const override { return inner_->body_open(); }
  int64_t rest_bytes() const override { return inner_->rest_bytes(); }
  void ReadBody(net::BodyReader& reader) override { inner_->ReadBody(reader); }
  void ConsumeBody(size_t bytes) override { inner_->ConsumeBody(bytes); }

 private:
  net::HttpResponse With(net::HttpResponse response) const {
    // A worker's own would be a second one.
    std::erase_if(response.headers, [](const auto& header) {
      return header.first.starts_with("access-control-") || header.first == "vary";
    });
    response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
    return response;
  }

  const ExchangePtr inner_;
  const net::Headers headers_;
};

}  // namespace

net::Headers CorsHeaders(const net::HttpRequest& request, std::span<const std::string> origins) {
  const std::string origin(request.Header("origin"));
  const bool all = std::find(origins.begin(), origins.end(), "*") != origins.end();
  if (origin.empty() ||
      (!all && std::find(origins.begin(), origins.end(), origin) == origins.end())) {
    return {};
  }
  return {{"access-control-allow-origin", all ? "*" : origin}, {"vary", "origin"}};
}

bool IsPreflight(const net::HttpRequest& request, std::span<const std::string> origins) {
  return request.method == "OPTIONS" && !request.Header("access-control-request-method").empty() &&
         !CorsHeaders(request, origins).empty();
}

ExchangePtr HandleCors(ExchangePtr exchange, std::span<const std::string> origins) {
  const net::HttpRequest& request = exchange->request;
  net::Headers headers = CorsHeaders(request, origins);
  if (headers.empty()) return exchange;
  if (!IsPreflight(request, origins)) {
    return std::make_unique<CorsExchange>(std::move(exchange), std::move(headers));
  }
  net::HttpResponse response;
  response.status = 204;
  response.content_type.clear();
  response.headers = std::move(headers);
  response.headers.emplace_back("access-control-allow-methods", "GET, POST, PUT, DELETE, OPTIONS");
  const std::string_view asked = request.Header("access-control-request-headers");
  if (!asked.empty()) response.headers.emplace_back("access-control-allow-headers", asked);
  response.headers.emplace_back("access-control-max-age", "600");
  exchange->Respond(std::move(response));
  return nullptr;
}

}  // namespace portico::api
