// folio.v1.Introspection.

#ifndef RUNTIME_SERVER_INTROSPECTION_SERVICE_H_
#define RUNTIME_SERVER_INTROSPECTION_SERVICE_H_

#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "folio/v1/introspection.grpc.pb.h"
#include "runtime/server/backend.h"
#include "runtime/server/broadcast.h"
#include "runtime/server/caller.h"
#include "runtime/server/request_registry.h"
#include "scheduler/batch_report.h"

namespace folio {

class IntrospectionService final : public v1::Introspection::CallbackService {
 public:
  // Reports that wait for one watcher to read. Each takes some 100 bytes and
  // 40 for each running sequence, and most are shared by all watchers.
  static constexpr size_t kMaxQueuedReports = 256;

  // All must outlive the service. `max_message_bytes`: of a request.
  IntrospectionService(const BackendSlot* slot, const Callers* callers,
                       const RequestRegistry* registry,
                       int64_t max_message_bytes);

  grpc::ServerUnaryReactor* GetModelInfo(grpc::CallbackServerContext* context,
                                         const v1::GetModelInfoRequest* request,
                                         v1::ModelInfo* response) override;

  grpc::ServerUnaryReactor* GetServerInfo(
      grpc::CallbackServerContext* context,
      const v1::GetServerInfoRequest* request,
      v1::ServerInfo* response) override;

  grpc::ServerUnaryReactor* GetLoad(grpc::CallbackServerContext* context,
                                    const v1::GetLoadRequest* request,
                                    v1::Load* response) override;

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
  // For a caller who may know.
  absl::StatusOr<const Backend*> BackendFor(
      const grpc::CallbackServerContext& context) const;
  // Ends the call with `fill`, which sets the response from the engine's state
  // between two steps.
  template <typename Fill>
  grpc::ServerUnaryReactor* AnswerFromState(
      grpc::CallbackServerContext& context, const Fill& fill);
  void FillLoad(const Backend& backend, const BatchReport& state,
                v1::Load& load) const;

  const BackendSlot* const slot_;
  const Callers* const callers_;
  const RequestRegistry* const registry_;
  const int64_t max_message_bytes_;
  const absl::Time start_;
  Broadcast<v1::BatchReport> reports_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_INTROSPECTION_SERVICE_H_
