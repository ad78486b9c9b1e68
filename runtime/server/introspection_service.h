// folio.v1.Introspection.

#ifndef RUNTIME_SERVER_INTROSPECTION_SERVICE_H_
#define RUNTIME_SERVER_INTROSPECTION_SERVICE_H_

#include <grpcpp/support/server_callback.h>

#include <cstddef>

#include "folio/v1/introspection.grpc.pb.h"
#include "runtime/engine/engine.h"
#include "runtime/server/broadcast.h"
#include "runtime/server/request_registry.h"
#include "scheduler/batch_report.h"

namespace folio {

class IntrospectionService final : public v1::Introspection::CallbackService {
 public:
  // Reports that wait for one watcher to read. Each takes some 100 bytes and
  // 40 for each running sequence, and most are shared by all watchers.
  static constexpr size_t kMaxQueuedReports = 256;

  // Both must outlive the service.
  IntrospectionService(Engine* engine, const RequestRegistry* registry);

  grpc::ServerUnaryReactor* GetMemoryReport(
      grpc::CallbackServerContext* context,
      const v1::GetMemoryReportRequest* request,
      v1::BatchReport* response) override;

  grpc::ServerWriteReactor<v1::BatchReport>* WatchBatches(
      grpc::CallbackServerContext* context,
      const v1::WatchBatchesRequest* request) override;

  // Hands a step's report to the watchers.
  void Publish(const BatchReport& report);

  // There will be no more reports.
  void Close();

 private:
  Engine* const engine_;
  const RequestRegistry* const registry_;
  Broadcast<v1::BatchReport> reports_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_INTROSPECTION_SERVICE_H_
