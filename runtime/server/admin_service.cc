#include "runtime/server/admin_service.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/field_error.h"
#include "runtime/server/duration_conversion.h"
#include "runtime/server/finish_status.h"
#include "runtime/server/status_conversion.h"

namespace folio {
namespace {

// Longer, and it is a slip.
constexpr absl::Duration kMaxTimeout = absl::Hours(24);

absl::StatusOr<std::optional<absl::Duration>> TimeoutOf(
    const v1::DrainRequest& request) {
  if (!request.has_timeout()) return std::nullopt;
  const absl::Duration timeout = ToDuration(request.timeout());
  if (timeout >= absl::ZeroDuration() && timeout <= kMaxTimeout) {
    return timeout;
  }
  return FieldError(
      "timeout",
      absl::StrCat(" is ", absl::FormatDuration(timeout), "; it must be 0 to ",
                   absl::FormatDuration(kMaxTimeout)));
}

}  // namespace

grpc::ServerUnaryReactor* AdminService::Drain(
    grpc::CallbackServerContext* context, const v1::DrainRequest* request,
    v1::DrainResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::StatusOr<std::optional<absl::Duration>> timeout =
      TimeoutOf(*request);
  if (timeout.ok()) {
    drain_(*timeout);
    response->set_requests_live(static_cast<int32_t>(registry_->size()));
  }
  reactor->Finish(ToGrpc(timeout.status()));
  return reactor;
}

// The engine flushes between two steps, and the publisher answers.
grpc::ServerUnaryReactor* AdminService::FlushPrefixCache(
    grpc::CallbackServerContext* context,
    const v1::FlushPrefixCacheRequest* /*request*/,
    v1::FlushPrefixCacheResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const absl::StatusOr<const Backend*> backend = slot_->Get();
  if (!backend.ok()) {
    reactor->Finish(ToGrpc(backend.status()));
    return reactor;
  }
  const bool will_answer = (*backend)->engine->FlushPrefixCache(
      [reactor, response](int32_t pages_freed) {
        response->set_pages_freed(pages_freed);
        reactor->Finish(grpc::Status::OK);
      });
  if (!will_answer) {
    reactor->Finish(ToGrpc(StatusOfFinish(FinishReason::kShutdown)));
  }
  return reactor;
}

}  // namespace folio
