#include "runtime/server/status_conversion.h"

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"
#include "runtime/base/field_error.h"
#include "runtime/server/duration_conversion.h"

namespace folio {
namespace {

// Requests take seconds, so after a second something may have changed; sooner,
// the crowd that was refused would only be refused again.
constexpr absl::Duration kRetryDelay = absl::Seconds(1);

}  // namespace

google::rpc::Status ToRpcStatus(const absl::Status& status) {
  google::rpc::Status proto;
  // The numbers of both kinds of codes are the same by design.
  proto.set_code(static_cast<int>(status.code()));
  proto.set_message(std::string(status.message()));
  if (const std::optional<std::string> field = FieldOf(status)) {
    google::rpc::BadRequest bad_request;
    auto& violation = *bad_request.add_field_violations();
    violation.set_field(*field);
    violation.set_description(proto.message());
    proto.add_details()->PackFrom(bad_request);
  }
  if (absl::IsResourceExhausted(status)) {
    google::rpc::RetryInfo retry;
    SetDuration(kRetryDelay, *retry.mutable_retry_delay());
    proto.add_details()->PackFrom(retry);
  }
  return proto;
}

grpc::Status ToGrpc(const absl::Status& status) {
  const google::rpc::Status proto = ToRpcStatus(status);
  return grpc::Status(
      static_cast<grpc::StatusCode>(proto.code()), proto.message(),
      proto.details().empty() ? std::string() : proto.SerializeAsString());
}

}  // namespace folio
