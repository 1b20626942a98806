#include "app/omni/omni_stage_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "app/command_tools.h"
#include "app/omni/start_pipeline.h"
#include "base/log.h"
#include "net/tls/tls.h"
#include "pipeline/remote/greeting.h"
#include "pipeline/remote/stage_door.h"

namespace portico {
namespace {

struct StageFlags {
  std::string config;
  std::string listen;
  std::vector<std::string> stages;
  net::TlsOptions tls;
};

Status ReadStageFlags(const std::vector<std::string>& flags, StageFlags* read) {
  const std::pair<std::string_view, std::string*> known[] = {
      {"--listen", &read->listen},
      {"--stage", nullptr},
      {"--ssl-certfile", &read->tls.certificate},
      {"--ssl-keyfile", &read->tls.key},
      {"--ssl-keyfile-password", &read->tls.key_password}};
  for (size_t i = 0; i < flags.size(); ++i) {
    if (read->config.empty() && !flags[i].starts_with('-')) {
      read->config = flags[i];
      continue;
    }
    const size_t equals = std::min(flags[i].find('='), flags[i].size());
    const std::string name = flags[i].substr(0, equals);
    const auto* const flag = std::find_if(std::begin(known), std::end(known),
                                          [&name](const auto& one) { return one.first == name; });
    if (flag == std::end(known)) {
      return Error(StatusCode::kInvalidArgument, fmt::format("unknown flag {}", name));
    }
    const bool joined = equals < flags[i].size();
    if (!joined && i + 1 == flags.size()) {
      return Error(StatusCode::kInvalidArgument, fmt::format("{}: needs a value", name));
    }
    std::string value = joined ? flags[i].substr(equals + 1) : flags[++i];
    if (flag->second == nullptr) {
      read->stages.push_back(std::move(value));
    } else {
      *flag->second = std::move(value);
    }
  }
  const net::TlsOptions& tls = read->tls;
  if (read->listen.empty()) {
    return Error(StatusCode::kInvalidArgument, "--listen: needs an address, such as 0.0.0.0:7000");
  }
  if (tls.certificate.empty() != tls.key.empty() ||
      (tls.certificate.empty() && !tls.key_password.empty())) {
    return Error(StatusCode::kInvalidArgument, "--ssl-certfile and --ssl-keyfile: both or none");
  }
  return OkStatus();
}

}  // namespace

const char kOmniStageUsage[] =
    R"(
flags of `portico omni stage`, which needs the same file as the server that uses it:

  --listen HOST:PORT       address to listen on; 0.0.0.0 for all. Addresses other than loopback
                           require PORTICO_STAGE_TOKEN, of at least 16 characters, in the
                           environment of both hosts
  --stage NAME             serve this stage and those that share its process; may be repeated.
                           By default all stages whose process has a `host`
  --ssl-certfile, --ssl-keyfile, --ssl-keyfile-password
                           TLS, as of `portico serve`; the server's file then says `tls: true`
)";

Status OmniStage(const std::string& config, const pipeline::Overrides& overrides,
                 const std::vector<std::string>& flags, bool* usage) {
  StageFlags read;
  read.config = config;
  pipeline::StageDoorOptions options;
  *usage = true;
  PORTICO_RETURN_IF_ERROR(ReadStageFlags(flags, &read));
  PORTICO_ASSIGN_OR_RETURN(options.listen, pipeline::ParseHostPort(read.listen));
  *usage = false;
  PORTICO_ASSIGN_OR_RETURN(const std::string file, PipelineFile(read.config));
  PORTICO_ASSIGN_OR_RETURN(const pipeline::PipelineConfig pipeline,
                           LoadPipelineConfig(file, overrides));
  *usage = !read.stages.empty();
  PORTICO_ASSIGN_OR_RETURN(options.processes, pipeline::ServedProcesses(
                                                  pipeline, file, ProgramsOfStages(), read.stages));
  *usage = false;
  if (!read.tls.certificate.empty()) {
    PORTICO_ASSIGN_OR_RETURN(options.tls, net::TlsContext::Load(read.tls, /*http2=*/false));
  }
  if (const char* token = std::getenv(pipeline::kTokenVariable)) options.token = token;
  std::string names;
  for (const auto& process : options.processes) {
    names += (names.empty() ? "" : ", ") + pipeline::StageNames(process.stages);
  }

  InitLog(LogLevel::kInfo);
  RaiseFileLimit();
  sigset_t signals = BlockSignals({});
  BlockHangup(&signals);
  PORTICO_ASSIGN_OR_RETURN(const auto door, pipeline::StageDoor::Open(std::move(options)));
  read.listen.resize(read.listen.rfind(':') + 1);
  LogInfo("ready: stages {} on {}{}{}", names, read.listen, door->port(),
          read.tls.certificate.empty() ? "" : " (TLS)");
  int signal = 0;
  sigwait(&signals, &signal);
  return OkStatus();
}

}  // namespace portico
