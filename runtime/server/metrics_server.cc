#include "runtime/server/metrics_server.h"

#include <prometheus/exposer.h>

#include <exception>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/server/host_port.h"
#include "runtime/server/quoted.h"

namespace folio {

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    std::string_view listen, std::weak_ptr<prometheus::Collectable> metrics) {
  FOLIO_ASSIGN_OR_RETURN(const HostPort wanted,
                         ParseHostPort(listen, /*min_port=*/0));
  // The library would take the one address for a list of several.
  if (absl::StrContains(wanted.host, ',')) {
    return absl::InvalidArgumentError(
        absl::StrCat("the address for metrics is ", Quoted(listen),
                     "; it must be one ADDR:PORT, without a comma"));
  }
  std::unique_ptr<prometheus::Exposer> exposer;
  try {
    exposer = std::make_unique<prometheus::Exposer>(std::string(listen));
  } catch (const std::exception&) {  // It does not say why.
    return absl::UnavailableError(absl::StrCat(
        "can't listen on ", std::string(listen),
        " for metrics: the port is in use or not allowed, the address is not "
        "this machine's, or it is IPv6, which Debian's civetweb has not. Give "
        "another one, or port 0 for any that is free"));
  }
  exposer->RegisterCollectable(std::move(metrics));
  std::string address =
      absl::StrCat(wanted.host, ":", exposer->GetListeningPorts().front());
  return std::unique_ptr<MetricsServer>(
      new MetricsServer(std::move(exposer), std::move(address)));
}

MetricsServer::MetricsServer(std::unique_ptr<prometheus::Exposer> exposer,
                             std::string address)
    : exposer_(std::move(exposer)), address_(std::move(address)) {}

MetricsServer::~MetricsServer() = default;

}  // namespace folio
