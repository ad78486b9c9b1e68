#include "tests/support/engine_driver.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace folio {
namespace {

template <typename T>
void Extend(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void Receive(const TokenEvent& event, Generated& request) {
  CHECK_EQ(request.num_terminal_events, 0) << "an event after the terminal";
  if (event.terminal) {
    request.usage = event.usage;
    ++request.num_terminal_events;
    return;
  }
  if (event.sample_index > static_cast<int32_t>(request.others.size())) {
    request.others.resize(event.sample_index);
  }
  Generated& generated = event.sample_index == 0
                             ? request
                             : request.others[event.sample_index - 1];
  CHECK(generated.finish_reason == FinishReason::kNone)
      << "an event after the sample's last";
  Extend(generated.tokens, event.sampled.tokens);
  Extend(generated.logprobs, event.sampled.logprobs);
  Extend(generated.top, event.sampled.top);
  Extend(generated.prompt_tokens, event.prompt.tokens);
  Extend(generated.prompt_logprobs, event.prompt.logprobs);
  generated.text += event.text;
  generated.finish_reason = event.finish_reason;
}

}  // namespace

std::vector<Generated> RunToEnd(
    Engine& engine, std::vector<Request> requests,
    const std::function<void(int64_t step, const std::vector<Generated>&)>&
        before_step) {
  std::vector<Generated> results(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const absl::Status prepared = engine.Prepare(requests[i]);
    CHECK(prepared.ok()) << prepared;
    results[i].id = requests[i].id;
    const absl::Status submitted = engine.Submit(std::move(requests[i]));
    CHECK(submitted.ok()) << submitted;
  }
  StepOutput output;
  bool has_work = true;
  for (int64_t step = 1; has_work; ++step) {
    if (before_step) before_step(step, results);
    has_work = engine.Step(output);
    engine.scheduler().CheckInvariants();
    if (output.stepped) output.report.memory.CheckIdentities();
    for (const TokenEvent& event : output.events) {
      const auto result = std::find_if(
          results.begin(), results.end(),
          [&](const Generated& g) { return g.id == event.request_id; });
      CHECK(result != results.end());
      Receive(event, *result);
    }
  }
  return results;
}

}  // namespace folio
