// A server of the caller's, and the app on it. The shards and what they hold of an app stay with the client
// when the server goes: an engine may still deliver to them.
#include <latch>
#include <mutex>

#include "api/admin/health.h"
#include "api/common/error_body.h"
#include "api/openai/audio/audio_routes.h"
#include "api/openai/handlers.h"
#include "api/route_table.h"
#include "app/omni/omni_client.h"
#include "net/loop/server.h"

namespace portico::omni {
namespace {

// Routes, and what they work with on each shard.
struct RouteGroup {
  api::ApiContext api;
  api::RouteTable routes;
  std::vector<std::unique_ptr<api::ShardContext>> contexts;

  void Spread(const std::vector<std::unique_ptr<net::Shard>>& shards) {
    for (const auto& shard : shards) {
      contexts.push_back(std::make_unique<api::ShardContext>(*shard, api));
      api.shards.push_back(contexts.back().get());
    }
  }
  bool HasPath(std::string_view path) const {
    for (const auto& route : routes.routes()) {
      const std::string_view known = route->path;
      if (known == path) return true;
      if (known.ends_with("/*") && path.size() >= known.size() &&
          path.starts_with(known.substr(0, known.size() - 1))) {
        return true;
      }
    }
    return false;
  }
};

// What outlives the server, in the order of its making.
struct Remains {
  std::vector<std::unique_ptr<net::Shard>> shards;
  std::unique_ptr<RouteGroup> own;
  std::unique_ptr<RouteGroup> app;
};

Server::RouteRequest Asked(net::HttpRequest& request) {
  return {.method = std::move(request.method),
          .path = std::move(request.path),
          .query = std::move(request.query),
          .headers = std::move(request.headers),
          .body = std::move(request.body)};
}

class OmniServer final : public Server {
 public:
  explicit OmniServer(ServerOptions options)
      : options_(std::move(options)), remains_(std::make_shared<Remains>()) {
    for (int i = 0; i < std::max(1, options_.threads); ++i) {
      remains_->shards.push_back(std::make_unique<net::Shard>(i));
    }
    remains_->own = std::make_unique<RouteGroup>();
    remains_->own->Spread(remains_->shards);
  }

  // No new requests, then no calls, no deliveries, no threads.
  ~OmniServer() override {
    if (listener_ != nullptr) {
      listener_->Stop();
      OnEveryShard([](api::ShardContext& context) { context.calls.Clear(); });
    }
    for (const RouteGroup* group : Groups()) {
      for (const auto& context : group->contexts) {
        context->hub.Close();
        context->pooling_hub.Close();
      }
    }
    for (const auto& shard : remains_->shards) shard->Stop();
    listener_.reset();
    // The caller's handlers may hold the client, which shall not hold them.
    remains_->own->routes = api::RouteTable();
    if (client_ != nullptr) client_->service().Keep(std::move(remains_));
  }

  void Route(const std::string& method, const std::string& path, Handler handler) override {
    api::Route route;
    route.method = method;
    route.path = path;
    route.access = api::Access::kOpen;
    route.body = api::BodyType::kNone;
    route.max_body_bytes = options_.max_body_bytes;
    route.handler = [handler = std::move(handler)](std::unique_ptr<net::Exchange> exchange,
                                                   api::ShardContext&) {
      RouteAnswer answer = handler(Asked(exchange->request));
      net::HttpResponse response;
      response.status = answer.status;
      response.content_type = std::move(answer.content_type);
      response.headers = std::move(answer.headers);
      response.body = std::move(answer.body);
      exchange->Respond(std::move(response));
    };
    remains_->own->routes.Add(std::move(route));
  }

  Status Add(std::shared_ptr<OmniClient> client, const AppOptions& options) {
    if (listener_ != nullptr || client_ != nullptr) {
      return Error(StatusCode::kFailedPrecondition,
                   listener_ != nullptr ? "the server listens already" : "the server has an app");
    }
    auto app = std::make_unique<RouteGroup>();
    client->service().Share(client->options(), &app->api);
    app->api.api_key = options.api_key;
    app->api.cors_origin = options.cors_origin;
    app->api.browser = api::MakeBrowserRules(options_.host, client->options().allowed_host);
    api::openai::AddOpenAiRoutes(app->routes);
    api::openai::AddAudioRoutes(app->routes);
    api::AddAdminRoutes(app->routes);
    app->Spread(remains_->shards);
    remains_->app = std::move(app);
    client_ = std::move(client);
    return OkStatus();
  }

  Status Listen() override {
    if (listener_ != nullptr) {
      return Error(StatusCode::kFailedPrecondition, "the server listens already");
    }
    net::ServerOptions listener;
    listener.host = options_.host;
    listener.port = options_.port;
    listener.max_connections = options_.max_connections;
    listener.max_body_bytes = options_.max_body_bytes;
    listener.tls.certificate = options_.tls_certificate;
    listener.tls.key = options_.tls_key;
    listener.write_error = [](const net::HttpError& error) {
      return api::ErrorBody(error.status, error.message);
    };
    if (client_ != nullptr) {
      listener.max_unsent_bytes = static_cast<size_t>(client_->options().max_unsent_bytes);
    }
    listener.check_head = [this](net::HttpRequest& head) {
      const RouteGroup& group = GroupOf(head.path);
      return group.routes.Admit(head, group.api);
    };
    auto handle = [this](std::unique_ptr<net::Exchange> exchange) {
      const RouteGroup& group = GroupOf(exchange->request.path);
      api::ShardContext& context = *group.contexts[exchange->shard().index()];
      group.routes.Dispatch(std::move(exchange), context);
    };
    std::vector<net::Shard*> shards;
    for (const auto& shard : remains_->shards) {
      if (!started_) shard->Start();
      shards.push_back(shard.get());
    }
    started_ = true;
    PORTICO_ASSIGN_OR_RETURN(listener_,
                             net::Server::Start(std::move(listener), shards, std::move(handle)));
    return OkStatus();
  }

  int port() const override { return listener_ == nullptr ? 0 : listener_->port(); }

  bool Drain(std::chrono::milliseconds patience) override {
    if (listener_ == nullptr) return true;
    for (RouteGroup* group : Groups()) group->api.draining = true;
    if (listener_->Drain(Clock::now() + patience)) return true;
    OnEveryShard([](api::ShardContext& context) { context.calls.Abort({}, /*all=*/true); });
    listener_->Drain(Clock::now() + std::chrono::seconds(1));
    return false;
  }

 private:
  std::vector<RouteGroup*> Groups() const {
    std::vector<RouteGroup*> groups{remains_->own.get()};
    if (remains_->app != nullptr) groups.push_back(remains_->app.get());
    return groups;
  }
  const RouteGroup& GroupOf(std::string_view path) const {
    const bool own = remains_->app == nullptr || remains_->own->HasPath(path);
    return own ? *remains_->own : *remains_->app;
  }
  // Waits for all of them.
  void OnEveryShard(void (*task)(api::ShardContext&)) {
    for (const RouteGroup* group : Groups()) {
      std::latch done(static_cast<std::ptrdiff_t>(group->contexts.size()));
      for (const auto& context : group->contexts) {
        context->shard.Post([task, &done, at = context.get()] {
          task(*at);
          done.count_down();
        });
      }
      done.wait();
    }
  }

  const ServerOptions options_;
  std::shared_ptr<OmniClient> client_;  // null: there is no app
  std::shared_ptr<Remains> remains_;
  std::unique_ptr<net::Server> listener_;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<Server> Server::Make(const ServerOptions& options) {
  return std::make_unique<OmniServer>(options);
}

Status CreateApp(std::shared_ptr<Client> client, Server& server, const AppOptions& options) {
  if (!options.model_name.empty() && options.model_name != client->ModelName()) {
    return InvalidArgument("model_name", "the client's model is called `" + client->ModelName() +
                                             "`, not `" + options.model_name + "`");
  }
  // There are no others of either.
  return static_cast<OmniServer&>(server).Add(
      std::static_pointer_cast<OmniClient>(std::move(client)), options);
}

}  // namespace portico::omni
