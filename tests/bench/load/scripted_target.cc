#include "tests/bench/load/scripted_target.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace folio {

Script Steady(const TargetRequest& request, absl::Duration first,
              absl::Duration next) {
  Script script;
  for (int32_t i = 0; i < request.max_tokens; ++i) {
    script.messages.push_back({.time = first + i * next});
  }
  script.end = script.messages.back().time;
  return script;
}

class ScriptedTarget::Call final : public TargetCall {
 public:
  Call(ScriptedTarget* target, size_t index) : target_(target), index_(index) {}

  ~Call() override {
    CHECK(target_->listeners_[index_] == nullptr)
        << "the call of " << target_->seen_[index_].request.name
        << " is dropped before its end";
  }

  void Cancel() override { target_->Cancel(index_); }

 private:
  ScriptedTarget* const target_;
  const size_t index_;
};

ScriptedTarget::ScriptedTarget(
    VirtualRunClock* clock, int32_t num_servers,
    std::function<Script(const TargetRequest&)> script)
    : clock_(clock), script_(std::move(script)), num_free_(num_servers) {}

absl::StatusOr<TargetInfo> ScriptedTarget::Describe() {
  ++num_describes_;
  if (!answer_.ok()) return answer_;
  return TargetInfo{.server = "scripted"};
}

std::unique_ptr<TargetCall> ScriptedTarget::Start(TargetRequest request,
                                                  TargetListener* listener) {
  const size_t index = seen_.size();
  scripts_.push_back(script_(request));
  listeners_.push_back(listener);
  seen_.push_back({.request = std::move(request), .sent = clock_->Now()});
  max_live_ = std::max(max_live_, ++num_live_);
  auto call = std::make_unique<Call>(this, index);
  if (!answer_.ok() || scripts_[index].is_refused) {
    End(index, answer_.ok() ? scripts_[index].status
                            : absl::UnavailableError("connection refused"));
    return call;
  }
  const absl::Time deadline = seen_[index].request.deadline;
  if (deadline < absl::InfiniteFuture()) {
    clock_->At(std::max(deadline, clock_->Now()), [this, index] {
      End(index, absl::DeadlineExceededError("its deadline has passed"));
    });
  }
  queue_.push_back(index);
  Serve();
  return call;
}

void ScriptedTarget::Serve() {
  while (num_free_ > 0 && !queue_.empty()) {
    const size_t index = queue_.front();
    queue_.pop_front();
    if (listeners_[index] == nullptr) continue;
    --num_free_;
    Begin(index);
  }
}

void ScriptedTarget::Begin(size_t index) {
  const absl::Time now = clock_->Now();
  seen_[index].service = now;
  for (size_t i = 0; i < scripts_[index].messages.size(); ++i) {
    clock_->At(now + scripts_[index].messages[i].time,
               [this, index, i] { Say(index, scripts_[index].messages[i]); });
  }
  clock_->At(now + scripts_[index].end,
             [this, index] { End(index, scripts_[index].status); });
}

void ScriptedTarget::Say(size_t index, const Script::Message& message) {
  if (listeners_[index] == nullptr) return;
  for (int32_t i = 0; i < message.num_tokens; ++i) {
    seen_[index].tokens.push_back({clock_->Now(), message.sample});
  }
  listeners_[index]->OnOutput({.sample = message.sample,
                               .num_tokens = message.num_tokens,
                               .tokens = message.tokens,
                               .text = message.text});
}

void ScriptedTarget::End(size_t index, absl::Status status) {
  TargetListener* const listener = std::exchange(listeners_[index], nullptr);
  if (listener == nullptr) return;
  Seen& seen = seen_[index];
  const Script& script = scripts_[index];
  seen.end = clock_->Now();
  seen.status = status;
  --num_live_;
  TargetEnd end{.status = std::move(status),
                .prompt_tokens = script.told_prompt_tokens,
                .output_tokens = script.told_output_tokens};
  if (seen.service.has_value()) {
    ++num_free_;
    if (script.tells_queue) end.queue_duration = *seen.service - seen.sent;
  }
  listener->OnEnd(std::move(end));
  Serve();
}

void ScriptedTarget::Cancel(size_t index) {
  const absl::Status status = absl::CancelledError("cancelled by the client");
  if (cancel_delay_ == absl::ZeroDuration()) return End(index, status);
  clock_->At(clock_->Now() + cancel_delay_,
             [this, index, status] { End(index, status); });
}

void ScriptedTarget::EndAll(const absl::Status& status) {
  queue_.clear();
  for (size_t i = 0; i < seen_.size(); ++i) End(i, status);
}

bool ScriptedTarget::WatchBatches(
    std::function<void(const BatchSample&)> on_batch) {
  on_batch_ = std::move(on_batch);
  return true;
}

void ScriptedTarget::StopWatching() { on_batch_ = nullptr; }

void ScriptedTarget::AddBatch(absl::Time time, BatchSample sample) {
  clock_->At(time, [this, sample = std::move(sample)] {
    if (on_batch_ != nullptr) on_batch_(sample);
  });
}

}  // namespace folio
