#include "runtime/server/introspection_service.h"

#include <cstdint>
#include <optional>

#include "runtime/server/report_conversion.h"
#include "runtime/server/response_conversion.h"
#include "runtime/server/status_conversion.h"

namespace folio {
namespace {

grpc::Status ShuttingDown() {
  return ToGrpc(StatusOfFinish(FinishReason::kShutdown));
}

void NoteDropped(v1::BatchReport& report, int64_t num_dropped) {
  report.set_dropped_reports(num_dropped);
}

}  // namespace

IntrospectionService::IntrospectionService(Engine* engine,
                                           const RequestRegistry* registry)
    : engine_(engine),
      registry_(registry),
      reports_(kMaxQueuedReports, /*initial=*/std::nullopt, NoteDropped) {}

// The engine notes its state between two steps, and the publisher makes the
// answer of it.
grpc::ServerUnaryReactor* IntrospectionService::GetMemoryReport(
    grpc::CallbackServerContext* context,
    const v1::GetMemoryReportRequest* /*request*/, v1::BatchReport* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const bool will_answer = engine_->AskForReport(
      [this, reactor, response](const BatchReport& report) {
        *response = ToProto(report, *registry_);
        reactor->Finish(grpc::Status::OK);
      });
  if (!will_answer) reactor->Finish(ShuttingDown());
  return reactor;
}

grpc::ServerWriteReactor<v1::BatchReport>* IntrospectionService::WatchBatches(
    grpc::CallbackServerContext* /*context*/,
    const v1::WatchBatchesRequest* /*request*/) {
  return reports_.Watch();
}

void IntrospectionService::Publish(const BatchReport& report) {
  if (reports_.has_watchers()) reports_.Publish(ToProto(report, *registry_));
}

void IntrospectionService::Close() { reports_.Close(ShuttingDown()); }

}  // namespace folio
