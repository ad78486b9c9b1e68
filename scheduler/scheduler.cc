#include "scheduler/scheduler.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace folio {
namespace {

bool IsStopToken(const Request& request, TokenId token) {
  return std::ranges::find(request.stop_tokens, token) !=
         request.stop_tokens.end();
}

std::unique_ptr<SchedulingPolicy> MakePolicy(const SchedulerOptions& options) {
  const absl::Status status = options.Validate();
  CHECK(status.ok()) << status;
  return FindSchedulingPolicy(options.policy)->make(options);
}

// From `begin` to `end`, where both have been reached.
absl::Duration Between(absl::Time begin, absl::Time end) {
  if (begin == absl::InfiniteFuture() || end == absl::InfiniteFuture()) {
    return absl::ZeroDuration();
  }
  return std::max(end - begin, absl::ZeroDuration());
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, int32_t context_length,
                     int64_t pool_bytes, KvCache* cache)
    : options_(options),
      context_length_(context_length),
      cache_(cache),
      reporter_(cache, pool_bytes, context_length),
      policy_(MakePolicy(options)),
      planner_(std::make_unique<Planner>(&options_, cache, policy_.get(),
                                         &cost_model_)) {
  running_.reserve(options.max_batch_sequences);
}

Scheduler::~Scheduler() {
  for (Sequence* sequence : running_) cache_->Release(sequence->table);
}

int32_t Scheduler::MaxTokens() const {
  return static_cast<int32_t>(
      std::min<int64_t>(context_length_, cache_->CapacityTokens()));
}

void Scheduler::Add(std::shared_ptr<const Request> request) {
  const int32_t prompt_tokens = static_cast<int32_t>(request->prompt.size());
  CHECK_GE(prompt_tokens, 1);
  CHECK_LT(prompt_tokens, MaxTokens());
  CHECK_GE(request->n, 1);
  CHECK_LE(request->n, options_.max_batch_sequences);
  const int32_t limit =
      request->max_tokens.has_value()
          ? std::min(MaxTokens() - prompt_tokens, *request->max_tokens) +
                prompt_tokens
          : MaxTokens();

  if (!HasWork()) step_start_ = absl::InfinitePast();
  auto [entry, is_new] =
      requests_.emplace(request->id, std::make_unique<LiveRequest>(request));
  CHECK(is_new) << "request id used twice";
  LiveRequest& live = *entry->second;
  const SequenceId id{next_sequence_id_++};
  auto sequence = std::make_unique<Sequence>(id, &live, next_arrival_++, limit);
  live.sequences.reserve(request->n);
  live.sequences.push_back(id);
  policy_->Push(*sequence);
  ++num_waiting_;
  sequences_.emplace(id, std::move(sequence));
  if (request->deadline != absl::InfiniteFuture()) {
    deadlines_.emplace(request->deadline, request->id);
  }
}

bool Scheduler::Abort(RequestId request, FinishReason reason, absl::Time now,
                      TokenEvents& events) {
  const auto entry = requests_.find(request);
  if (entry == requests_.end()) return false;
  End(*entry->second, reason, now, events);
  return true;
}

void Scheduler::AbortAll(FinishReason reason, absl::Time now,
                         TokenEvents& events) {
  std::vector<RequestId> ids;
  for (const auto& [id, live] : requests_) ids.push_back(id);
  std::ranges::sort(ids);
  for (const RequestId id : ids) Abort(id, reason, now, events);
}

void Scheduler::RequestPreemption(RequestId request) {
  const auto entry = requests_.find(request);
  if (entry == requests_.end()) return;
  for (const SequenceId id : entry->second->sequences) {
    Sequence& sequence = *Find(id);
    sequence.preempt_requested = sequence.is_running;
  }
}

void Scheduler::Plan(absl::Time now, BatchPlan& plan) const {
  std::vector<RequestId> expired;
  for (const auto& [deadline, id] : deadlines_) {
    if (deadline > now) break;
    expired.push_back(id);
  }
  planner_->Plan({.now = now, .running = running_, .expired = expired}, plan);
}

void Scheduler::Apply(const BatchPlan& plan, absl::Time now,
                      AppliedPlan& applied, TokenEvents& events) {
  applied.Clear();
  ++num_steps_;
  if (step_start_ == absl::InfinitePast()) step_start_ = now;
  for (const RequestId id : plan.expired) {
    Abort(id, FinishReason::kDeadline, now, events);
  }
  for (const SequenceId id : plan.preempted) Preempt(*Find(id));
  // Before any page is allocated, which could evict one that is to be shared.
  for (const PlannedSequence& planned : plan.sequences) {
    if (planned.admitted) Admit(*Find(planned.id), planned.cached, now);
  }
  for (const PlannedSequence& planned : plan.sequences) {
    Sequence& sequence = *Find(planned.id);
    if (cache_->NeedsCopy(sequence.table, sequence.num_computed)) {
      applied.copies.push_back(
          cache_->CopyOnWrite(sequence.table, sequence.num_computed));
    }
    CHECK(cache_->Grow(sequence.table, sequence.num_computed + planned.count))
        << "the plan counted on pages that are not available";
    applied.sequences.push_back({.id = planned.id, .count = planned.count});
    applied.work.Add(sequence.num_computed, planned.count);
    if (planned.count < sequence.num_uncomputed()) {
      sequence.prefill_turn = num_steps_;
    }
    if (sequence.num_forks_due > 0 && sequence.SamplesAfter(planned.count)) {
      Fork(sequence, applied);
    }
  }
  applied.num_preempted = static_cast<int32_t>(plan.preempted.size());
  applied.wait_reason = plan.wait_reason;
}

void Scheduler::Preempt(Sequence& sequence) {
  RemoveRunning(sequence);
  cache_->Release(sequence.table);
  sequence.num_computed = 0;
  if (!sequence.preempt_requested) ++sequence.num_preemptions_for_others;
  sequence.preempt_requested = false;
  ++sequence.live->usage.preemptions;
  policy_->Push(sequence);
  ++num_waiting_;
}

void Scheduler::Admit(Sequence& sequence, int32_t num_cached, absl::Time now) {
  policy_->Remove(sequence);
  --num_waiting_;
  AddRunning(sequence);
  // So that a step that only goes on allocates nothing.
  sequence.tokens.reserve(sequence.limit);
  cache_->Reserve(sequence.table, sequence.limit);
  if (!sequence.request->sampling.prompt_logprobs) {
    sequence.num_computed = cache_->AttachPrefix(
        sequence.table, sequence.tokens, sequence.request->cache_salt);
  }
  CHECK_EQ(sequence.num_computed, num_cached);
  sequence.prefill_turn = num_steps_;
  LiveRequest& live = *sequence.live;
  if (live.was_admitted()) return;
  policy_->ChargePrompt(sequence);
  num_tokens_that_left_ += live.usage.prompt_tokens;
  live.first_admitted = now;
  live.usage.cached_tokens = num_cached;
}

void Scheduler::AddRunning(Sequence& sequence) {
  sequence.is_running = true;
  running_.push_back(&sequence);
}

void Scheduler::RemoveRunning(Sequence& sequence) {
  sequence.is_running = false;
  running_.erase(std::ranges::find(running_, &sequence));
}

// The first sequence's pages hold all of the prompt once this step is done;
// those of the others are the same.
void Scheduler::Fork(const Sequence& first, AppliedPlan& applied) {
  LiveRequest& live = *first.live;
  for (int32_t index = 1; index < first.request->n; ++index) {
    const SequenceId id{next_sequence_id_++};
    auto fork = std::make_unique<Sequence>(id, first, index);
    fork->tokens.reserve(fork->limit);
    cache_->Reserve(fork->table, fork->limit);
    cache_->Fork(first.table, fork->table);
    fork->num_computed = first.num_tokens();
    fork->num_prompt_scored = first.num_prompt_tokens();
    AddRunning(*fork);
    live.sequences.push_back(id);
    applied.sequences.push_back({.id = id, .count = 0});
    sequences_.emplace(id, std::move(fork));
  }
  Find(first.id)->num_forks_due = 0;
}

void Scheduler::Commit(const AppliedPlan& applied, const StepResult& result,
                       absl::Time now, StopRule stops, TokenEvents& events,
                       BatchReport& report) {
  CHECK_EQ(applied.sequences.size(), result.sequences.size());
  report.prefill_tokens = 0;
  report.decode_tokens = 0;
  report.prompt_tokens = 0;
  report.generated_tokens = 0;
  report.times_to_first_token.clear();
  for (const AppliedSequence& entry : applied.sequences) {
    Sequence& sequence = *Find(entry.id);
    (sequence.num_uncomputed() > 1 ? report.prefill_tokens
                                   : report.decode_tokens) += entry.count;
    if (sequence.CompletesPrompt(entry.count)) {
      report.prompt_tokens += sequence.num_prompt_tokens();
    }
    sequence.num_prompt_scored =
        std::max(sequence.num_prompt_scored,
                 sequence.PromptScoringRange(entry.count).end);
    sequence.num_computed += entry.count;
    CountPages(sequence);
  }
  report.sequences_preempted = applied.num_preempted;
  report.wait_reason = applied.wait_reason;
  report.predicted_duration = cost_model_.IsReady()
                                  ? cost_model_.Predict(applied.work)
                                  : absl::ZeroDuration();
  report.commit_interval = now - step_start_;
  cost_model_.Observe(applied.work, report.commit_interval);
  FillCounters(report);
  ReportSequences(report);
  const CommitScope scope{now, stops, events, report};
  for (size_t i = 0; i < applied.sequences.size(); ++i) {
    CHECK(applied.sequences[i].id == result.sequences[i].id);
    // (A sample whose logits are no numbers ends the others with it.)
    Sequence* const sequence = FindLive(applied.sequences[i].id);
    if (sequence == nullptr) continue;
    CommitSequence(*sequence, result.sequences[i], scope);
  }
  step_start_ = now;
}

void Scheduler::CommitSequence(Sequence& sequence, const SequenceResult& result,
                               const CommitScope& scope) {
  if (result.not_finite) {
    End(*sequence.live, FinishReason::kError, scope.now, scope.events);
    return;
  }
  cache_->RegisterPrefix(
      sequence.table, std::span(sequence.tokens).first(sequence.num_computed),
      sequence.request->cache_salt);
  const bool sampled = !result.sampled.tokens.empty();
  const bool stopped = TakeSampled(sequence, result, scope) || result.exhausted;
  // The last token of a full sequence needs no K/V; a prompt that nothing may
  // follow does need all of its logprobs.
  const bool full = sequence.num_tokens() == sequence.limit &&
                    (sampled || sequence.num_uncomputed() == 0);
  if (stopped || full) {
    Finish(sequence, stopped ? FinishReason::kStop : FinishReason::kLength,
           scope.now, scope.events);
  } else if (options_.recompute_always && sampled) {
    cache_->Release(sequence.table);
    sequence.num_computed = 0;
  } else {
    cache_->ReleaseBeforeWindow(sequence.table, sequence.num_computed);
  }
}

bool Scheduler::TakeSampled(Sequence& sequence, const SequenceResult& result,
                            const CommitScope& scope) {
  const Request& request = *sequence.request;
  size_t accepted = 0;
  bool stopped = false;
  for (const TokenId token : result.sampled.tokens) {
    if (stopped || sequence.num_tokens() == sequence.limit) break;
    sequence.tokens.push_back(token);
    ++accepted;
    for (const auto& mask : sequence.masks) mask->Advance(token);
    // (`stops` sees every token.)
    stopped = scope.stops(sequence, token) || IsStopToken(request, token);
  }
  if (accepted > 0) {
    LiveRequest& live = *sequence.live;
    if (live.first_token == absl::InfiniteFuture()) {
      live.first_token = scope.now;
      scope.report.times_to_first_token.push_back(
          Between(request.arrival, scope.now));
    }
    live.usage.generated_tokens += static_cast<int32_t>(accepted);
    scope.report.generated_tokens += static_cast<int32_t>(accepted);
    policy_->ChargeSampled(sequence, static_cast<int32_t>(accepted));
  }
  if (accepted > 0 || !result.prompt.tokens.empty()) {
    TokenEvent& event = scope.events.Append();
    event.request_id = request.id;
    event.sample_index = sequence.sample_index;
    event.sampled = result.sampled;
    event.sampled.Truncate(accepted);
    event.prompt = result.prompt;
  }
  return stopped;
}

void Scheduler::End(LiveRequest& live, FinishReason reason, absl::Time now,
                    TokenEvents& events) {
  // The last one takes `live` with it.
  const std::vector<SequenceId> ids = live.sequences;
  for (const SequenceId id : ids) Finish(*Find(id), reason, now, events);
}

void Scheduler::Finish(Sequence& sequence, FinishReason reason, absl::Time now,
                       TokenEvents& events) {
  LiveRequest& live = *sequence.live;
  const Request& request = *live.request;
  // With it end those that were not forked from it yet.
  for (int32_t i = 0; i < sequence.num_samples(); ++i) {
    TokenEvent& last = events.Append();
    last.request_id = request.id;
    last.sample_index = sequence.sample_index + i;
    last.finish_reason = reason;
  }
  if (sequence.is_running) {
    RemoveRunning(sequence);
    cache_->Release(sequence.table);
  } else {
    policy_->Remove(sequence);
    --num_waiting_;
  }
  std::erase(live.sequences, sequence.id);
  sequences_.erase(sequence.id);
  if (live.sequences.empty()) FinishRequest(live, reason, now, events);
}

void Scheduler::FinishRequest(LiveRequest& live, FinishReason reason,
                              absl::Time now, TokenEvents& events) {
  const Request& request = *live.request;
  if (!live.was_admitted()) num_tokens_that_left_ += live.usage.prompt_tokens;
  TokenEvent& terminal = events.Append();
  terminal.request_id = request.id;
  terminal.finish_reason = reason;
  terminal.terminal = true;
  terminal.usage = live.usage;
  terminal.usage.queue_duration =
      Between(request.arrival, std::min(live.first_admitted, now));
  terminal.usage.prefill_duration =
      Between(live.first_admitted, std::min(live.first_token, now));
  terminal.usage.decode_duration = Between(live.first_token, now);
  deadlines_.erase({request.deadline, request.id});
  requests_.erase(request.id);  // Last: `request` may live in it.
}

void Scheduler::Report(BatchReport& report) {
  report.prefill_tokens = 0;
  report.decode_tokens = 0;
  report.prompt_tokens = 0;
  report.generated_tokens = 0;
  report.times_to_first_token.clear();
  report.sequences_preempted = 0;
  report.wait_reason = WaitReason::kNone;
  report.prefix_query_tokens = 0;
  report.prefix_hit_tokens = 0;
  report.pages_evicted = 0;
  report.pages_copied = 0;
  report.predicted_duration = absl::ZeroDuration();
  report.commit_interval = absl::ZeroDuration();
  ReportSequences(report);
}

// What has been counted since the last step.
void Scheduler::FillCounters(BatchReport& report) {
  const CacheCounters& now = cache_->counters();
  const auto since = [](int64_t total, int64_t before) {
    return static_cast<int32_t>(total - before);
  };
  report.prefix_query_tokens =
      since(now.prefix_query_tokens, reported_.prefix_query_tokens);
  report.prefix_hit_tokens =
      since(now.prefix_hit_tokens, reported_.prefix_hit_tokens);
  report.pages_evicted = since(now.pages_evicted, reported_.pages_evicted);
  report.pages_copied = since(now.pages_copied, reported_.pages_copied);
  reported_ = now;
}

void Scheduler::ReportSequences(BatchReport& report) {
  report.sequences_running = num_running();
  report.sequences_waiting = num_waiting();
  reporter_.Start(report.memory);
  for (const Sequence* sequence : running_) {
    reporter_.Add(sequence->table, sequence->id, sequence->request->id,
                  sequence->sample_index, sequence->num_computed,
                  report.memory);
  }
}

// Adds up, over the sequences of a step, the pages of its request.
void Scheduler::CountPages(const Sequence& sequence) {
  LiveRequest& live = *sequence.live;
  if (live.pages_step != num_steps_) {
    live.pages_step = num_steps_;
    live.pages = 0;
  }
  live.pages += sequence.table.num_pages();
  live.usage.peak_pages = std::max(live.usage.peak_pages, live.pages);
}

const Sequence* Scheduler::FindRequest(RequestId request) const {
  const auto entry = requests_.find(request);
  return entry == requests_.end() ? nullptr
                                  : Find(entry->second->sequences.front());
}

Sequence* Scheduler::FindLive(SequenceId id) const {
  const auto entry = sequences_.find(id);
  return entry == sequences_.end() ? nullptr : entry->second.get();
}

Sequence* Scheduler::Find(SequenceId id) const {
  Sequence* const sequence = FindLive(id);
  CHECK(sequence != nullptr)
      << "no live sequence has id " << static_cast<uint64_t>(id);
  return sequence;
}

void Scheduler::CheckInvariants() const {
  cache_->CheckInvariants();
  int64_t pages = 0;
  int32_t num_samples = 0;
  int32_t num_waiting_seen = 0;
  for (const auto& [id, sequence] : sequences_) {
    CHECK_LE(0, sequence->num_computed);
    CHECK_LE(sequence->num_computed, sequence->num_tokens());
    CHECK_LE(sequence->num_tokens(), sequence->limit);
    CHECK_LE(sequence->num_computed, int64_t{sequence->table.num_entries()} *
                                         cache_->layout().page_size());
    CHECK_LE(sequence->table.num_pages(),
             cache_->PagesInWindow(sequence->num_computed));
    CHECK_LE(sequence->num_preemptions_for_others, Sequence::kMaxPreemptions);
    pages += sequence->table.num_pages();
    if (sequence->is_running) {
      num_samples += sequence->num_samples();
    } else {
      ++num_waiting_seen;
      CHECK_EQ(sequence->num_computed, 0);
      CHECK_EQ(sequence->table.num_entries(), 0);
    }
  }
  CHECK_EQ(pages - cache_->num_in_use(), cache_->NumDuplicatesSaved());
  CHECK_EQ(num_waiting_seen, num_waiting_);
  CHECK_EQ(sequences_.size(), running_.size() + num_waiting_);
  CHECK_LE(requests_.size(), sequences_.size());
  CHECK_LE(num_samples, options_.max_batch_sequences);
}

}  // namespace folio
