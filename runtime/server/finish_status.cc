#include "runtime/server/finish_status.h"

#include <glog/logging.h>

namespace folio {

absl::Status StatusOfFinish(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
    case FinishReason::kLength:
      return absl::OkStatus();
    case FinishReason::kCancelled:
      return absl::CancelledError("the client cancelled the request");
    case FinishReason::kAborted:
      return absl::AbortedError("the request was ended by a call of Abort");
    case FinishReason::kDeadline:
      return absl::DeadlineExceededError(
          "the request's deadline passed before it was complete");
    case FinishReason::kShutdown:
      return absl::UnavailableError(
          "the server is shutting down; try again elsewhere or later");
    case FinishReason::kError:
      return absl::InternalError(
          "the model gave logits that are not finite numbers for this request");
    case FinishReason::kNone:
      break;
  }
  LOG(FATAL) << "a request ended without a reason";
}

}  // namespace folio
