#include "scheduler/planner.h"

#include <glog/logging.h>

#include <algorithm>
#include <tuple>

namespace folio {
namespace {

// However little time or share is left for prefill, a step computes so many of
// its tokens, so that no prompt waits for ever.
constexpr int32_t kMinPrefillTokens = 16;

// Where the cost model can't tell yet, a prefill beside decodes gets so many.
constexpr int32_t kUntriedPrefillTokens = 32;

}  // namespace

Planner::Planner(const SchedulerOptions* options, const KvCache* cache,
                 const SchedulingPolicy* policy, const CostModel* cost_model)
    : options_(options),
      cache_(cache),
      policy_(policy),
      cost_model_(cost_model),
      pages_(cache) {
  candidates_.reserve(options->max_batch_sequences);
  prefills_.reserve(options->max_batch_sequences);
}

void Planner::Plan(const PlannerInput& input, BatchPlan& plan) {
  input_ = input;
  plan_ = &plan;
  plan.Clear();
  pages_.Reset();
  tokens_left_ = options_->max_batch_tokens;
  sequences_left_ = options_->max_batch_sequences;
  any_preempted_ = false;
  work_ = StepWork();

  TakeOut();
  PlanDecodes();
  PlanPrefills();
  AdmitWaiting();
  GiveRestToPrefills();
}

// Who is in the running, in the order of the policy, and what the others leave
// behind.
void Planner::TakeOut() {
  plan_->expired.assign(input_.expired.begin(), input_.expired.end());
  candidates_.clear();
  pages_reserved_ = 0;
  for (const Sequence* sequence : input_.running) {
    candidates_.push_back({.sequence = sequence});
  }
  const auto before = [this](const Candidate& a, const Candidate& b) {
    return policy_->Before(*a.sequence, *b.sequence);
  };
  if (!std::ranges::is_sorted(candidates_, before)) {
    std::ranges::sort(candidates_, before);
  }
  for (Candidate& candidate : candidates_) {
    const Sequence& sequence = *candidate.sequence;
    if (IsExpired(sequence)) {
      candidate.is_out = true;
      pages_.Release(sequence.table);
      continue;
    }
    sequences_left_ -= sequence.num_samples();
    if (sequence.is_protected()) {
      Reserve(candidate, AheadOf(sequence, sequence.table.num_pages()).needed);
    }
  }
  for (Candidate& candidate : candidates_) {
    if (!candidate.is_out && candidate.sequence->preempt_requested) {
      Preempt(candidate);
    }
  }
}

void Planner::PlanDecodes() {
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    if (candidate.is_out || candidate.sequence->num_uncomputed() > 1) continue;
    if (Secure(i)) Compute(candidates_[i], 1);
  }
}

// Chunks of those that have more than one token to compute. Each gets an equal
// part, and one is kept for newcomers, so that a short prompt need not wait for
// the end of a long one. Where that would make chunks tiny, those whose turn
// was longest ago get larger ones.
void Planner::PlanPrefills() {
  prefill_left_ = PrefillBudget();
  prefills_.clear();
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    if (candidate.is_out || candidate.sequence->num_uncomputed() <= 1) continue;
    prefills_.push_back(i);
  }
  if (prefills_.empty()) return;
  std::ranges::sort(prefills_, [this](size_t a, size_t b) {
    return std::pair(candidates_[a].sequence->prefill_turn, a) <
           std::pair(candidates_[b].sequence->prefill_turn, b);
  });
  const bool any_waits = !policy_->empty();
  const int32_t equal_part =
      prefill_left_ /
      (static_cast<int32_t>(prefills_.size()) + (any_waits ? 1 : 0));
  const int32_t kept = any_waits ? equal_part : 0;
  const int32_t part = std::max(equal_part, kMinPrefillTokens);
  for (const size_t i : prefills_) {
    if (prefill_left_ <= kept) return;
    if (candidates_[i].is_out || !Secure(i)) continue;
    prefill_left_ -=
        Compute(candidates_[i], std::min(part, prefill_left_ - kept));
  }
}

void Planner::GiveRestToPrefills() {
  for (const size_t i : prefills_) {
    if (prefill_left_ == 0) return;
    if (candidates_[i].is_out) continue;
    prefill_left_ -= Compute(candidates_[i], prefill_left_);
  }
}

int32_t Planner::PrefillBudget() const {
  if (plan_->sequences.empty()) return tokens_left_;
  const int32_t share =
      std::max(1, static_cast<int32_t>(options_->max_prefill_share *
                                       options_->max_batch_tokens));
  const int32_t most = std::min(tokens_left_, share);
  return options_->target_itl.has_value() ? TokensWithinTarget(most) : most;
}

// How many more tokens the step may have, if each is one of the chunk of the
// prefill whose turn it is. A bisection, O(log most).
int32_t Planner::TokensWithinTarget(int32_t most) const {
  if (!cost_model_->IsReady()) return std::min(most, kUntriedPrefillTokens);
  most = std::min(most,
                  std::max(kUntriedPrefillTokens,
                           cost_model_->MaxPredictableTokens() - work_.tokens));
  const Sequence* next = nullptr;
  for (const Candidate& candidate : candidates_) {
    const Sequence& sequence = *candidate.sequence;
    if (candidate.is_out || sequence.num_uncomputed() <= 1) continue;
    if (next == nullptr || sequence.prefill_turn < next->prefill_turn) {
      next = &sequence;
    }
  }
  const int64_t depth = next == nullptr ? 0 : next->num_computed;
  const auto fits = [&](int32_t count) {
    StepWork work = work_;
    work.Add(depth, count);
    return cost_model_->Predict(work) <= *options_->target_itl;
  };
  int32_t low = std::min(most, kMinPrefillTokens);
  int32_t high = most;
  while (low < high) {
    const int32_t middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// Makes sure that the candidate can get a page if it needs one, at the cost of
// those that the policy puts last. False: it was itself the last, and is
// preempted.
bool Planner::Secure(size_t i) {
  const Sequence& sequence = *candidates_[i].sequence;
  while (true) {
    const int64_t taken = PagesToTake(sequence, sequence.table.num_entries(),
                                      sequence.num_computed + 1);
    const int64_t reserved = sequence.is_protected() ? 0 : pages_reserved_;
    if (taken == 0 || taken + reserved <= pages_.available()) return true;
    size_t victim = i;
    if (!FindVictim(i, victim)) {
      Preempt(candidates_[i]);
      return false;
    }
    Preempt(candidates_[victim]);
  }
}

// The last candidate behind `for_whom` that may be preempted.
bool Planner::FindVictim(size_t for_whom, size_t& victim) const {
  // For a protected one, any that is not.
  const bool anyone = candidates_[for_whom].sequence->is_protected();
  for (size_t i = candidates_.size(); i-- > (anyone ? 0 : for_whom + 1);) {
    const Candidate& candidate = candidates_[i];
    if (candidate.is_out || candidate.sequence->is_protected()) continue;
    victim = i;
    return true;
  }
  return false;
}

void Planner::Preempt(Candidate& candidate) {
  if (candidate.planned >= 0) Undo(candidate);
  const Sequence& sequence = *candidate.sequence;
  candidate.is_out = true;
  any_preempted_ = true;
  plan_->preempted.push_back(sequence.id);
  pages_.Release(sequence.table);
  sequences_left_ += sequence.num_samples();
  Reserve(candidate, 0);
}

// Sets as many pages aside for it as this, and no longer as many as before.
void Planner::Reserve(Candidate& candidate, int64_t num_pages) {
  pages_reserved_ += num_pages - candidate.reserved;
  candidate.reserved = num_pages;
}

// Takes the candidate out of the plan.
void Planner::Undo(Candidate& candidate) {
  const Sequence& sequence = *candidate.sequence;
  const PlannedSequence planned = plan_->sequences[candidate.planned];
  plan_->sequences.erase(plan_->sequences.begin() + candidate.planned);
  plan_->num_tokens -= planned.count;
  tokens_left_ += planned.count;
  pages_.GiveBack(planned.new_pages);
  if (planned.copies) {
    pages_.Hold(cache_->SlotOf(sequence.table, sequence.num_computed).page);
  }
  for (Candidate& other : candidates_) {
    if (other.planned > candidate.planned) --other.planned;
  }
  candidate.planned = -1;
}

bool Planner::WouldCopy(const Sequence& sequence) const {
  const int64_t entry = sequence.num_computed / cache_->layout().page_size();
  return entry < sequence.table.num_entries() &&
         pages_.NumHolders(sequence.table.pages()[entry]) > 1;
}

int64_t Planner::PagesToTake(const Sequence& sequence, int64_t num_entries,
                             int64_t num_tokens) const {
  return std::max<int64_t>(
             0, cache_->layout().PagesFor(num_tokens) - num_entries) +
         (WouldCopy(sequence) ? 1 : 0);
}

// Plans up to `most` tokens (more) of a candidate, as far as pages and tokens
// last; returns how many.
int32_t Planner::Compute(Candidate& candidate, int32_t most) {
  const Sequence& sequence = *candidate.sequence;
  const KvLayout& layout = cache_->layout();
  const bool is_new = candidate.planned < 0;
  const PlannedSequence so_far = is_new ? PlannedSequence{.id = sequence.id}
                                        : plan_->sequences[candidate.planned];
  // Entries of the table after what has been planned for it.
  const int64_t entries =
      sequence.table.num_entries() + so_far.new_pages - (so_far.copies ? 1 : 0);
  const bool copies = is_new && WouldCopy(sequence);
  const int64_t reserved = sequence.is_protected() ? 0 : pages_reserved_;
  const int64_t free =
      std::max<int64_t>(0, pages_.available() - reserved - (copies ? 1 : 0));
  const int64_t first = sequence.num_computed + so_far.count;
  const int32_t count = static_cast<int32_t>(
      std::min<int64_t>({sequence.num_uncomputed() - so_far.count, tokens_left_,
                         most, (entries + free) * layout.page_size() - first}));
  if (count <= 0) return 0;
  if (is_new) {
    candidate.planned = static_cast<int32_t>(plan_->sequences.size());
    plan_->sequences.push_back(so_far);
  }
  PlannedSequence& planned = plan_->sequences[candidate.planned];
  if (copies) {
    planned.copies = true;
    pages_.Release(cache_->SlotOf(sequence.table, first).page);
  }
  const int32_t new_pages = static_cast<int32_t>(
      std::max<int64_t>(0, layout.PagesFor(first + count) - entries) +
      (copies ? 1 : 0));
  pages_.Take(new_pages);
  // (A chunk longer than the window takes more than is set aside.)
  Reserve(candidate, std::max<int64_t>(0, candidate.reserved - new_pages));
  planned.new_pages += new_pages;
  planned.count += count;
  plan_->num_tokens += count;
  tokens_left_ -= count;
  work_.Add(first, count);
  return count;
}

Planner::Ahead Planner::AheadOf(const Sequence& sequence,
                                int64_t num_held) const {
  const int64_t at_most = cache_->PagesInWindow(sequence.limit);
  if (sequence.is_protected()) {
    // A page that has left the window comes back only if it is not shared; the
    // first sample of several copies the page that it shares with the others.
    int64_t kept = num_held;
    if (cache_->window().has_value() && sequence.is_running) {
      kept = std::ranges::count_if(
          sequence.table.pages().subspan(sequence.table.num_vacated()),
          [this](PageId page) { return cache_->NumHolders(page) == 1; });
    }
    const int64_t all = std::min<int64_t>(
        at_most + (sequence.request->n > 1 ? 1 : 0), cache_->num_pages());
    return {.needed = std::max<int64_t>(0, all - kept)};
  }
  const int64_t needed = cache_->PagesInWindow(
      std::min(sequence.num_tokens() + 1, sequence.limit));
  const int64_t with_watermark =
      std::min(at_most, needed + options_->watermark_pages);
  return {.needed = std::max<int64_t>(0, needed - num_held),
          .watermark = std::max<int64_t>(
              0, with_watermark - std::max(needed, num_held))};
}

// Running sequences have been served. Nobody is admitted in a step that
// preempts: those that were preempted are next, and would get back the pages
// that they just lost.
void Planner::AdmitWaiting() {
  if (any_preempted_) {
    plan_->wait_reason = WaitReason::kPolicy;
    return;
  }
  if (policy_->empty()) return;
  ahead_ = Ahead();
  for (const Candidate& candidate : candidates_) {
    if (candidate.is_out) continue;
    const Sequence& sequence = *candidate.sequence;
    int64_t held = sequence.table.num_pages();
    if (candidate.planned >= 0) {
      const PlannedSequence& planned = plan_->sequences[candidate.planned];
      held += planned.new_pages - (planned.copies ? 1 : 0);
    }
    const Ahead ahead = AheadOf(sequence, held);
    ahead_.needed += ahead.needed;
    ahead_.watermark += ahead.watermark * sequence.num_samples();
  }
  policy_->ForEachWaiting(
      [this](const Sequence& sequence) { return ConsiderWaiting(sequence); });
}

Visit Planner::ConsiderWaiting(const Sequence& sequence) {
  if (IsExpired(sequence)) return Visit::kSkip;
  if (prefill_left_ == 0) {
    plan_->wait_reason = WaitReason::kTokens;
    return Visit::kStop;
  }
  if (sequences_left_ < sequence.num_samples()) {
    plan_->wait_reason = WaitReason::kSequences;
    return Visit::kStop;
  }
  const Ahead ahead = AheadOf(sequence, HoldPrefix(sequence));
  plan_->wait_reason = CheckPages(sequence, ahead);
  if (plan_->wait_reason != WaitReason::kNone) {
    LetGoOfPrefix();
    return Visit::kStop;
  }
  Admit(sequence, ahead);
  return Visit::kAdmit;
}

// Finds what the sequence can take over, in match_, and holds it. Returns how
// many pages that are.
int64_t Planner::HoldPrefix(const Sequence& sequence) {
  if (sequence.request->sampling.prompt_logprobs) {
    match_ = PrefixMatch();
  } else {
    cache_->FindPrefix(sequence.tokens, sequence.request->cache_salt, match_);
  }
  int64_t num_held = 0;
  for (const PageId page : match_.pages) {
    if (page == kNoPage) continue;
    pages_.Hold(page);
    ++num_held;
  }
  return num_held;
}

void Planner::LetGoOfPrefix() {
  for (const PageId page : match_.pages) {
    if (page != kNoPage) pages_.Release(page);
  }
}

// Whether pages for all of its tokens are available, beside those that the
// running ones have yet to take and the watermark, which nobody needs who is
// alone.
WaitReason Planner::CheckPages(const Sequence& sequence,
                               const Ahead& ahead) const {
  const int64_t room = pages_.available() - ahead_.needed - ahead.needed;
  if (room < 0) return WaitReason::kPages;
  if (candidates_.empty() && plan_->sequences.empty()) return WaitReason::kNone;
  const int64_t watermark =
      ahead_.watermark + ahead.watermark * sequence.num_samples();
  return room < watermark ? WaitReason::kWatermark : WaitReason::kNone;
}

// REQUIRES: its prefix is held, and CheckPages found nothing.
void Planner::Admit(const Sequence& sequence, const Ahead& ahead) {
  const KvLayout& layout = cache_->layout();
  const int64_t entries = static_cast<int64_t>(match_.pages.size());
  const int64_t first = match_.num_tokens;
  const int64_t free = pages_.available() - ahead_.needed;
  const int32_t count = static_cast<int32_t>(
      std::min<int64_t>({sequence.num_tokens() - first, prefill_left_,
                         (entries + free) * layout.page_size() - first}));
  const int64_t new_pages =
      std::max<int64_t>(0, layout.PagesFor(first + count) - entries);
  pages_.Take(new_pages);
  ahead_.needed += std::max<int64_t>(0, ahead.needed - new_pages);
  ahead_.watermark += ahead.watermark * sequence.num_samples();
  prefill_left_ -= count;
  tokens_left_ -= count;
  sequences_left_ -= sequence.num_samples();
  plan_->num_tokens += count;
  plan_->sequences.push_back({.id = sequence.id,
                              .count = count,
                              .admitted = true,
                              .cached = match_.num_tokens,
                              .new_pages = static_cast<int32_t>(new_pages),
                              .copies = false});
  work_.Add(first, count);
}

}  // namespace folio
