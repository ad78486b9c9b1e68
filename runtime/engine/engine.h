// The step loop: requests in, events out, one batch at a time.

#ifndef RUNTIME_ENGINE_ENGINE_H_
#define RUNTIME_ENGINE_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache/kv_cache.h"
#include "cache/kv_storage.h"
#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/base/types.h"
#include "runtime/engine/engine_load.h"
#include "runtime/engine/inbox.h"
#include "runtime/engine/request_limits.h"
#include "runtime/engine/sampler.h"
#include "runtime/engine/step_builder.h"
#include "runtime/engine/step_output.h"
#include "runtime/engine/text_stream.h"
#include "runtime/model/model.h"
#include "runtime/tokenizer/tokenizer.h"
#include "scheduler/scheduler.h"

namespace folio {

struct EngineOptions {
  int64_t kv_pool_bytes = int64_t{256} << 20;
  int32_t page_size = 16;  // Token slots; a power of two from 8 to 128.
  SchedulerOptions scheduler;
  // Keep the K/V of what has been computed for those who ask for the same.
  bool prefix_cache = true;
  // A test hook: how prefixes are hashed.
  PrefixHash prefix_hash = HashTokens;
  QueueLimits queue;
  RequestCaps caps;
  // Where seeds come from for requests that have none.
  uint64_t seed_source = 0;

  absl::Status Validate() const;

  // What the model that this engine will run has to have scratch memory for.
  ModelLimits model_limits() const;
};

// One engine serves one model. The edge may be called by any thread; the loop
// belongs to one thread, which is either an EngineThread or whoever drives the
// engine by hand, as tests and embedders do:
//
//   Request request{.prompt = ...};
//   RETURN_IF_ERROR(engine->Prepare(request));
//   RETURN_IF_ERROR(engine->Submit(std::move(request)));
//   StepOutput output;
//   for (bool live = true; live;) {
//     live = engine->Step(output);
//     ... output.events ...
//   }
class Engine {
 public:
  // `tokenizer`, `clock` and `executor` must outlive the engine. The model must
  // have been made for options.model_limits().
  static absl::StatusOr<std::unique_ptr<Engine>> Create(
      const EngineOptions& options, std::unique_ptr<Model> model,
      const Tokenizer* tokenizer, const Clock* clock, Executor* executor);

  // --- The edge: any thread. ---

  // Checks the request and completes it: gives it its id, a seed where it has
  // none, the model's stop tokens, and a BOS token for an empty prompt.
  // INVALID_ARGUMENT (a FieldError) says what is wrong with it;
  // FAILED_PRECONDITION, that it has stop strings, and the model no tokenizer.
  absl::Status Prepare(Request& request);

  // Hands a prepared request to the loop. From OK on, it gets exactly one
  // terminal event.
  absl::Status Submit(Request request);

  // Ends a request within one step. It still gets its terminal event, unless it
  // has had it.
  void Abort(RequestId request,
             FinishReason reason = FinishReason::kCancelled) {
    inbox_.Abort({.request = request, .reason = reason});
  }

  // `callback` gets the state between two steps, from whoever takes the loop's
  // output (StepOutput::AnswerCallbacks). False: the engine is shutting
  // down, and it won't be called.
  bool AskForReport(ReportCallback callback) {
    return inbox_.AskForReport(std::move(callback));
  }

  // Forgets all prefixes before the next step; cached pages become free.
  // `callback` gets their number, as that of AskForReport gets the state.
  bool FlushPrefixCache(FlushCallback callback = nullptr) {
    return inbox_.FlushPrefixCache(std::move(callback));
  }

  // No more requests; live ones end at the loop's next turn.
  void Close() { inbox_.Close(); }

  const ModelInfo& model_info() const { return model_->info(); }
  const RequestLimits& request_limits() const { return request_limits_; }
  const EngineOptions& options() const { return options_; }

  // --- The loop: one thread. ---

  // One turn: drain the inbox, plan, apply, forward, sample, commit. What it
  // leads to is in `output`. Returns whether requests are still live.
  bool Step(StepOutput& output);

  // The state between turns. O(1).
  EngineLoad load() const;

  // Sleeps until there is something in the inbox.
  void WaitForInbox() { inbox_.Wait(); }

  // Whether Close has been called and every request has had its terminal event.
  bool closed() const { return closed_; }

  // For tests: to look inside between steps, and to force preemptions.
  Scheduler& scheduler() { return scheduler_; }

 private:
  Engine(const EngineOptions& options, std::unique_ptr<Model> model,
         std::unique_ptr<KvStorage> storage, const Tokenizer* tokenizer,
         const Clock* clock, Executor* executor);

  void DrainInbox(StepOutput& output);
  absl::Status AddMasks(Request& request) const;
  void AddTextStreams(const Request& request);
  bool CompletesStopString(const Sequence& sequence, TokenId token);
  // Computes a batch, unless nothing can be computed now; `commit_start` is set
  // when it did.
  void StepBatch(StepOutput& output, absl::Time& commit_start);
  // Returns when it was done.
  absl::Time ForwardAndSample(BatchReport& report);
  void AddText(TokenEvents& events);
  void NoteLeft(const TokenEvents& events);

  const EngineOptions options_;
  const std::unique_ptr<Model> model_;
  const std::unique_ptr<KvStorage> storage_;
  const Tokenizer* const tokenizer_;
  const Clock* const clock_;

  KvCache cache_;  // The loop's; the edge's limits are made of its size.

  // The edge.
  const RequestLimits request_limits_;
  std::atomic<uint64_t> next_request_id_ = 1;
  Inbox inbox_;

  // The loop.
  Scheduler scheduler_;
  StepBuilder step_builder_;
  Sampler sampler_;
  BatchPlan plan_;
  AppliedPlan applied_;
  StepResult result_;
  InboxContents inbox_contents_;
  // One for each sample of a live request.
  absl::flat_hash_map<RequestId, std::vector<TextStream>> texts_;
  // Scheduler::num_tokens_that_left(), as the inbox knows it.
  int64_t num_tokens_noted_ = 0;
  int64_t num_steps_ = 0;
  EngineLoad last_load_;  // As handed out.
  bool closed_ = false;
};

}  // namespace folio

#endif  // RUNTIME_ENGINE_ENGINE_H_
