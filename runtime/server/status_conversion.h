// absl::Status as gRPC has it.

#ifndef RUNTIME_SERVER_STATUS_CONVERSION_H_
#define RUNTIME_SERVER_STATUS_CONVERSION_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace folio {

// The numbers of both kinds of codes are the same by design.
inline grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()));
}

}  // namespace folio

#endif  // RUNTIME_SERVER_STATUS_CONVERSION_H_
