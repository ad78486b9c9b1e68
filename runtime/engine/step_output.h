// What one turn of the engine hands on.

#ifndef RUNTIME_ENGINE_STEP_OUTPUT_H_
#define RUNTIME_ENGINE_STEP_OUTPUT_H_

#include <vector>

#include "absl/time/time.h"
#include "runtime/engine/engine_load.h"
#include "runtime/engine/inbox.h"
#include "scheduler/batch_report.h"
#include "scheduler/token_event.h"

namespace folio {

struct StepOutput {
  absl::Time time;            // The engine's clock when the turn was over.
  EngineLoad load;            // And its state then.
  bool load_changed = false;  // Whether that differs from the turn before.
  TokenEvents events;
  bool stepped = false;  // Whether a batch was computed, and `report` is of it.
  BatchReport report;
  // Who asked for the state before the step, and that state. Whoever takes the
  // output calls them: that may take time, which is not the engine's.
  std::vector<ReportCallback> report_callbacks;
  BatchReport state;
  // The same for who had the prefix cache flushed, and the pages freed by it.
  std::vector<FlushCallback> flush_callbacks;
  int32_t pages_flushed = 0;

  bool empty() const {
    return events.empty() && !stepped && report_callbacks.empty() &&
           !load_changed && flush_callbacks.empty();
  }

  void AnswerCallbacks() const {
    for (const ReportCallback& callback : report_callbacks) callback(state);
    for (const FlushCallback& callback : flush_callbacks) {
      if (callback) callback(pages_flushed);
    }
  }

  void Clear() {
    events.Clear();
    stepped = false;
    load_changed = false;
    report_callbacks.clear();
    flush_callbacks.clear();
  }
};

}  // namespace folio

#endif  // RUNTIME_ENGINE_STEP_OUTPUT_H_
