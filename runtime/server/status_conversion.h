// absl::Status as gRPC has it.

#ifndef RUNTIME_SERVER_STATUS_CONVERSION_H_
#define RUNTIME_SERVER_STATUS_CONVERSION_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "google/rpc/status.pb.h"

namespace folio {

// With details that programs understand: a BadRequest for a FieldError, and a
// RetryInfo for RESOURCE_EXHAUSTED.
google::rpc::Status ToRpcStatus(const absl::Status& status);

// The same as the status of a call: with details, these are in its trailing
// metadata, in the form that gRPC's libraries look for.
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace folio

#endif  // RUNTIME_SERVER_STATUS_CONVERSION_H_
