#include "scheduler/scheduler.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace folio {
namespace {

bool HasExpired(const Sequence& sequence, absl::Time now) {
  return sequence.request->deadline <= now;
}

bool IsStopToken(const Request& request, TokenId token) {
  return std::find(request.stop_tokens.begin(), request.stop_tokens.end(),
                   token) != request.stop_tokens.end();
}

}  // namespace

absl::Status SchedulerOptions::Validate() const {
  if (max_batch_sequences < 1) {
    return absl::InvalidArgumentError(absl::StrCat("max_batch_sequences is ",
                                                   max_batch_sequences,
                                                   "; it must be at least 1"));
  }
  if (max_batch_tokens < max_batch_sequences) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_batch_tokens is ", max_batch_tokens,
        "; it must be at least max_batch_sequences (", max_batch_sequences,
        "), so that every running sequence can get a token in each step"));
  }
  return absl::OkStatus();
}

Scheduler::Scheduler(const SchedulerOptions& options, int32_t context_length,
                     int64_t pool_bytes, KvCache* cache)
    : options_(options),
      context_length_(context_length),
      pool_bytes_(pool_bytes),
      cache_(cache) {
  CHECK(options.Validate().ok()) << options.Validate();
}

Scheduler::~Scheduler() {
  for (Sequence& sequence : running_) cache_->Release(sequence.table);
}

int32_t Scheduler::MaxTokens() const {
  return static_cast<int32_t>(
      std::min<int64_t>(context_length_, cache_->CapacityTokens()));
}

void Scheduler::Add(std::shared_ptr<const Request> request) {
  const int32_t prompt_tokens = static_cast<int32_t>(request->prompt.size());
  CHECK_GE(prompt_tokens, 1);
  CHECK_LT(prompt_tokens, MaxTokens());
  const int32_t limit =
      request->max_tokens.has_value()
          ? std::min(MaxTokens() - prompt_tokens, *request->max_tokens) +
                prompt_tokens
          : MaxTokens();

  const RequestId request_id = request->id;
  const SequenceId id{next_sequence_id_++};
  const absl::Time deadline = request->deadline;
  waiting_.emplace_back(id, std::move(request), /*index=*/0, limit);
  const auto sequence = std::prev(waiting_.end());
  sequences_.emplace(id, sequence);
  const bool is_new = requests_.emplace(request_id, sequence).second;
  CHECK(is_new) << "request id used twice";
  if (deadline != absl::InfiniteFuture()) deadlines_.emplace(deadline, id);
}

bool Scheduler::Abort(RequestId request, FinishReason reason,
                      TokenEvents& events) {
  const auto entry = requests_.find(request);
  if (entry == requests_.end()) return false;
  Finish(entry->second, reason, events);
  return true;
}

void Scheduler::AbortAll(FinishReason reason, TokenEvents& events) {
  while (!running_.empty()) Finish(running_.begin(), reason, events);
  while (!waiting_.empty()) Finish(waiting_.begin(), reason, events);
}

void Scheduler::RequestPreemption(RequestId request) {
  const auto entry = requests_.find(request);
  if (entry == requests_.end()) return;
  entry->second->preempt_requested = entry->second->is_running;
}

// Keeps the books of one Plan: what would be free if the plan so far were
// applied. The sequences it may still run are running_ up to end_; those from
// end_ on it has preempted.
class Scheduler::Planner {
 public:
  Planner(const Scheduler& scheduler, absl::Time now, BatchPlan& plan)
      : scheduler_(scheduler),
        cache_(*scheduler.cache_),
        now_(now),
        plan_(plan),
        end_(scheduler.running_.end()),
        tokens_left_(scheduler.options_.max_batch_tokens),
        sequences_left_(scheduler.options_.max_batch_sequences -
                        scheduler.num_running()),
        pages_free_(cache_.num_free()) {}

  void Run() {
    TakeOutExpired();
    TakeOutRequested();
    for (auto it = scheduler_.running_.begin(); it != end_; ++it) {
      if (!IsOut(*it) && it->num_uncomputed() == 1 && !TakeRunning(it)) break;
    }
    for (auto it = scheduler_.running_.begin(); it != end_; ++it) {
      if (!IsOut(*it) && it->num_uncomputed() > 1 && !TakeRunning(it)) break;
    }
    if (any_preempted_) {
      ListPreempted();
    } else {
      // (Otherwise whoever was preempted stands at the head of the queue, and
      // would get back the pages that it just lost.)
      AdmitWaiting();
    }
  }

 private:
  using Iterator = Queue::const_iterator;

  bool IsOut(const Sequence& sequence) const {
    return sequence.preempt_requested || HasExpired(sequence, now_);
  }

  void TakeOutExpired() {
    for (const auto& [deadline, id] : scheduler_.deadlines_) {
      if (deadline > now_) break;
      plan_.expired.push_back(id);
      const Sequence& sequence = scheduler_.sequence(id);
      pages_free_ += cache_.NumReleasable(sequence.table);
      if (sequence.is_running) ++sequences_left_;
    }
  }

  void TakeOutRequested() {
    for (const Sequence& sequence : scheduler_.running_) {
      if (!sequence.preempt_requested || HasExpired(sequence, now_)) continue;
      any_preempted_ = true;
      pages_free_ += cache_.NumReleasable(sequence.table);
    }
  }

  // Youngest first: each goes to the front of the queue, so that it keeps their
  // order.
  void ListPreempted() {
    bool is_victim = end_ != scheduler_.running_.end();
    for (auto it = scheduler_.running_.end();
         it != scheduler_.running_.begin();) {
      if (it == end_) is_victim = false;
      --it;
      if ((is_victim || it->preempt_requested) && !HasExpired(*it, now_)) {
        plan_.preempted.push_back(it->id);
      }
    }
  }

  // Gives a running sequence its next tokens, as many as tokens and pages
  // allow, and pages of the youngest where there are none. False: the sequence
  // was itself the youngest, and is preempted.
  bool TakeRunning(Iterator it) {
    if (tokens_left_ == 0) return true;
    while (TokensThatFit(*it, pages_free_) == 0) {
      const auto victim = std::prev(end_);
      end_ = victim;
      if (!IsOut(*victim)) PreemptPlanned(*victim);
      if (victim == it) return false;
    }
    Take(*it, pages_free_, /*admitted=*/false);
    return true;
  }

  // How many more tokens' K/V the sequence's pages and `pages` more can hold.
  int64_t TokensThatFit(const Sequence& sequence, int64_t pages) const {
    return (int64_t{sequence.table.num_entries()} + pages) *
               cache_.layout().page_size() -
           sequence.num_computed;
  }

  // Of the free pages, the sequence may take `pages`.
  void Take(const Sequence& sequence, int64_t pages, bool admitted) {
    const int32_t count = static_cast<int32_t>(
        std::min<int64_t>({sequence.num_uncomputed(), tokens_left_,
                           TokensThatFit(sequence, pages)}));
    tokens_left_ -= count;
    pages_free_ -= PagesToAdd(sequence, sequence.num_computed + count);
    plan_.num_tokens += count;
    plan_.sequences.push_back(
        {.id = sequence.id, .count = count, .admitted = admitted});
  }

  int64_t PagesToAdd(const Sequence& sequence, int64_t num_tokens) const {
    return std::max<int64_t>(
        0, cache_.layout().PagesFor(num_tokens) - sequence.table.num_entries());
  }

  // Takes the victim's pages, and what this plan had meant for it.
  void PreemptPlanned(const Sequence& victim) {
    any_preempted_ = true;
    const auto planned = std::find_if(
        plan_.sequences.begin(), plan_.sequences.end(),
        [&](const PlannedSequence& entry) { return entry.id == victim.id; });
    if (planned != plan_.sequences.end()) {
      tokens_left_ += planned->count;
      pages_free_ += PagesToAdd(victim, victim.num_computed + planned->count);
      plan_.num_tokens -= planned->count;
      plan_.sequences.erase(planned);
    }
    pages_free_ += cache_.NumReleasable(victim.table);
  }

  // Running sequences have been served: where tokens and pages are left, each
  // of them has got pages for all the tokens that it has.
  void AdmitWaiting() {
    int64_t pages_promised = 0;  // To those admitted here, beyond this step.
    for (const Sequence& sequence : scheduler_.waiting_) {
      if (HasExpired(sequence, now_)) continue;
      if (tokens_left_ == 0 || sequences_left_ == 0) return;
      const int64_t pages_needed = cache_.PagesInWindow(
          std::min(sequence.num_tokens() + 1, sequence.limit));
      const int64_t pages = pages_free_ - pages_promised;
      if (pages_needed > pages) return;
      Take(sequence, pages, /*admitted=*/true);
      --sequences_left_;
      // (A chunk longer than the window takes more than is needed later.)
      const int64_t pages_taken = pages + pages_promised - pages_free_;
      pages_promised += std::max<int64_t>(0, pages_needed - pages_taken);
    }
  }

  const Scheduler& scheduler_;
  const KvCache& cache_;
  const absl::Time now_;
  BatchPlan& plan_;
  Iterator end_;
  bool any_preempted_ = false;
  int64_t tokens_left_;
  int32_t sequences_left_;
  int64_t pages_free_;  // After what is planned so far.
};

void Scheduler::Plan(absl::Time now, BatchPlan& plan) const {
  plan.Clear();
  Planner(*this, now, plan).Run();
}

void Scheduler::Apply(const BatchPlan& plan, TokenEvents& events) {
  for (SequenceId id : plan.expired) {
    Finish(Find(id), FinishReason::kDeadline, events);
  }
  for (SequenceId id : plan.preempted) Preempt(id);
  for (const PlannedSequence& planned : plan.sequences) {
    if (planned.admitted) Admit(planned.id);
    Sequence& sequence = *Find(planned.id);
    CHECK(cache_->Grow(sequence.table, sequence.num_computed + planned.count))
        << "the plan counted on pages that are not free";
  }
}

void Scheduler::Preempt(SequenceId id) {
  const Queue::iterator sequence = Find(id);
  cache_->Release(sequence->table);
  sequence->num_computed = 0;
  sequence->preempt_requested = false;
  sequence->is_running = false;
  ++sequence->num_preemptions;
  waiting_.splice(waiting_.begin(), running_, sequence);
}

void Scheduler::Admit(SequenceId id) {
  const Queue::iterator sequence = Find(id);
  sequence->is_running = true;
  // So that a step that only goes on allocates nothing.
  sequence->tokens.reserve(sequence->limit);
  cache_->Reserve(sequence->table, sequence->limit);
  running_.splice(running_.end(), waiting_, sequence);
}

void Scheduler::Commit(const BatchPlan& plan, const StepResult& result,
                       TokenEvents& events, BatchReport& report) {
  CHECK_EQ(plan.sequences.size(), result.sequences.size());
  report.prefill_tokens = 0;
  report.decode_tokens = 0;
  for (const PlannedSequence& planned : plan.sequences) {
    Sequence& sequence = *Find(planned.id);
    (sequence.num_uncomputed() > 1 ? report.prefill_tokens
                                   : report.decode_tokens) += planned.count;
    sequence.num_prompt_scored = sequence.PromptScoringRange(planned.count).end;
    sequence.num_computed += planned.count;
  }
  report.sequences_preempted = static_cast<int32_t>(plan.preempted.size());
  ReportSequences(report);
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    CHECK(plan.sequences[i].id == result.sequences[i].id);
    CommitSequence(Find(plan.sequences[i].id), result.sequences[i], events);
  }
}

void Scheduler::CommitSequence(Queue::iterator sequence,
                               const SequenceResult& result,
                               TokenEvents& events) {
  if (result.not_finite) {
    Finish(sequence, FinishReason::kError, events);
    return;
  }
  const Request& request = *sequence->request;
  size_t accepted = 0;
  bool stopped = false;
  for (const TokenId token : result.sampled.tokens) {
    if (stopped || sequence->num_tokens() == sequence->limit) break;
    sequence->tokens.push_back(token);
    ++accepted;
    stopped = IsStopToken(request, token);
  }
  // The last token of a full sequence needs no K/V; a prompt that nothing may
  // follow does need all of its logprobs.
  const bool full = sequence->num_tokens() == sequence->limit &&
                    (accepted > 0 || sequence->num_uncomputed() == 0);

  if (accepted > 0 || !result.prompt.tokens.empty()) {
    TokenEvent& event = events.Append();
    event.request_id = request.id;
    event.sample_index = sequence->sample_index;
    event.sampled = result.sampled;
    event.sampled.Truncate(accepted);
    event.prompt = result.prompt;
  }
  if (stopped || full) {
    Finish(sequence, stopped ? FinishReason::kStop : FinishReason::kLength,
           events);
  } else if (options_.recompute_always && accepted > 0) {
    cache_->Release(sequence->table);
    sequence->num_computed = 0;
  } else {
    cache_->ReleaseBeforeWindow(sequence->table, sequence->num_computed);
  }
}

void Scheduler::Finish(Queue::iterator sequence, FinishReason reason,
                       TokenEvents& events) {
  const Request& request = *sequence->request;
  TokenEvent& last = events.Append();
  last.request_id = request.id;
  last.sample_index = sequence->sample_index;
  last.finish_reason = reason;

  TokenEvent& terminal = events.Append();
  terminal.request_id = request.id;
  terminal.finish_reason = reason;
  terminal.terminal = true;
  terminal.usage = {.prompt_tokens = sequence->num_prompt_tokens(),
                    .generated_tokens = sequence->num_generated(),
                    .preemptions = sequence->num_preemptions};

  cache_->Release(sequence->table);
  deadlines_.erase({request.deadline, sequence->id});
  sequences_.erase(sequence->id);
  requests_.erase(request.id);
  Queue& queue = sequence->is_running ? running_ : waiting_;
  queue.erase(sequence);  // Last: `request` may live in it.
}

void Scheduler::Report(BatchReport& report) const {
  report.prefill_tokens = 0;
  report.decode_tokens = 0;
  report.sequences_preempted = 0;
  ReportSequences(report);
}

void Scheduler::ReportSequences(BatchReport& report) const {
  report.sequences_running = num_running();
  report.sequences_waiting = num_waiting();
  StartReport(*cache_, pool_bytes_, context_length_, report.memory);
  for (const Sequence& sequence : running_) {
    AddToReport(*cache_, sequence.table, sequence.id, sequence.request->id,
                static_cast<int32_t>(
                    cache_->TokensHeld(sequence.table, sequence.num_computed)),
                report.memory);
  }
}

const Sequence* Scheduler::FindRequest(RequestId request) const {
  const auto entry = requests_.find(request);
  return entry == requests_.end() ? nullptr : &*entry->second;
}

Scheduler::Queue::iterator Scheduler::Find(SequenceId id) const {
  const auto entry = sequences_.find(id);
  CHECK(entry != sequences_.end())
      << "no live sequence has id " << static_cast<uint64_t>(id);
  return entry->second;
}

void Scheduler::CheckInvariants() const {
  cache_->allocator().CheckInvariants();
  int64_t pages = 0;
  for (const Sequence& sequence : running_) {
    CHECK_LE(0, sequence.num_computed);
    CHECK_LE(sequence.num_computed, sequence.num_tokens());
    CHECK_LE(sequence.num_tokens(), sequence.limit);
    CHECK_LE(sequence.num_computed, int64_t{sequence.table.num_entries()} *
                                        cache_->layout().page_size());
    CHECK_LE(sequence.table.num_pages(),
             cache_->PagesInWindow(sequence.num_computed));
    CHECK(sequence.is_running);
    pages += sequence.table.num_pages();
  }
  for (const Sequence& sequence : waiting_) {
    CHECK_EQ(sequence.num_computed, 0);
    CHECK_EQ(sequence.table.num_entries(), 0);
    CHECK(!sequence.is_running);
  }
  CHECK_EQ(pages, cache_->allocator().num_in_use());
  CHECK_EQ(sequences_.size(), running_.size() + waiting_.size());
  CHECK_EQ(requests_.size(), sequences_.size());
  CHECK_LE(num_running(), options_.max_batch_sequences);
}

}  // namespace folio
