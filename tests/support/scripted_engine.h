// An engine on a scripted model, driven by hand.

#ifndef TESTS_SUPPORT_SCRIPTED_ENGINE_H_
#define TESTS_SUPPORT_SCRIPTED_ENGINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/engine/engine.h"
#include "runtime/tokenizer/byte_tokenizer.h"
#include "tests/support/engine_driver.h"
#include "tests/support/scripted_model.h"

namespace folio {

// Its clock stands still unless it is moved.
class ScriptedEngine {
 public:
  static constexpr int32_t kContext = 200;
  static constexpr int64_t kTokenBytes = 2 * sizeof(float);

  // Pages of 16 tokens, 32 tokens and 4 sequences a step, no watermark.
  static EngineOptions Options(int32_t num_pages);

  // What the model generates after `tokens`.
  static std::vector<TokenId> Expected(std::vector<TokenId> tokens, int count);

  // Greedy, and EOS is ignored.
  static Request MakeRequest(std::vector<TokenId> prompt, int32_t max_tokens);

  explicit ScriptedEngine(const EngineOptions& options,
                          std::optional<int32_t> window = std::nullopt);

  Engine& operator*() { return *engine_; }
  Engine* operator->() { return engine_.get(); }
  const KvCache& cache() { return engine_->scheduler().cache(); }
  ManualClock& clock() { return clock_; }

  Generated RunOne(Request request);
  std::vector<Generated> Run(std::vector<Request> requests) {
    return RunToEnd(*engine_, std::move(requests));
  }

  // Prepares and submits; CHECKs that both succeed.
  RequestId Submit(Request request);

 private:
  ManualClock clock_;
  SerialExecutor executor_;
  ByteTokenizer tokenizer_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace folio

#endif  // TESTS_SUPPORT_SCRIPTED_ENGINE_H_
