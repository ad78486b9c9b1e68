#include "runtime/cli/bench_load.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

class Runner {
 public:
  Runner(const BenchLoad& load, Engine& engine)
      : load_(load), engine_(engine) {}

  absl::Status Start() {
    for (int32_t stream = 0; stream < load_.streams; ++stream) {
      Request request;
      request.prompt =
          RandomPrompt(load_.seed, load_.first_prompt + stream,
                       load_.prompt_tokens, engine_.model_info().vocab_size);
      request.ignore_eos = true;
      FOLIO_RETURN_IF_ERROR(engine_.Prepare(request));
      generated_.emplace(request.id, 0);
      FOLIO_RETURN_IF_ERROR(engine_.Submit(std::move(request)));
    }
    return absl::OkStatus();
  }

  absl::Status Run(
      absl::FunctionRef<void(BenchPhase, const BenchStep&)> after_step) {
    StepOutput output;
    while (!generated_.empty() && LeastGenerated() < load_.generate_tokens) {
      const BenchPhase phase =
          LeastGenerated() > 0 ? BenchPhase::kDecode : BenchPhase::kPrefill;
      engine_.Step(output);
      if (!output.stepped) {
        return absl::InternalError(
            absl::StrCat("the engine made no step, though ", generated_.size(),
                         " streams are live; this is a bug in Folio"));
      }
      FOLIO_ASSIGN_OR_RETURN(const int32_t sampled, Count(output.events));
      const BatchReport& report = output.report;
      after_step(phase, {.rows = report.prefill_tokens + report.decode_tokens,
                         .sampled_rows = sampled,
                         .kv_bytes = report.memory.bytes_holding(),
                         .duration = report.duration,
                         .forward = report.forward_duration});
    }
    for (const auto& [request, count] : generated_) engine_.Abort(request);
    while (engine_.Step(output)) {
    }
    return absl::OkStatus();
  }

 private:
  int32_t LeastGenerated() const {
    int32_t least = INT32_MAX;
    for (const auto& [request, count] : generated_) {
      least = std::min(least, count);
    }
    return least;
  }

  // Takes note of the step's tokens and returns how many there are.
  absl::StatusOr<int32_t> Count(const TokenEvents& events) {
    int32_t sampled = 0;
    for (const TokenEvent& event : events) {
      if (event.finish_reason == FinishReason::kError) {
        return absl::InternalError(
            "the model gave logits that are not numbers");
      }
      const auto count = static_cast<int32_t>(event.sampled.tokens.size());
      sampled += count;
      if (event.terminal) {
        generated_.erase(event.request_id);
      } else {
        generated_[event.request_id] += count;
      }
    }
    return sampled;
  }

  const BenchLoad& load_;
  Engine& engine_;
  absl::flat_hash_map<RequestId, int32_t> generated_;  // Of live streams.
};

}  // namespace

std::vector<TokenId> RandomPrompt(uint64_t seed, int64_t prompt, int32_t tokens,
                                  int32_t vocab_size) {
  std::vector<TokenId> result(tokens);
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] =
        static_cast<TokenId>(UniformDouble(seed, prompt, i) * vocab_size);
  }
  return result;
}

absl::Status RunBenchLoad(
    const BenchLoad& load, Engine& engine,
    absl::FunctionRef<void(BenchPhase, const BenchStep&)> after_step) {
  Runner runner(load, engine);
  FOLIO_RETURN_IF_ERROR(runner.Start());
  return runner.Run(after_step);
}

}  // namespace folio
