// The pods that a label selector selects: listed once, then watched, as Kubernetes' clients do
// ("Efficient detection of changes" of its API concepts): a watch goes on from the version of the list,
// is begun anew when the server ends it, and the list is taken again when the version has become too
// old. While the API server cannot be reached what is known stays.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "net/http/http1_client.h"
#include "router/discovery/cluster.h"
#include "router/discovery/pod.h"

namespace portico::router {

struct PodWatchOptions {
  std::string space;     // the namespace; empty: all
  std::string selector;  // "app=sglang,tier=gpu"
};

// On one shard.
class PodWatch final : private net::HttpCallEvents {
 public:
  using Pods = std::map<std::string, Pod>;  // by uid

  // `client` outlives this; `on_change` is called when the pods have changed, `on_failure` with each
  // request that failed.
  PodWatch(net::Shard& shard, net::Http1Client& client, const ClusterOptions& cluster,
           PodWatchOptions options, std::function<void()> on_change,
           std::function<void()> on_failure);

  void Start() { List(); }
  // Whether the list has been taken once.
  bool listed() const { return listed_; }
  const Pods& pods() const { return pods_; }

 private:
  enum class Step { kList, kWatch };

  void List();
  void Watch();
  void Ask(Step step, const std::string& query);
  void TakePage();
  void TakeEvent(std::string_view line);
  // Tries again after a pause that grows.
  void Fail(const std::string& why);
  void Later(Duration pause);

  // net::HttpCallEvents
  void OnHead(net::ResponseHead& head) override;
  void OnBody(std::string_view bytes) override;
  void OnDone() override;
  void OnFailed(net::CallFailure failure, const std::string& why) override;

  net::Shard& shard_;
  net::Http1Client& client_;
  const ClusterOptions cluster_;
  const PodWatchOptions options_;
  const std::function<void()> on_change_;
  const std::function<void()> on_failure_;
  std::unique_ptr<net::HttpCall> call_;
  std::unique_ptr<net::Shard::Timer> timer_;  // a pause, or the patience of a request
  Step step_ = Step::kList;
  int status_ = 0;
  std::string bytes_;  // a list's body; of a watch the line that is not whole
  Pods listing_;       // pages that have come
  Pods pods_;
  std::string version_;  // from which a watch goes on; empty: the list is due
  bool listed_ = false;
  int failures_ = 0;  // in a row
};

}  // namespace portico::router
