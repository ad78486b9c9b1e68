// The load that `folio bench` puts on an engine, and what its steps took.

#ifndef RUNTIME_CLI_BENCH_LOAD_H_
#define RUNTIME_CLI_BENCH_LOAD_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/base/types.h"
#include "runtime/engine/engine.h"

namespace folio {

// Every stream begins at the same moment with a prompt of random tokens and
// goes on until each has generated `generate_tokens` (or has filled the
// context).
struct BenchLoad {
  int32_t streams = 1;
  int32_t prompt_tokens = 128;
  int32_t generate_tokens = 64;
  uint64_t seed = 1;  // Of the prompts.
  // Stream s has prompt first_prompt + s: loads that shall have nothing in
  // common differ in it.
  int64_t first_prompt = 0;
};

// One prompt; a function of the arguments alone.
std::vector<TokenId> RandomPrompt(uint64_t seed, int64_t prompt, int32_t tokens,
                                  int32_t vocab_size);

struct BenchStep {
  int32_t rows = 0;          // Tokens computed.
  int32_t sampled_rows = 0;  // Of them, those with logits.
  int64_t kv_bytes = 0;      // Keys and values that attention has to read.
  absl::Duration duration;
  absl::Duration forward;  // Of it, in the forward pass.
};

enum class BenchPhase {
  kPrefill,  // Until the last prompt is through.
  kDecode,   // After that: every stream generates one token a step.
};

// Runs the load on an engine that has nothing else to do, and leaves it so.
// `after_step` is called after each step, whose time does not include it.
absl::Status RunBenchLoad(
    const BenchLoad& load, Engine& engine,
    absl::FunctionRef<void(BenchPhase phase, const BenchStep& step)>
        after_step);

}  // namespace folio

#endif  // RUNTIME_CLI_BENCH_LOAD_H_
