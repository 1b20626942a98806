// What the monitor asks workers beside their health: models, ranks, load.
#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <utility>

#include "base/log.h"
#include "router/fleet/health_monitor.h"
#include "router/fleet/load_report.h"
#include "router/fleet/model_cards.h"
#include "router/fleet/pair_mode.h"
#include "text/json.h"

namespace portico::router {
namespace {

// How engines are asked for their load, and what reads the answer.
struct LoadForm {
  const char* target;
  std::optional<ReportedLoad> (*read)(std::string_view body, TimePoint at, int rank);
};
constexpr LoadForm kLoadForms[] = {{"/v1/loads", ReadLoads},
                                   {"/get_load", ReadLoads},
                                   {"/metrics", [](std::string_view body, TimePoint at, int) {
                                      return ReadLoadMetrics(body, at);
                                    }}};
constexpr int kMaxDpSize = 1024;

constexpr size_t kSglangForms = 2;  // of those, SGLang's and Portico's

// SGLang's dp_size, of /server_info or what is inside of it; 0: it does not say.
int RanksOf(const std::string& body) {
  const auto parsed = Json::Parse(body);
  if (!parsed.ok() || !parsed->is_object()) return 0;
  const Json* size = parsed->Find("dp_size");
  if (const Json* inner = parsed->Find("server_args"); size == nullptr && inner != nullptr) {
    size = inner->Find("dp_size");
  }
  if (size == nullptr || !size->is_number()) return 0;
  const double ranks = size->as_double();
  return ranks >= 1 && ranks <= kMaxDpSize ? static_cast<int>(ranks) : 0;
}

void NoteWrongModels(Worker& worker, std::string_view fault) {
  if (!worker.NoteMalformed(Malformed::kModels)) return;
  LogWarning(
      "worker {} {} answers /v1/models with what cannot be used as it is: {}; further such answers "
      "are counted, but not logged",
      worker.id(), worker.url(), fault);
}

}  // namespace

bool HealthMonitor::WantsMode(const Watch& watch) const {
  const Health health = watch.worker->health();
  return options_.pairs && watch.worker->protocol() == Protocol::kHttp &&
         (health == Health::kUnknown || health == Health::kUnhealthy);
}

void HealthMonitor::AskMode(Watch& watch, size_t path) {
  const Worker& worker = *watch.worker;
  watch.probe = std::make_unique<SmallCall>(
      shard_, clients_.Of(worker), worker,
      SmallRequest{.target = kServerInfoPaths[path],
                   .authorization = Authorization(worker),
                   .timeout = options_.health.timeout},
      [this, path, number = worker.number()](const StatusOr<SmallAnswer>& answer) {
        const auto found = watches_.find(number);
        if (found != watches_.end()) OnMode(*found->second, path, answer);
      });
}

void HealthMonitor::OnMode(Watch& watch, size_t path, const StatusOr<SmallAnswer>& answer) {
  shard_.AtEndOfTurn([call = std::shared_ptr<SmallCall>(std::move(watch.probe))] {});
  const bool says = answer.ok() && answer->status == 200;
  if (answer.ok() && !says && path + 1 < std::size(kServerInfoPaths)) {
    return AskMode(watch, path + 1);
  }
  // One that does not say, or not now, has answered its probe all the same.
  const Status fits =
      says ? CheckPairMode(watch.worker->spec().role, PairModeOf(answer->body)) : OkStatus();
  const bool told = std::exchange(watch.told_mode, !fits.ok());
  if (fits.ok()) return OnGoodProbe(watch, Clock::now());
  watch.starting = false;
  if (!told && watch.told_down) {  // another reason, which waiting does not mend
    LogWarning("worker {} {} is unhealthy: {}", watch.worker->id(), watch.worker->url(),
               MessageOf(fits));
  }
  OnBadProbe(watch, std::string(MessageOf(fits)), false);
}

bool HealthMonitor::WantsRanks(const Watch& watch) const {
  // One of a server's ranks asks for all of them.
  return options_.dp_aware && !watch.ranks_known && watch.ranks == nullptr &&
         watch.worker->protocol() == Protocol::kHttp && watch.worker->spec().dp_rank <= 0;
}

void HealthMonitor::AskRanks(Watch& watch) {
  const Worker& worker = *watch.worker;
  watch.ranks = std::make_unique<SmallCall>(
      shard_, clients_.Of(worker), worker,
      SmallRequest{.target = kServerInfoPaths[watch.rank_form],
                   .authorization = Authorization(worker),
                   .timeout = options_.health.timeout},
      [this, number = worker.number()](const StatusOr<SmallAnswer>& answer) {
        const auto found = watches_.find(number);
        if (found != watches_.end()) OnRanks(*found->second, answer);
      });
}

void HealthMonitor::OnRanks(Watch& watch, const StatusOr<SmallAnswer>& answer) {
  shard_.AtEndOfTurn([call = std::shared_ptr<SmallCall>(std::move(watch.ranks))] {});
  watch.next_probe = Clock::now() + options_.health.down_interval;
  if (!answer.ok()) return;  // asked again with the next probe
  const int ranks = answer->status == 200 ? RanksOf(answer->body) : 0;
  if (ranks == 0) {
    if (++watch.rank_form < std::size(kServerInfoPaths)) return AskRanks(watch);
    watch.rank_form = 0;
    if (!std::exchange(watch.told_ranks, true)) {
      LogWarning(
          "worker {} {} is not used: its /server_info has no dp_size, which --dp-aware needs",
          watch.worker->id(), watch.worker->url());
    }
    return;
  }
  watch.ranks_known = true;
  watch.next_probe = Clock::now() + options_.health.interval;
  events_.on_ranks(watch.worker, ranks);
}

void HealthMonitor::AskKvEvents(Watch& watch) {
  const Worker& worker = *watch.worker;
  watch.kv_asked = true;
  watch.kv_events = std::make_unique<SmallCall>(
      shard_, clients_.Of(worker), worker,
      SmallRequest{.target = kServerInfoPaths[watch.kv_form],
                   .authorization = Authorization(worker),
                   .timeout = options_.health.timeout},
      [this, number = worker.number()](const StatusOr<SmallAnswer>& answer) {
        const auto found = watches_.find(number);
        if (found != watches_.end()) OnKvEvents(*found->second, answer);
      });
}

void HealthMonitor::OnKvEvents(Watch& watch, const StatusOr<SmallAnswer>& answer) {
  shard_.AtEndOfTurn([call = std::shared_ptr<SmallCall>(std::move(watch.kv_events))] {});
  watch.kv_asked = answer.ok();  // else with the next load
  if (!answer.ok()) return;
  const auto info =
      answer->status == 200 ? Json::Parse(answer->body) : StatusOr<Json>(Json(nullptr));
  const KvAddress address = info.ok() ? KvAddressOfServer(*info) : KvAddress{};
  watch.worker->SetKvAddress(address);
  if (address.empty() && ++watch.kv_form < std::size(kServerInfoPaths)) AskKvEvents(watch);
}

void HealthMonitor::AskFacts(Watch& watch) {
  const Worker& worker = *watch.worker;
  watch.facts = std::make_unique<SmallCall>(
      shard_, clients_.Of(worker), worker,
      SmallRequest{.target = "/v1/models",
                   .authorization = Authorization(worker),
                   .timeout = options_.health.timeout},
      [this, number = worker.number()](const StatusOr<SmallAnswer>& answer) {
        const auto found = watches_.find(number);
        if (found == watches_.end()) return;
        Watch& asked = *found->second;
        shard_.AtEndOfTurn([call = std::shared_ptr<SmallCall>(std::move(asked.facts))] {});
        // Of what cannot be read a second time would not help, of the rest the next probe's.
        asked.facts_known = answer.ok() || answer.status().code() == StatusCode::kInternal;
        if (!answer.ok()) {
          if (asked.facts_known) NoteWrongModels(*asked.worker, MessageOf(answer.status()));
          return;
        }
        NoteKey(asked, answer->status);
        std::string fault;
        auto cards = answer->status == 200 ? ReadModelCards(answer->body, &fault) : std::nullopt;
        if (!fault.empty()) NoteWrongModels(*asked.worker, fault);
        if (cards.has_value()) TakeCards(asked, *std::move(cards));
      });
}

void HealthMonitor::NoteKey(Watch& watch, int status) {
  if (status != 401 && status != 403) {
    watch.told_key = false;
    return;
  }
  watch.facts_known = false;  // asked again with the next probe: it may get another key
  if (std::exchange(watch.told_key, true)) return;
  const Worker& worker = *watch.worker;
  const bool sends = !Authorization(worker).empty();
  LogWarning("worker {} {} answers /v1/models with {}: {}; {}", worker.id(), worker.url(), status,
             sends ? "it does not accept the API key that the gateway sends"
                   : "it wants an API key, which the gateway does not have, and refuses requests "
                     "whose clients do not send it",
             kSetWorkerKey);
}

void HealthMonitor::AskModelsAgain() {
  for (const auto& [number, watch] : watches_) {
    // Of a worker that is down or new it is asked anyway.
    if (watch->worker->health() != Health::kHealthy) continue;
    watch->facts_known = false;
    if (watch->worker->protocol() == Protocol::kHttp) {
      AskFacts(*watch);  // what has been asked before may be answered from before
    } else {
      watch->next_probe = Clock::now();
    }
  }
}

void HealthMonitor::AskLoad(Watch& watch, TimePoint now) {
  if (watch.load_form >= std::size(kLoadForms)) return;
  const Worker& worker = *watch.worker;
  watch.next_load = now + options_.load_interval;
  watch.load = std::make_unique<SmallCall>(
      shard_, clients_.Of(worker), worker,
      SmallRequest{.target = kLoadForms[watch.load_form].target,
                   .authorization = Authorization(worker),
                   .timeout = options_.health.timeout},
      [this, number = worker.number()](const StatusOr<SmallAnswer>& answer) {
        const auto found = watches_.find(number);
        if (found != watches_.end()) OnLoad(*found->second, answer);
      });
}

void HealthMonitor::OnLoad(Watch& watch, const StatusOr<SmallAnswer>& answer) {
  shard_.AtEndOfTurn([call = std::shared_ptr<SmallCall>(std::move(watch.load))] {});
  if (!answer.ok()) return;  // health is the probes' business
  const TimePoint now = Clock::now();
  const std::optional<ReportedLoad> load =
      answer->status == 200
          ? kLoadForms[watch.load_form].read(answer->body, now, watch.worker->spec().dp_rank)
          : std::nullopt;
  if (load.has_value()) {
    watch.load_known = true;
    watch.worker->SetReport(*load);
    const bool named = !watch.worker->spec().kv_events.empty() || !options_.kv_events.empty();
    if (!named && !watch.kv_asked && watch.load_form < kSglangForms && registry_.WantsKvEvents()) {
      AskKvEvents(watch);
    }
  } else if (!watch.load_known) {
    ++watch.load_form;
    watch.next_load = now;
  }
}

void HealthMonitor::TakeCards(Watch& watch, std::vector<ModelCard> cards) {
  Worker& worker = *watch.worker;
  std::vector<std::string> models;
  for (const ModelCard& card : cards) models.push_back(card.id);
  worker.SetCards(std::move(cards));
  if (worker.spec().models.empty()) registry_.SetModels(worker, std::move(models));
}

}  // namespace portico::router
