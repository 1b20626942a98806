#include "router/proxy/proxy_events.h"

namespace portico::router {

using events::Event;
using events::kGateway;

void ProxyEvents::Begin(const std::string& request_id) {
  if (!events::On()) return;
  key_ = events::OnThread().key;
  if (key_ == events::kNoKey) key_ = events::NextKey();
  request_id_ = request_id;
  events::Name(key_, request_id);
  events::Record(Event::kRequestAdmission, key_, kGateway);
}

void ProxyEvents::Sent(std::string_view worker) {
  if (key_ == events::kNoKey) return;
  worker_ = events::LabelOf("worker:" + std::string(worker));
  events::Record(Event::kStageHopSent, key_, kGateway, {.peer = worker_});
}

void ProxyEvents::Failed() {
  if (key_ == events::kNoKey) return;
  events::Record(Event::kStageHopFailed, key_, kGateway, {.peer = worker_});
}

void ProxyEvents::FirstByte() {
  if (key_ == events::kNoKey) return;
  events::Record(Event::kStageStreamChunkReceived, key_, kGateway, {.peer = worker_, .a = 0});
}

void ProxyEvents::Ended(int status) {
  if (key_ == events::kNoKey) return;
  events::Record(Event::kTerminalResponse, key_, kGateway,
                 {.peer = worker_, .a = status >= 200 && status < 400});
}

}  // namespace portico::router
