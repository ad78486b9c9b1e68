#include "runtime/engine/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

// Logits are computed and sampled in tiles of at most so many rows, unless more
// sequences than that can sample in one step: 64 rows of a vocabulary of 50,257
// take 13 MB, while the rows of a whole prompt could take gigabytes.
constexpr int32_t kMinLogitsTile = 64;

// Seeds that the engine draws stay below 2^53, so that clients whose numbers
// are doubles (JSON, JavaScript) can send them back unchanged.
constexpr int kSeedBits = 53;

KvLayout LayoutFor(const EngineOptions& options, const ModelInfo& model) {
  return KvLayout(model.kv_shape, options.page_size);
}

}  // namespace

absl::Status EngineOptions::Validate() const {
  const bool power_of_two = page_size > 0 && (page_size & (page_size - 1)) == 0;
  if (!power_of_two || page_size < 8 || page_size > 128) {
    return absl::InvalidArgumentError(
        absl::StrCat("page size is ", page_size,
                     " tokens; it must be 8, 16, 32, 64 or 128"));
  }
  FOLIO_RETURN_IF_ERROR(queue.Validate());
  FOLIO_RETURN_IF_ERROR(caps.Validate());
  return scheduler.Validate();
}

ModelLimits EngineOptions::model_limits() const {
  return {.max_batch_tokens = scheduler.max_batch_tokens,
          .max_logits_rows =
              std::max(kMinLogitsTile, scheduler.max_batch_sequences),
          .max_sequences = scheduler.max_batch_sequences,
          .page_size = page_size};
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(
    const EngineOptions& options, std::unique_ptr<Model> model,
    const Tokenizer* tokenizer, const Clock* clock, Executor* executor) {
  FOLIO_RETURN_IF_ERROR(options.Validate());
  FOLIO_ASSIGN_OR_RETURN(std::unique_ptr<KvStorage> storage,
                         KvStorage::Create(LayoutFor(options, model->info()),
                                           options.kv_pool_bytes, *executor));
  return std::unique_ptr<Engine>(new Engine(options, std::move(model),
                                            std::move(storage), tokenizer,
                                            clock, executor));
}

Engine::Engine(const EngineOptions& options, std::unique_ptr<Model> model,
               std::unique_ptr<KvStorage> storage, const Tokenizer* tokenizer,
               const Clock* clock, Executor* executor)
    : options_(options),
      model_(std::move(model)),
      storage_(std::move(storage)),
      tokenizer_(tokenizer),
      clock_(clock),
      cache_(storage_->layout(), storage_->num_pages(),
             {.window = model_->info().window,
              .prefix_cache =
                  options.prefix_cache && !options.scheduler.recompute_always,
              .prefix_hash = options.prefix_hash}),
      request_limits_(
          {.vocab_size = model_->info().vocab_size,
           .context_length = model_->info().context_length,
           .pool_tokens = cache_.CapacityTokens(),
           .max_samples = std::min(options.scheduler.max_batch_sequences,
                                   options.caps.max_samples),
           .max_prompt_tokens = options.caps.max_prompt_tokens,
           .max_logprobs = options.caps.max_logprobs}),
      inbox_(options.queue, options.scheduler.max_batch_sequences),
      scheduler_(options.scheduler, model_->info().context_length,
                 storage_->pool_bytes(), &cache_),
      sampler_(executor, model_->info().vocab_size),
      last_load_(load()) {}

absl::Status Engine::Prepare(Request& request) {
  const ModelInfo& model = model_->info();
  if (request.prompt.empty() && model.bos_token.has_value()) {
    request.prompt.push_back(*model.bos_token);
  }
  FOLIO_RETURN_IF_ERROR(request_limits_.Check(request));
  if (!request.stop_strings.empty()) {
    FOLIO_RETURN_IF_ERROR(
        tokenizer_->Encode("", {}).status());  // Is there one?
  }
  request.id = RequestId{next_request_id_++};
  if (!request.sampling.seed.has_value()) {
    const PhiloxBlock block = PhiloxAt(options_.seed_source, /*stream=*/0,
                                       static_cast<uint64_t>(request.id));
    request.sampling.seed =
        (uint64_t{block[0]} << 32 | block[1]) >> (64 - kSeedBits);
  }
  if (!request.ignore_eos) {
    request.stop_tokens.insert(request.stop_tokens.end(),
                               model.eos_tokens.begin(),
                               model.eos_tokens.end());
  }
  FOLIO_RETURN_IF_ERROR(AddMasks(request));
  request.cache_salt = absl::StrCat(model.name, "/", request.tenant);
  return absl::OkStatus();
}

// Of what the parameters rule out. The request may have masks of its own.
absl::Status Engine::AddMasks(Request& request) const {
  FOLIO_RETURN_IF_ERROR(request_limits_.CheckSomethingIsLeft(request));
  SamplingParams& sampling = request.sampling;
  if (!sampling.allowed_tokens.empty()) {
    std::vector<TokenId> allowed = sampling.allowed_tokens;
    std::ranges::sort(allowed);
    const auto same = std::ranges::unique(allowed);
    allowed.erase(same.begin(), same.end());
    request.masks.push_back(MakeAllowedTokensMask(std::move(allowed)));
  }
  if (!sampling.bad_words.empty()) {
    request.masks.push_back(MakeBadWordsMask(sampling.bad_words));
  }
  return absl::OkStatus();
}

absl::Status Engine::Submit(Request request) {
  request.arrival = clock_->Now();
  return inbox_.Submit(std::make_shared<const Request>(std::move(request)));
}

bool Engine::Step(StepOutput& output) {
  output.Clear();
  DrainInbox(output);
  absl::Time commit_start;
  if (scheduler_.HasWork()) StepBatch(output, commit_start);
  AddText(output.events);
  NoteLeft(output.events);
  output.time = clock_->Now();
  if (output.stepped) {
    output.report.commit_duration = output.time - commit_start;
    output.report.duration = output.time - output.report.start;
  }
  output.load = load();
  output.load_changed = output.load != last_load_;
  last_load_ = output.load;
  return scheduler_.HasWork();
}

void Engine::StepBatch(StepOutput& output, absl::Time& commit_start) {
  BatchReport& report = output.report;
  const absl::Time start = clock_->Now();
  scheduler_.Plan(start, plan_);
  scheduler_.Apply(plan_, start, applied_, output.events);
  if (applied_.sequences.empty()) return;
  output.stepped = true;
  report.step = ++num_steps_;
  report.start = start;
  report.plan_duration = clock_->Now() - start;
  commit_start = ForwardAndSample(report);
  const auto stops = [this](const Sequence& sequence, TokenId token) {
    return CompletesStopString(sequence, token);
  };
  scheduler_.Commit(applied_, result_, commit_start, stops, output.events,
                    report);
}

void Engine::DrainInbox(StepOutput& output) {
  inbox_.Take(inbox_contents_);
  for (std::shared_ptr<const Request>& request : inbox_contents_.requests) {
    AddTextStreams(*request);
    scheduler_.Add(std::move(request));
  }
  const absl::Time now = clock_->Now();
  for (const AbortOrder& abort : inbox_contents_.aborts) {
    scheduler_.Abort(abort.request, abort.reason, now, output.events);
  }
  if (!inbox_contents_.flushes.empty()) {
    output.pages_flushed = scheduler_.FlushPrefixCache();
    std::swap(output.flush_callbacks, inbox_contents_.flushes);
  }
  if (inbox_contents_.closed) {
    scheduler_.AbortAll(FinishReason::kShutdown, now, output.events);
    closed_ = true;
  }
  if (inbox_contents_.reports.empty()) return;
  std::swap(output.report_callbacks, inbox_contents_.reports);
  output.state.step = num_steps_;
  output.state.start = now;
  scheduler_.Report(output.state);
}

absl::Time Engine::ForwardAndSample(BatchReport& report) {
  for (const PageCopy& copy : applied_.copies) {
    storage_->CopyPage(copy.from, copy.to);
  }
  const StepInput& input = step_builder_.Build(applied_, scheduler_);
  sampler_.Start(input, step_builder_.sequences(), result_);
  absl::Time last = clock_->Now();
  // From `last` until now; now is `last` from then on.
  const auto lap = [&] {
    const absl::Time before = std::exchange(last, clock_->Now());
    return last - before;
  };
  model_->Forward(input, *storage_);
  report.forward_duration = lap();
  report.sample_duration = absl::ZeroDuration();

  const int32_t num_rows = static_cast<int32_t>(input.logits_rows.size());
  const int32_t tile = options_.model_limits().max_logits_rows;
  for (int32_t first = 0; first < num_rows; first += tile) {
    const int32_t count = std::min(tile, num_rows - first);
    const ColumnBlocks& logits = model_->Logits(first, count);
    report.forward_duration += lap();
    sampler_.SampleTile(logits, first, count, result_);
    report.sample_duration += lap();
  }
  return last;
}

EngineLoad Engine::load() const {
  return {.sequences_running = scheduler_.num_running(),
          .sequences_waiting = scheduler_.num_waiting(),
          .pages_total = cache_.num_pages(),
          .pages_in_use = cache_.num_in_use(),
          .pages_cached = cache_.num_cached(),
          .pages_free = cache_.num_free()};
}

void Engine::AddTextStreams(const Request& request) {
  const auto stop_strings =
      request.stop_strings.empty()
          ? nullptr
          : std::make_shared<const StopStrings>(request.stop_strings);
  std::vector<TextStream>& texts = texts_[request.id];
  texts.reserve(request.n);
  for (int32_t i = 0; i < request.n; ++i) {
    texts.emplace_back(tokenizer_, stop_strings, request.include_stop);
  }
}

bool Engine::CompletesStopString(const Sequence& sequence, TokenId token) {
  const Request& request = *sequence.request;
  TextStream& text = texts_.find(request.id)->second[sequence.sample_index];
  return text.Append(token, sequence.num_generated() >= request.min_tokens);
}

void Engine::AddText(TokenEvents& events) {
  for (size_t i = 0; i < events.size(); ++i) {
    TokenEvent& event = events[i];
    if (event.terminal) continue;
    texts_.find(event.request_id)->second[event.sample_index].Complete(event);
  }
}

// Makes room in the inbox for as much as has left the queue and ended.
void Engine::NoteLeft(const TokenEvents& events) {
  for (const TokenEvent& event : events) {
    if (!event.terminal) continue;
    texts_.erase(event.request_id);
    inbox_.NoteEnded(event.request_id);
  }
  const int64_t num_left = scheduler_.num_tokens_that_left();
  if (num_left == num_tokens_noted_) return;
  inbox_.NoteLeftQueue(num_left - num_tokens_noted_);
  num_tokens_noted_ = num_left;
}

}  // namespace folio
