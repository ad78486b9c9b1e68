// A server with the security of Folio's, that tells its callers who they are.

#ifndef TESTS_RUNTIME_SERVER_WHOAMI_SERVER_H_
#define TESTS_RUNTIME_SERVER_WHOAMI_SERVER_H_

#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "runtime/client/client_options.h"
#include "runtime/server/caller.h"
#include "runtime/server/security_options.h"

namespace folio {

// Listens on two free ports of 127.0.0.1 while it lives.
class WhoamiServer {
 public:
  // REQUIRES: the options' files are right.
  explicit WhoamiServer(const SecurityOptions& options);
  ~WhoamiServer();

  const std::string& address() const { return addresses_[0]; }
  const std::string& other_address() const { return addresses_[1]; }

 private:
  class Service : public grpc::health::v1::Health::CallbackService {
   public:
    explicit Service(const SecurityOptions& options);

   private:
    grpc::ServerUnaryReactor* Check(
        grpc::CallbackServerContext* context,
        const grpc::health::v1::HealthCheckRequest* request,
        grpc::health::v1::HealthCheckResponse* response) override;

    const std::unique_ptr<const Callers> callers_;
  };

  Service service_;
  std::string addresses_[2];
  std::unique_ptr<grpc::Server> server_;
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

// Makes a call on a connection of its own: the caller as the server sees it, or
// the status of the call. UNAVAILABLE where there is no connection; what takes
// a minute fails with DEADLINE_EXCEEDED.
absl::StatusOr<Caller> AskWhoami(const std::string& address,
                                 const ClientOptions& options = {},
                                 const Metadata& metadata = {});

}  // namespace folio

#endif  // TESTS_RUNTIME_SERVER_WHOAMI_SERVER_H_
