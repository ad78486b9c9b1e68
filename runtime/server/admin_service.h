// folio.v1.Admin.

#ifndef RUNTIME_SERVER_ADMIN_SERVICE_H_
#define RUNTIME_SERVER_ADMIN_SERVICE_H_

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <optional>

#include "absl/time/time.h"
#include "folio/v1/admin.grpc.pb.h"
#include "runtime/server/backend.h"
#include "runtime/server/request_registry.h"

namespace folio {

class AdminService final : public v1::Admin::CallbackService {
 public:
  // All must outlive the service. `drain` begins to drain, and returns at once;
  // it is called by any thread, for each call of Drain.
  using Drainer = std::function<void(std::optional<absl::Duration> timeout)>;
  AdminService(const BackendSlot* slot, const RequestRegistry* registry,
               Drainer drain)
      : slot_(slot), registry_(registry), drain_(std::move(drain)) {}

  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context,
                                  const v1::DrainRequest* request,
                                  v1::DrainResponse* response) override;

  grpc::ServerUnaryReactor* FlushPrefixCache(
      grpc::CallbackServerContext* context,
      const v1::FlushPrefixCacheRequest* request,
      v1::FlushPrefixCacheResponse* response) override;

 private:
  const BackendSlot* const slot_;
  const RequestRegistry* const registry_;
  const Drainer drain_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_ADMIN_SERVICE_H_
