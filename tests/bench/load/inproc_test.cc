// Arrivals on a clock that the model moves: each step takes 10 ms exactly.

#include "bench/load/inproc.h"

#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/executor.h"
#include "runtime/tokenizer/byte_tokenizer.h"
#include "tests/support/scripted_engine.h"
#include "tests/support/scripted_model.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Duration Ms(double ms) { return absl::Milliseconds(ms); }

class TenMillisecondModel final : public Model {
 public:
  TenMillisecondModel(const ModelLimits& limits, ManualClock* clock)
      : model_(ScriptedEngine::kContext, limits), clock_(clock) {}

  const ModelInfo& info() const override { return model_.info(); }
  void Forward(const StepInput& input, KvStorage& storage) override {
    model_.Forward(input, storage);
    clock_->Advance(Ms(10));
  }
  const ColumnBlocks& Logits(int32_t first, int32_t count) override {
    return model_.Logits(first, count);
  }

 private:
  ScriptedModel model_;
  ManualClock* const clock_;
};

class InprocTest : public testing::Test {
 protected:
  void MakeEngine(const EngineOptions& options) {
    auto engine = Engine::Create(
        options,
        std::make_unique<TenMillisecondModel>(options.model_limits(), &clock_),
        &tokenizer_, &clock_, &executor_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  static TimedRequest At(absl::Duration arrival, int32_t prompt_tokens,
                         int32_t output_tokens) {
    return {.arrival = arrival,
            .request = ToRequest({.prompt_tokens = prompt_tokens,
                                  .output_tokens = output_tokens},
                                 ScriptedModel::kVocabSize)};
  }

  std::vector<RequestRecord> Run(std::vector<TimedRequest> requests) {
    InprocOptions options;
    options.sleep = [this](absl::Duration by) {
      sleeps_.push_back(by);
      clock_.Advance(by);
    };
    options.after_step = [this](const StepOutput& output) {
      step_tokens_.push_back(output.report.prefill_tokens +
                             output.report.decode_tokens);
    };
    return RunInProcess(std::move(requests), *engine_, clock_, options);
  }

  ManualClock clock_{absl::UnixEpoch() + absl::Hours(1)};
  SerialExecutor executor_;
  ByteTokenizer tokenizer_{ScriptedModel::kVocabSize};
  std::unique_ptr<Engine> engine_;
  std::vector<absl::Duration> sleeps_;
  std::vector<int32_t> step_tokens_;
};

TEST_F(InprocTest, CountsFromTheScheduledArrival) {
  MakeEngine(ScriptedEngine::Options(/*num_pages=*/64));
  // Steps end at 10, 20, ... The second request comes while the second step
  // runs and is in the third one, which ends at 30. Its tokens are those of 30
  // and 40. The last one finds nobody at work.
  const std::vector<RequestRecord> records =
      Run({At(Ms(100), 4, 1), At(Ms(0), 5, 3), At(Ms(15), 3, 2)});
  EXPECT_THAT(records[1].samples[0], ElementsAre(Ms(10), Ms(20), Ms(30)));
  EXPECT_THAT(records[2].samples[0], ElementsAre(Ms(15), Ms(25)));
  EXPECT_THAT(records[0].samples[0], ElementsAre(Ms(10)));
  EXPECT_EQ(records[2].arrival, Ms(15));
  EXPECT_THAT(sleeps_, ElementsAre(Ms(60)));
  EXPECT_THAT(step_tokens_, ElementsAre(5, 1, 1 + 3, 1, 4));
  EXPECT_TRUE(FirstFailure(records).ok());
}

// A loop that waited for an answer before it sent more would be late, and hide
// the time for which its requests would have waited.
TEST_F(InprocTest, ASlowEngineDoesNotDelayArrivals) {
  EngineOptions options = ScriptedEngine::Options(/*num_pages=*/64);
  options.scheduler.max_batch_sequences = 1;
  MakeEngine(options);
  const std::vector<RequestRecord> records =
      Run({At(Ms(0), 1, 10), At(Ms(1), 1, 10), At(Ms(2), 1, 1)});
  EXPECT_EQ(records[0].samples[0].front(), Ms(10));
  EXPECT_EQ(records[1].samples[0].front(), Ms(110 - 1));
  EXPECT_EQ(records[2].samples[0].front(), Ms(210 - 2));
  EXPECT_THAT(sleeps_, IsEmpty());
}

TEST_F(InprocTest, KeepsWhyARequestFailed) {
  EngineOptions options = ScriptedEngine::Options(/*num_pages=*/64);
  options.scheduler.max_batch_sequences = 2;
  options.queue.max_waiting_requests = 0;
  MakeEngine(options);
  std::vector<TimedRequest> requests = {At(Ms(0), ScriptedEngine::kContext, 1),
                                        At(Ms(0), 2, 100), At(Ms(0), 2, 3),
                                        At(Ms(0), 2, 3)};
  requests[1].request.deadline = clock_.Now() + Ms(25);
  const std::vector<RequestRecord> records = Run(std::move(requests));
  // More tokens than the context has.
  EXPECT_EQ(records[0].status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(records[0].samples[0], IsEmpty());
  // Cut off in the step that begins at 30.
  EXPECT_EQ(records[1].status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(records[1].samples[0], ElementsAre(Ms(10), Ms(20), Ms(30)));
  EXPECT_TRUE(records[2].status.ok());
  // Two live requests are all that may be.
  EXPECT_EQ(records[3].status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(FirstFailure(records).message(), HasSubstr("request 0: "));
}

TEST_F(InprocTest, LeavesTheEngineIdle) {
  MakeEngine(ScriptedEngine::Options(/*num_pages=*/64));
  EXPECT_THAT(Run({}), IsEmpty());
  for (int round = 0; round < 2; ++round) {
    const std::vector<RequestRecord> records = Run({At(Ms(0), 5, 2)});
    EXPECT_THAT(records[0].samples[0], ElementsAre(Ms(10), Ms(20)));
    EXPECT_FALSE(engine_->scheduler().HasWork());
  }
}

}  // namespace
}  // namespace folio
