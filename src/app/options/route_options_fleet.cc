// The option table of `portico route`: prefill and decode workers, ranks, and where workers come from.
#include "app/options/route_options_table.h"

namespace portico {
namespace {

constexpr RouteOption kFleetTable[] = {
    {.group = "Prefill and decode",
     .name = "pd-disaggregation",
     .member = &RouteOptions::pd_disaggregation,
     .help = "Separates prefill and decode workers: a request that generates goes to one of each "
             "at the same time."},
    {.group = "Prefill and decode",
     .name = "prefill",
     .member = &RouteOptions::prefill,
     .metavar = "URL [PORT]",
     .help = "A prefill worker and the port of its bootstrap server, or none; may be repeated."},
    {.group = "Prefill and decode",
     .name = "decode",
     .member = &RouteOptions::decode,
     .metavar = "URL",
     .help = "A decode worker; may be repeated."},
    {.group = "Prefill and decode",
     .name = "prefill-policy",
     .member = &RouteOptions::prefill_policy,
     .metavar = "NAME",
     .help = "Policy for prefill workers; by default that of --policy."},
    {.group = "Prefill and decode",
     .name = "decode-policy",
     .member = &RouteOptions::decode_policy,
     .metavar = "NAME",
     .help = "Policy for decode workers; by default that of --policy."},
    {.group = "Prefill and decode",
     .name = "mini-lb",
     .member = &RouteOptions::mini_lb,
     .help = "Requires --pd-disaggregation: chooses workers at random unless a policy is given."},
    {.group = "Data-parallel ranks",
     .name = "dp-aware",
     .member = &RouteOptions::dp_aware,
     .help = "Treats each data-parallel rank of a server as a worker; /server_info gives the "
             "number of ranks."},
    {.group = "Discovery",
     .name = "service-discovery",
     .member = &RouteOptions::service_discovery,
     .help = "Uses the ready Kubernetes pods that match --selector as workers."},
    {.group = "Discovery",
     .name = "selector",
     .member = &RouteOptions::selector,
     .metavar = "KEY=VALUE",
     .help = "Labels of worker pods; all must match."},
    {.group = "Discovery",
     .name = "service-discovery-port",
     .member = &RouteOptions::service_discovery_port,
     .metavar = "PORT",
     .help = "Port on which these pods listen.",
     .min = 1,
     .max = 65535},
    {.group = "Discovery",
     .name = "service-discovery-namespace",
     .member = &RouteOptions::service_discovery_namespace,
     .metavar = "NAME",
     .help = "Namespace to watch; all namespaces if unset."},
    {.group = "Discovery",
     .name = "prefill-selector",
     .member = &RouteOptions::prefill_selector,
     .metavar = "KEY=VALUE",
     .help = "Labels of prefill worker pods; their annotation sglang.ai/bootstrap-port gives the "
             "port of their bootstrap server."},
    {.group = "Discovery",
     .name = "decode-selector",
     .member = &RouteOptions::decode_selector,
     .metavar = "KEY=VALUE",
     .help = "Labels of decode worker pods."},
    {.group = "Discovery",
     .name = "discovery-file",
     .member = &RouteOptions::discovery_file,
     .metavar = "FILE",
     .help = "List of workers in JSON or YAML, in the format of `workers` in --config; reread when "
             "it changes. An invalid, empty or missing file changes nothing."},
    {.group = "Discovery",
     .name = "discovery-check-interval-secs",
     .member = &RouteOptions::discovery_check_interval_secs,
     .metavar = "SECONDS",
     .help = "How often the file is reread even if its time and size are unchanged.",
     .min = 0.1},
};

}  // namespace

std::span<const RouteOption> FleetOptionTable() { return kFleetTable; }

}  // namespace portico
