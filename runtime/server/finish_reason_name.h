// What metrics and logs call the ways in which a request ends.

#ifndef RUNTIME_SERVER_FINISH_REASON_NAME_H_
#define RUNTIME_SERVER_FINISH_REASON_NAME_H_

#include <glog/logging.h>

#include "scheduler/token_event.h"

namespace folio {

inline constexpr FinishReason kFinishReasons[] = {
    FinishReason::kStop,    FinishReason::kLength,   FinishReason::kCancelled,
    FinishReason::kAborted, FinishReason::kDeadline, FinishReason::kShutdown,
    FinishReason::kError};

// The first three names are those that dashboards know. REQUIRES: not kNone.
inline const char* NameOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
    case FinishReason::kAborted:
      return "abort";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kShutdown:
      return "shutdown";
    case FinishReason::kError:
      return "error";
    case FinishReason::kNone:
      break;
  }
  LOG(FATAL) << "a request ended without a reason";
  return "";
}

}  // namespace folio

#endif  // RUNTIME_SERVER_FINISH_REASON_NAME_H_
