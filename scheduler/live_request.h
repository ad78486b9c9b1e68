// A request that has not ended, and what it has cost so far.

#ifndef SCHEDULER_LIVE_REQUEST_H_
#define SCHEDULER_LIVE_REQUEST_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "runtime/base/types.h"
#include "scheduler/request.h"
#include "scheduler/token_event.h"

namespace folio {

// The samples of one request come and go as sequences; this stays until the
// last of them has ended.
struct LiveRequest {
  explicit LiveRequest(std::shared_ptr<const Request> of)
      : request(std::move(of)) {
    usage.prompt_tokens = static_cast<int32_t>(request->prompt.size());
  }

  bool was_admitted() const { return first_admitted != absl::InfiniteFuture(); }

  const std::shared_ptr<const Request> request;
  std::vector<SequenceId> sequences;  // Its live ones, by sample.
  Usage usage;                        // Without durations, until the end.
  absl::Time first_admitted = absl::InfiniteFuture();
  absl::Time first_token = absl::InfiniteFuture();

  // Pages of its sequences, as added up in step `pages_step`.
  int64_t pages_step = 0;
  int32_t pages = 0;
};

}  // namespace folio

#endif  // SCHEDULER_LIVE_REQUEST_H_
