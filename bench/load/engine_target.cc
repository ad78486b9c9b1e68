#include "bench/load/engine_target.h"

#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "bench/load/report_sample.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/engine_thread.h"
#include "runtime/engine/outbox.h"
#include "runtime/server/finish_status.h"

namespace folio {
namespace {

class EngineTarget final : public Target {
 public:
  EngineTarget(Engine* engine, const Tokenizer* tokenizer)
      : engine_(engine),
        tokenizer_(tokenizer),
        delivering_([this] { Deliver(); }),
        engine_thread_(std::in_place, engine, &outbox_) {}

  ~EngineTarget() override {
    engine_thread_.reset();  // Closes the outbox.
    delivering_.join();
  }

  absl::StatusOr<TargetInfo> Describe() override {
    const ModelInfo& model = engine_->model_info();
    return TargetInfo{.server = "Folio " FOLIO_VERSION ", in this process",
                      .model = model.name,
                      .vocab_size = model.vocab_size,
                      .context_length = model.context_length};
  }

  std::unique_ptr<TargetCall> Start(TargetRequest request,
                                    TargetListener* listener) override;

  bool WatchBatches(std::function<void(const BatchSample&)> on_batch) override {
    std::lock_guard lock(mutex_);
    on_batch_ = std::move(on_batch);
    return true;
  }

  void StopWatching() override {
    std::lock_guard lock(mutex_);
    on_batch_ = nullptr;
  }

 private:
  struct Live {
    std::string name;
    TargetListener* listener;
  };

  absl::StatusOr<Request> ToRequest(TargetRequest request) const;
  // Until the outbox is closed.
  void Deliver();
  void DeliverEvent(const TokenEvent& event);
  void DeliverReport(const BatchReport& report);

  Engine* const engine_;
  const Tokenizer* const tokenizer_;
  Outbox outbox_;
  // Held while listeners are called: a request is known before its first event.
  std::mutex mutex_;
  absl::flat_hash_map<RequestId, Live> live_;
  std::function<void(const BatchSample&)> on_batch_;
  std::thread delivering_;
  std::optional<EngineThread> engine_thread_;
};

class EngineCall final : public TargetCall {
 public:
  EngineCall(Engine* engine, RequestId id) : engine_(engine), id_(id) {}
  void Cancel() override { engine_->Abort(id_); }

 private:
  Engine* const engine_;
  const RequestId id_;
};

// One that was refused, and has had its end.
class RefusedCall final : public TargetCall {
 public:
  void Cancel() override {}
};

absl::StatusOr<Request> EngineTarget::ToRequest(TargetRequest request) const {
  Request result;
  if (const auto* text = std::get_if<std::string>(&request.prompt)) {
    FOLIO_ASSIGN_OR_RETURN(result.prompt,
                           tokenizer_->Encode(*text, {.add_special = true}));
  } else {
    result.prompt = std::get<std::vector<TokenId>>(std::move(request.prompt));
  }
  result.max_tokens = request.max_tokens;
  result.ignore_eos = true;
  result.n = request.n;
  result.tenant = std::move(request.tenant);
  result.priority = request.priority;
  result.deadline = request.deadline;
  return result;
}

std::unique_ptr<TargetCall> EngineTarget::Start(TargetRequest request,
                                                TargetListener* listener) {
  std::string name = request.name;
  absl::StatusOr<Request> made = ToRequest(std::move(request));
  absl::Status status = made.status();
  if (status.ok()) status = engine_->Prepare(*made);
  if (status.ok()) {
    const RequestId id = made->id;
    std::lock_guard lock(mutex_);
    live_.emplace(id, Live{std::move(name), listener});
    status = engine_->Submit(*std::move(made));
    if (status.ok()) return std::make_unique<EngineCall>(engine_, id);
    live_.erase(id);
  }
  listener->OnEnd({.status = status});
  return std::make_unique<RefusedCall>();
}

void EngineTarget::Deliver() {
  StepOutput output;
  while (outbox_.Pop(output)) {
    output.AnswerCallbacks();
    std::lock_guard lock(mutex_);
    if (output.stepped && on_batch_) DeliverReport(output.report);
    for (const TokenEvent& event : output.events) DeliverEvent(event);
  }
}

void EngineTarget::DeliverEvent(const TokenEvent& event) {
  const auto found = live_.find(event.request_id);
  TargetListener* const listener = found->second.listener;
  const std::vector<TokenId>& tokens = event.sampled.tokens;
  if (!tokens.empty() || !event.text.empty()) {
    listener->OnOutput({.sample = event.sample_index,
                        .num_tokens = static_cast<int32_t>(tokens.size()),
                        .tokens = tokens,
                        .text = event.text});
  }
  if (!event.terminal) return;
  live_.erase(found);
  listener->OnEnd({.status = StatusOfFinish(event.finish_reason),
                   .prompt_tokens = event.usage.prompt_tokens,
                   .output_tokens = event.usage.generated_tokens,
                   .cached_tokens = event.usage.cached_tokens,
                   .queue_duration = event.usage.queue_duration});
}

void EngineTarget::DeliverReport(const BatchReport& report) {
  on_batch_(SampleOf(report, [this](RequestId id) {
    const auto found = live_.find(id);
    return found == live_.end() ? "" : found->second.name;
  }));
}

}  // namespace

std::unique_ptr<Target> OpenEngineTarget(Engine* engine,
                                         const Tokenizer* tokenizer) {
  return std::make_unique<EngineTarget>(engine, tokenizer);
}

}  // namespace folio
