#include "runtime/server/health_service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/server/finish_status.h"
#include "runtime/server/quoted.h"
#include "runtime/server/status_conversion.h"

namespace folio {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

HealthCheckResponse ResponseOf(HealthCheckResponse::ServingStatus status) {
  HealthCheckResponse response;
  response.set_status(status);
  return response;
}

HealthCheckResponse::ServingStatus StatusOf(bool serving) {
  return serving ? HealthCheckResponse::SERVING
                 : HealthCheckResponse::NOT_SERVING;
}

}  // namespace

HealthService::HealthService(std::vector<std::string> services)
    : services_(std::move(services)),
      known_(/*capacity=*/1, ResponseOf(StatusOf(false))),
      unknown_(/*capacity=*/1,
               ResponseOf(HealthCheckResponse::SERVICE_UNKNOWN)) {}

bool HealthService::SetServing(bool serving) {
  {
    std::lock_guard lock(mutex_);
    if (stopped_ || serving_ == serving) return false;
    serving_ = serving;
  }
  known_.Publish(ResponseOf(StatusOf(serving_)));
  return true;
}

void HealthService::StopServing() {
  SetServing(false);
  std::lock_guard lock(mutex_);
  stopped_ = true;
}

void HealthService::Close() {
  const grpc::Status status = ToGrpc(StatusOfFinish(FinishReason::kShutdown));
  known_.Close(status);
  unknown_.Close(status);
}

bool HealthService::IsKnown(const std::string& service) const {
  return service.empty() || std::find(services_.begin(), services_.end(),
                                      service) != services_.end();
}

grpc::ServerUnaryReactor* HealthService::Check(
    grpc::CallbackServerContext* context, const HealthCheckRequest* request,
    HealthCheckResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  if (!IsKnown(request->service())) {
    reactor->Finish(grpc::Status(
        grpc::StatusCode::NOT_FOUND,
        absl::StrCat("service is ", Quoted(request->service()),
                     "; this server has ", absl::StrJoin(services_, ", "),
                     " (or leave it empty for the server as a whole)")));
    return reactor;
  }
  response->set_status(StatusOf(serving_));
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext* /*context*/,
    const HealthCheckRequest* request) {
  return IsKnown(request->service()) ? known_.Watch() : unknown_.Watch();
}

}  // namespace folio
