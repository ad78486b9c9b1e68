// One step as clients see it.

#ifndef SCHEDULER_BATCH_REPORT_H_
#define SCHEDULER_BATCH_REPORT_H_

#include <cstdint>

#include "absl/time/time.h"
#include "cache/memory_report.h"

namespace folio {

// Taken when the forward pass has written its K/V and before anything that
// finished in the step gives its pages back: the fullest moment of the step.
struct BatchReport {
  int64_t step = 0;  // Counted from 1.
  absl::Time start;
  absl::Duration duration;          // The whole step, Plan to events.
  absl::Duration forward_duration;  // Of it, inside the model.

  // Of sequences that had more than one to compute, and of those that had one.
  int32_t prefill_tokens = 0;
  int32_t decode_tokens = 0;
  int32_t sequences_running = 0;
  int32_t sequences_waiting = 0;
  int32_t sequences_preempted = 0;  // In this step.

  MemoryReport memory;
};

}  // namespace folio

#endif  // SCHEDULER_BATCH_REPORT_H_
