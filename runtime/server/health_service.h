// grpc.health.v1.Health. (gRPC's own implementation cannot be described by
// reflection.)

#ifndef RUNTIME_SERVER_HEALTH_SERVICE_H_
#define RUNTIME_SERVER_HEALTH_SERVICE_H_

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "runtime/server/broadcast.h"

namespace folio {

// One answer for the server as a whole (the empty name) and for each of its
// services. Other names are NOT_FOUND, or SERVICE_UNKNOWN for Watch, as
// health.proto wants it. Thread-safe.
class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  // Starts as NOT_SERVING. `services`: full names.
  explicit HealthService(std::vector<std::string> services);

  // Returns whether that is a change.
  bool SetServing(bool serving);

  // NOT_SERVING, and never SERVING again.
  void StopServing();

  // Ends the watchers' streams.
  void Close();

  grpc::ServerUnaryReactor* Check(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request,
      grpc::health::v1::HealthCheckResponse* response) override;

  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request) override;

 private:
  bool IsKnown(const std::string& service) const;

  const std::vector<std::string> services_;
  std::mutex mutex_;  // Of those who change it.
  std::atomic<bool> serving_ = false;
  bool stopped_ = false;  // Guarded by mutex_.
  Broadcast<grpc::health::v1::HealthCheckResponse> known_;
  Broadcast<grpc::health::v1::HealthCheckResponse> unknown_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_HEALTH_SERVICE_H_
