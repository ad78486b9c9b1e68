#include "bench/load/run.h"

#include <glog/logging.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "bench/load/flight.h"

namespace folio {
namespace {

constexpr absl::Duration kProgressInterval = absl::Milliseconds(200);
// How often at most a target is asked whether it still answers.
constexpr absl::Duration kProbeInterval = absl::Seconds(1);
// Of so many steps at most, and the fullest one, the sequences are kept: they
// take more than all else that is known of a step.
constexpr size_t kMaxMaps = 128;

constexpr char kTurnBefore[] = "the turn before it was not served";

class LoadRun {
 public:
  LoadRun(std::span<const LoadRequest> load, Target& target, RunClock& clock,
          const RunOptions& options)
      : load_(load),
        target_(target),
        clock_(clock),
        options_(options),
        ended_(&clock),
        flights_(load.size()),
        next_turn_(load.size()) {
    result_.records.resize(load.size());
    for (size_t i = 0; i < load.size(); ++i) {
      if (load[i].previous.has_value()) next_turn_[*load[i].previous] = i;
    }
  }

  RunResult Run();

 private:
  enum class Action { kSend, kCancel };
  struct Due {
    absl::Time time;
    Action action;
    size_t index;

    // Of those at one time, in the order of the load.
    bool operator>(const Due& other) const {
      return std::tie(time, index) > std::tie(other.time, other.index);
    }
  };

  bool IsClosed() const { return options_.concurrency > 0; }
  void Schedule();
  void ActOnDue();
  bool CanSend() const {
    return !ready_.empty() && (!IsClosed() || !free_slots_.empty());
  }
  void SendReady();
  void Send(size_t index, absl::Time scheduled);
  Prompt PromptOf(size_t index) const;
  void Cancel(size_t index);
  absl::Time EndOf(size_t index) const {
    const RequestRecord& record = result_.records[index];
    return result_.start + record.arrival + *record.end;
  }
  void TakeEnded();
  void End(size_t index);
  void CountEnded(size_t index);
  // Ends what can't be sent any more, and the turns after it; without effect on
  // what has ended.
  void GiveUp(size_t first, const char* why);
  void BreakOff(absl::Status why);
  void CheckTarget();
  void ReportProgress();
  void WatchBatches();
  void ForgetMaps();
  // Puts batches on the run's clock.
  void AlignBatches();

  const std::span<const LoadRequest> load_;
  Target& target_;
  RunClock& clock_;
  const RunOptions& options_;
  RunResult result_;

  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::deque<std::pair<size_t, absl::Time>> ready_;  // And when they were due.
  std::deque<absl::Time> free_slots_;  // Of a closed loop: since when.
  std::atomic<int64_t> num_tokens_ = 0;
  EndedRequests ended_;
  std::vector<std::unique_ptr<Flight>> flights_;
  std::vector<std::optional<size_t>> next_turn_;
  int64_t num_sent_ = 0;
  int64_t num_live_ = 0;
  int64_t num_ended_ = 0;
  int64_t num_not_served_ = 0;
  bool is_suspicious_ = false;  // A connection broke.
  absl::Time next_probe_ = absl::InfinitePast();
  absl::Time next_progress_ = absl::InfinitePast();

  struct Seen {
    absl::Time time;
    BatchSample sample;
  };
  std::mutex batches_mutex_;
  std::vector<Seen> batches_;
  size_t map_distance_ = 1;
  size_t fullest_ = 0;
};

RunResult LoadRun::Run() {
  WatchBatches();
  result_.start = clock_.Now();
  Schedule();
  const auto num_requests = static_cast<int64_t>(load_.size());
  while (num_ended_ < num_requests) {
    ActOnDue();
    SendReady();
    TakeEnded();
    if (is_suspicious_ && num_ended_ < num_requests) CheckTarget();
    if (options_.interrupted != nullptr && *options_.interrupted) {
      BreakOff(absl::CancelledError("the run was interrupted"));
    }
    ReportProgress();
    if (num_ended_ == num_requests) break;
    const absl::Time next =
        due_.empty() ? absl::InfiniteFuture() : due_.top().time;
    // (What became ready by the end of another is sent at once.)
    if (!CanSend()) clock_.WaitUntil(std::min(next, next_progress_));
  }
  target_.StopWatching();
  AlignBatches();
  return std::move(result_);
}

void LoadRun::Schedule() {
  for (size_t i = 0; i < load_.size(); ++i) {
    RequestRecord& record = result_.records[i];
    record.name = absl::StrCat(options_.name_prefix, i);
    record.tenant = load_[i].tenant;
    record.arrival = load_[i].arrival;
    if (load_[i].previous.has_value()) continue;
    due_.push({result_.start + load_[i].arrival, Action::kSend, i});
  }
  if (!IsClosed()) return;
  for (; !due_.empty(); due_.pop()) {
    ready_.emplace_back(due_.top().index, result_.start);
  }
  free_slots_.assign(
      std::min(static_cast<size_t>(options_.concurrency), load_.size()),
      result_.start);
}

void LoadRun::ActOnDue() {
  const absl::Time now = clock_.Now();
  while (!due_.empty() && due_.top().time <= now) {
    const Due due = due_.top();
    due_.pop();
    if (due.action == Action::kSend) {
      ready_.emplace_back(due.index, due.time);
    } else {
      Cancel(due.index);
    }
  }
}

void LoadRun::Cancel(size_t index) {
  const Flight* const flight = flights_[index].get();
  if (flight != nullptr && flight->call != nullptr) flight->call->Cancel();
}

void LoadRun::SendReady() {
  while (CanSend()) {
    auto [index, scheduled] = ready_.front();
    ready_.pop_front();
    if (IsClosed()) {
      scheduled = std::max(scheduled, free_slots_.front());
      free_slots_.pop_front();
    }
    Send(index, scheduled);
  }
}

void LoadRun::Send(size_t index, absl::Time scheduled) {
  const LoadRequest& load = load_[index];
  RequestRecord& record = result_.records[index];
  record.arrival = scheduled - result_.start;
  auto flight =
      std::make_unique<Flight>(index, scheduled, next_turn_[index].has_value(),
                               &clock_, &record, &num_tokens_, &ended_);
  flight->prompt = PromptOf(index);
  if (load.previous.has_value()) flights_[*load.previous].reset();
  TargetRequest request = {.name = record.name,
                           .prompt = flight->prompt,
                           .max_tokens = load.output_tokens,
                           .n = load.n,
                           .tenant = load.tenant,
                           .priority = load.priority,
                           .read_delay = load.read_delay};
  if (load.deadline.has_value()) request.deadline = scheduled + *load.deadline;
  if (const auto* tokens = std::get_if<std::vector<TokenId>>(&request.prompt)) {
    record.prompt_tokens = static_cast<int32_t>(tokens->size());
  }
  Flight& sent = *(flights_[index] = std::move(flight));
  const absl::Time now = clock_.Now();
  record.n = load.n;
  record.reads_slowly = load.read_delay > absl::ZeroDuration();
  record.sent = now - result_.start;
  result_.send_lags.push_back(now - scheduled);
  ++num_sent_;
  ++num_live_;
  sent.call = target_.Start(std::move(request), &sent);
  if (load.cancel_after.has_value()) {
    due_.push({scheduled + *load.cancel_after, Action::kCancel, index});
  }
}

// The history in front of it, if it has one.
Prompt LoadRun::PromptOf(size_t index) const {
  const LoadRequest& load = load_[index];
  const Flight* const before =
      load.previous.has_value() ? flights_[*load.previous].get() : nullptr;
  if (!load.prompt_text.empty()) {
    if (before == nullptr) return load.prompt_text;
    return absl::StrCat(std::get<std::string>(before->prompt), before->text,
                        load.prompt_text);
  }
  std::vector<TokenId> own = PromptTokens(load, options_.vocab_size);
  if (before == nullptr) return own;
  std::vector<TokenId> tokens = std::get<std::vector<TokenId>>(before->prompt);
  const LoadRequest& load_before = load_[*load.previous];
  const std::vector<TokenId> generated =
      before->tokens.empty()
          ? RandomTokens(~load_before.token_seed, load_before.output_tokens,
                         options_.vocab_size)
          : before->tokens;
  tokens.insert(tokens.end(), generated.begin(), generated.end());
  tokens.insert(tokens.end(), own.begin(), own.end());
  return tokens;
}

void LoadRun::TakeEnded() {
  for (const size_t index : ended_.Take()) {
    --num_live_;
    flights_[index]->call.reset();
    if (IsClosed()) free_slots_.push_back(EndOf(index));
    End(index);
  }
}

void LoadRun::End(size_t index) {
  CountEnded(index);
  const RequestRecord& record = result_.records[index];
  const std::optional<size_t> next = next_turn_[index];
  const bool is_needed = next.has_value() && record.status.ok() &&
                         result_.broke_off.ok();  // By the next turn's prompt.
  if (is_needed) {
    due_.push({EndOf(index) + load_[*next].think_time, Action::kSend, *next});
    return;
  }
  flights_[index].reset();
  if (next.has_value()) GiveUp(*next, kTurnBefore);
}

void LoadRun::CountEnded(size_t index) {
  RequestRecord& record = result_.records[index];
  const LoadRequest& load = load_[index];
  ++num_ended_;
  if (!record.status.ok()) ++num_not_served_;
  // (What could not be sent, since the turn before it has ended so, too.)
  record.end_was_asked_for =
      (!record.sent.has_value() && load.previous.has_value() &&
       result_.records[*load.previous].end_was_asked_for) ||
      (load.cancel_after.has_value() && absl::IsCancelled(record.status)) ||
      (load.deadline.has_value() && absl::IsDeadlineExceeded(record.status));
  is_suspicious_ |= absl::IsUnavailable(record.status);
}

void LoadRun::GiveUp(size_t first, const char* why) {
  for (std::optional<size_t> turn = first; turn.has_value();
       turn = next_turn_[*turn], why = kTurnBefore) {
    RequestRecord& record = result_.records[*turn];
    if (!record.status.ok()) return;
    record.status = absl::AbortedError(absl::StrCat("not sent: ", why));
    // A later turn has no time of its own in the load.
    if (load_[*turn].previous.has_value()) {
      record.arrival = clock_.Now() - result_.start;
    }
    CountEnded(*turn);
  }
}

void LoadRun::BreakOff(absl::Status why) {
  if (!result_.broke_off.ok()) return;
  result_.broke_off = std::move(why);
  ready_.clear();
  due_ = {};
  for (size_t i = 0; i < load_.size(); ++i) {
    const bool is_sent = result_.records[i].sent.has_value();
    if (!is_sent) {
      GiveUp(i, "the run broke off");
    } else {
      Cancel(i);
    }
  }
}

void LoadRun::CheckTarget() {
  if (clock_.Now() < next_probe_) return;
  is_suspicious_ = false;
  const absl::Status status = target_.Describe().status();
  next_probe_ = clock_.Now() + kProbeInterval;
  if (!status.ok()) BreakOff(status);
}

void LoadRun::ReportProgress() {
  const absl::Time now = clock_.Now();
  if (now < next_progress_) return;
  next_progress_ = now + kProgressInterval;
  if (!options_.on_progress) return;
  options_.on_progress({.total = static_cast<int64_t>(load_.size()),
                        .sent = num_sent_,
                        .live = num_live_,
                        .ended = num_ended_,
                        .not_served = num_not_served_,
                        .tokens = num_tokens_,
                        .elapsed = now - result_.start});
}

void LoadRun::WatchBatches() {
  target_.WatchBatches([this](const BatchSample& sample) {
    const absl::Time now = clock_.Now();
    std::lock_guard lock(batches_mutex_);
    batches_.push_back({now, sample});
    ForgetMaps();
  });
}

// Keeps those of steps at even distances, of the fullest and of the last one.
void LoadRun::ForgetMaps() {
  const size_t last = batches_.size() - 1;
  const auto forget = [this](size_t step) {
    if (step % map_distance_ != 0 && step != fullest_) {
      batches_[step].sample.sequences = {};
    }
  };
  if (last > 0) forget(last - 1);
  if (batches_[last].sample.pages_in_use >
      batches_[fullest_].sample.pages_in_use) {
    forget(std::exchange(fullest_, last));
  }
  if (last / map_distance_ < kMaxMaps) return;
  map_distance_ *= 2;
  for (size_t step = 0; step < last; ++step) forget(step);
}

// The clocks differ by what a report took to come, at least; the fastest took
// nearly nothing.
void LoadRun::AlignBatches() {
  std::lock_guard lock(batches_mutex_);
  absl::Duration offset = absl::InfiniteDuration();
  for (const Seen& seen : batches_) {
    offset = std::min(offset,
                      seen.time - (seen.sample.start + seen.sample.duration));
  }
  for (Seen& seen : batches_) {
    result_.batches.push_back(
        {.start = seen.sample.start + offset - result_.start,
         .sample = std::move(seen.sample)});
  }
}

}  // namespace

RunResult Run(std::span<const LoadRequest> load, Target& target,
              RunClock& clock, const RunOptions& options) {
  return LoadRun(load, target, clock, options).Run();
}

}  // namespace folio
