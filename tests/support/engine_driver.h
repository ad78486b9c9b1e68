// Drives an engine by hand and collects what it says.

#ifndef TESTS_SUPPORT_ENGINE_DRIVER_H_
#define TESTS_SUPPORT_ENGINE_DRIVER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/engine/engine.h"
#include "scheduler/request.h"
#include "scheduler/token_event.h"

namespace folio {

// All that one request was given: its first sample, and the others.
struct Generated {
  RequestId id{};
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  std::vector<TokenLogprob> top;
  std::vector<TokenId> prompt_tokens;  // Those that were scored.
  std::vector<float> prompt_logprobs;
  std::string text;
  FinishReason finish_reason = FinishReason::kNone;
  Usage usage;
  int num_terminal_events = 0;
  std::vector<Generated> others;  // [n - 1], without usage.
};

// Submits `requests` and steps until nothing is live. Every submission must
// succeed; every report's identities are checked. `before_step`, where given,
// is called before each step with its number, from 1. Results are in the order
// of `requests`.
std::vector<Generated> RunToEnd(
    Engine& engine, std::vector<Request> requests,
    const std::function<void(int64_t step, const std::vector<Generated>&)>&
        before_step = nullptr);

}  // namespace folio

#endif  // TESTS_SUPPORT_ENGINE_DRIVER_H_
