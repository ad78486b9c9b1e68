// How calls end, by how their requests did.

#ifndef RUNTIME_SERVER_FINISH_STATUS_H_
#define RUNTIME_SERVER_FINISH_STATUS_H_

#include "absl/status/status.h"
#include "scheduler/token_event.h"

namespace folio {

// REQUIRES: reason != kNone.
absl::Status StatusOfFinish(FinishReason reason);

}  // namespace folio

#endif  // RUNTIME_SERVER_FINISH_STATUS_H_
