#include "tests/simulation/engine_simulation.h"

#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/base/philox.h"
#include "tests/support/scripted_model.h"

namespace folio {
namespace {

constexpr absl::Duration kStepDuration = absl::Milliseconds(10);

// All pages of a tenant collide.
uint64_t ConstantHash(uint64_t before, std::span<const TokenId> tokens) {
  return tokens.size() == 1 ? HashTokens(before, tokens) : 42;
}

bool IsEnding(FinishReason reason) {
  return reason == FinishReason::kStop || reason == FinishReason::kLength;
}

}  // namespace

EngineSimulation::EngineSimulation(uint64_t seed, EventCounts* counts)
    : seed_(seed),
      counts_(counts),
      clock_(absl::UnixEpoch()),
      tokenizer_(ScriptedModel::kVocabSize) {
  const EngineOptions options = RandomOptions();
  context_length_ = static_cast<int32_t>(Uniform(24, 150));
  if (Chance(0.4)) window_ = static_cast<int32_t>(Uniform(1, 60));
  arrival_rate_ = static_cast<double>(Uniform(5, 40)) / 100;
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Create(options,
                     std::make_unique<ScriptedModel>(
                         context_length_, options.model_limits(), window_),
                     &tokenizer_, &clock_, &executor_);
  CHECK(engine.ok()) << "seed " << seed_ << ": " << engine.status();
  engine_ = *std::move(engine);
}

EngineSimulation::~EngineSimulation() = default;

int64_t EngineSimulation::Uniform(int64_t low, int64_t high) {
  const double u = UniformDouble(seed_, /*stream=*/1, num_draws_++);
  return low + static_cast<int64_t>(u * static_cast<double>(high - low + 1));
}

bool EngineSimulation::Chance(double probability) {
  return UniformDouble(seed_, /*stream=*/1, num_draws_++) < probability;
}

EngineOptions EngineSimulation::RandomOptions() {
  EngineOptions options;
  options.page_size = 8 << Uniform(0, 2);
  constexpr int64_t kTokenBytes = 2 * sizeof(float);
  options.kv_pool_bytes =
      Uniform(2, 12) * options.page_size * kTokenBytes + Uniform(0, 60);
  options.scheduler.max_batch_sequences = static_cast<int32_t>(Uniform(1, 8));
  options.scheduler.max_batch_tokens =
      options.scheduler.max_batch_sequences +
      static_cast<int32_t>(Uniform(0, Chance(0.5) ? 8 : 64));
  options.scheduler.recompute_always = Chance(0.05);
  options.queue.max_waiting_requests = static_cast<int32_t>(Uniform(0, 12));
  if (Chance(0.2)) options.queue.max_waiting_tokens = Uniform(10, 100);
  if (Chance(0.2)) {
    options.queue.max_tenant_requests = static_cast<int32_t>(Uniform(1, 4));
  }
  options.prefix_cache = Chance(0.7);
  if (Chance(0.05)) options.prefix_hash = ConstantHash;
  options.seed_source = seed_;
  RandomPolicy(options.scheduler);
  return options;
}

void EngineSimulation::RandomPolicy(SchedulerOptions& options) {
  const auto policies = SchedulingPolicies();
  options.policy = policies[Uniform(0, policies.size() - 1)].name;
  Count("policy: " + options.policy);
  options.priority_ageing = kStepDuration * Uniform(1, 20);
  options.watermark_pages = static_cast<int32_t>(Uniform(0, 3));
  if (Chance(0.3)) options.max_prefill_share = Uniform(1, 100) / 100.0;
  if (Chance(0.2)) options.target_itl = kStepDuration * Uniform(1, 3);
}

// Some begin, wholly or in part, like one before.
std::vector<TokenId> EngineSimulation::RandomPrompt() {
  const int32_t most =
      std::min<int32_t>(engine_->scheduler().MaxTokens() - 1,
                        static_cast<int32_t>(Chance(0.2) ? 150 : 30));
  std::vector<TokenId> prompt(Uniform(1, most));
  for (TokenId& token : prompt) {
    token = static_cast<TokenId>(Uniform(0, ScriptedModel::kVocabSize - 2));
  }
  if (!prompts_.empty() && Chance(0.6)) {
    const std::vector<TokenId>& other =
        prompts_[Uniform(0, prompts_.size() - 1)];
    const size_t shared = std::min<size_t>(other.size(), prompt.size());
    std::copy_n(other.begin(), Chance(0.5) ? shared : Uniform(0, shared),
                prompt.begin());
  }
  if (prompts_.size() == 4) prompts_.erase(prompts_.begin());
  prompts_.push_back(prompt);
  return prompt;
}

Request EngineSimulation::RandomRequest() {
  Request request;
  request.prompt = RandomPrompt();
  if (Chance(0.02)) {
    request.prompt[Uniform(0, request.prompt.size() - 1)] =
        ScriptedModel::kPoison;
  }
  if (Chance(0.9)) request.max_tokens = static_cast<int32_t>(Uniform(0, 60));
  if (Chance(0.3)) {
    request.stop_tokens.push_back(static_cast<TokenId>(Uniform(0, 254)));
  }
  request.ignore_eos = Chance(0.3);
  request.sampling.prompt_logprobs = Chance(0.1);
  if (Chance(0.1))
    request.sampling.logprobs = static_cast<int32_t>(Uniform(0, 3));
  if (Chance(0.3)) request.sampling.temperature = 1.0f;
  if (Chance(0.2)) {
    request.n = static_cast<int32_t>(
        Uniform(1, engine_->options().scheduler.max_batch_sequences));
  }
  request.priority = static_cast<int32_t>(Uniform(-3, 3));
  request.tenant = std::string(1, static_cast<char>('a' + Uniform(0, 2)));
  if (Chance(0.15)) {
    request.deadline = clock_.Now() + kStepDuration * Uniform(0, 60);
  }
  return request;
}

void EngineSimulation::Expect(Client& client) const {
  const Request& request = client.request;
  std::vector<TokenId> tokens = request.prompt;
  client.limit = engine_->scheduler().MaxTokens();
  if (request.max_tokens.has_value()) {
    client.limit =
        std::min<int32_t>(client.limit, static_cast<int32_t>(tokens.size()) +
                                            *request.max_tokens);
  }
  client.expected_finish = FinishReason::kLength;
  while (static_cast<int32_t>(tokens.size()) < client.limit) {
    if (tokens.back() == ScriptedModel::kPoison) {
      client.expected_finish = FinishReason::kError;
      return;
    }
    const size_t seen =
        std::min<size_t>(tokens.size(), window_.value_or(context_length_));
    tokens.push_back(ScriptedModel::NextToken(std::span(tokens).last(seen)));
    client.expected.push_back(tokens.back());
    if (std::count(request.stop_tokens.begin(), request.stop_tokens.end(),
                   tokens.back()) > 0) {
      client.expected_finish = FinishReason::kStop;
      break;
    }
  }
  // A poisoned row fails a request that has its logits computed: to score the
  // prompt token after it.
  if (request.sampling.prompt_logprobs &&
      std::count(request.prompt.begin(), request.prompt.end() - 1,
                 ScriptedModel::kPoison) > 0) {
    client.expected_finish = FinishReason::kError;
    client.expected.clear();
  }
}

void EngineSimulation::Submit(Request request) {
  Client client;
  client.request = std::move(request);
  client.request.sampling.seed.reset();
  const absl::Status prepared = engine_->Prepare(client.request);
  CHECK(prepared.ok()) << "seed " << seed_ << ": " << prepared;
  Expect(client);
  const absl::Status submitted = engine_->Submit(client.request);
  const EngineOptions& options = engine_->options();
  const size_t most_live = options.scheduler.max_batch_sequences +
                           options.queue.max_waiting_requests;
  if (!submitted.ok()) {
    CHECK(absl::IsResourceExhausted(submitted)) << submitted;
    int64_t waiting_tokens = 0;
    int32_t of_tenant = 0;
    for (const auto& [id, other] : clients_) {
      if (!other.was_admitted) waiting_tokens += other.request.prompt.size();
      if (other.request.tenant == client.request.tenant) ++of_tenant;
    }
    const int64_t tokens = client.request.prompt.size();
    if (clients_.size() >= most_live) {
      Count("refused: full");
    } else if (waiting_tokens > 0 &&
               waiting_tokens + tokens > options.queue.max_waiting_tokens) {
      Count("refused: tokens that wait");
    } else {
      CHECK_GT(options.queue.max_tenant_requests, 0) << "seed " << seed_;
      CHECK_GE(of_tenant, options.queue.max_tenant_requests);
      Count("refused: requests of a tenant");
    }
    return;
  }
  client.samples.resize(client.request.n);
  SetStepBound(client);
  if (client.request.n > 1) Count("several samples");
  if (client.request.max_tokens == 0) Count("max_tokens 0");
  if (client.request.sampling.prompt_logprobs) Count("prompt logprobs");
  clients_.emplace(client.request.id, std::move(client));
}

void EngineSimulation::SubmitInvalidRequest() {
  Request request;
  request.prompt.assign(engine_->scheduler().MaxTokens(), 1);
  switch (Uniform(0, 3)) {
    case 0:
      break;  // One token too many already.
    case 1:
      request.prompt.clear();
      break;
    case 2:
      request.prompt = {ScriptedModel::kVocabSize};
      break;
    case 3:
      request.prompt = {1};
      request.sampling.temperature = -1;
      break;
  }
  CHECK(absl::IsInvalidArgument(engine_->Prepare(request))) << "seed " << seed_;
  Count("refused: invalid");
}

std::string EngineSimulation::StateOf(RequestId request) {
  const Sequence* sequence = engine_->scheduler().FindRequest(request);
  if (sequence == nullptr) return "in the inbox";
  if (!sequence->is_running) {
    return sequence->num_generated() > 0 ? "preempted" : "waiting";
  }
  return sequence->num_uncomputed() > 1 ? "in prefill" : "decoding";
}

void EngineSimulation::CancelRandomClient() {
  if (!ended_.empty() && Chance(0.2)) {
    engine_->Abort(ended_[Uniform(0, ended_.size() - 1)]);
    Count("cancelled: after its end");
    return;
  }
  if (clients_.empty()) return;
  auto it = std::next(clients_.begin(), Uniform(0, clients_.size() - 1));
  if (it->second.cancelled) return;
  Count("cancelled: " + StateOf(it->first));
  it->second.cancelled = true;
  engine_->Abort(it->first);
  if (Chance(0.3)) {
    Count("cancelled: and sent again at once");
    Submit(it->second.request);
  }
}

void EngineSimulation::PreemptRandomClient() {
  if (clients_.empty()) return;
  auto it = std::next(clients_.begin(), Uniform(0, clients_.size() - 1));
  engine_->scheduler().RequestPreemption(it->first);
  // All that it had computed may be computed once more, and those behind it may
  // get ahead meanwhile.
  int64_t more = 1;
  for (const auto& [id, client] : clients_) more += StepsFor(client);
  for (auto& [id, client] : clients_) client.steps_left += more;
}

int64_t EngineSimulation::StepsFor(const Client& client) const {
  const bool recompute = engine_->options().scheduler.recompute_always;
  const int64_t once = int64_t{client.limit} * (recompute ? client.limit : 1);
  return once * client.request.n * (1 + Sequence::kMaxPreemptions);
}

void EngineSimulation::SetStepBound(Client& client) {
  const SchedulerOptions& options = engine_->options().scheduler;
  const auto place = [&](const Client& of) {
    return of.request.arrival + of.request.priority * options.priority_ageing;
  };
  client.request.arrival = clock_.Now();
  const int64_t own = StepsFor(client);
  client.steps_left = own + 2;
  for (auto& [id, other] : clients_) {
    client.steps_left += StepsFor(other);
    const bool may_be_first =
        options.policy == "fair" ||
        (options.policy == "priority" && place(client) < place(other));
    if (may_be_first) other.steps_left += own;
  }
}

void EngineSimulation::Run(int64_t num_steps) {
  while (num_steps_ < num_steps) {
    if (Chance(arrival_rate_)) Submit(RandomRequest());
    if (Chance(0.002)) SubmitInvalidRequest();
    if (Chance(0.03)) CancelRandomClient();
    if (Chance(0.01)) PreemptRandomClient();
    if (Chance(0.002)) {
      engine_->FlushPrefixCache();
      Count("prefix cache flushed");
    }
    TakeStep();
  }
  while (!clients_.empty()) TakeStep();
  TakeStep();
  CHECK_EQ(engine_->scheduler().cache().num_available(),
           engine_->scheduler().cache().num_pages())
      << "seed " << seed_;
  CHECK(!engine_->scheduler().HasWork()) << "seed " << seed_;
}

void EngineSimulation::TakeStep() {
  clock_.Advance(kStepDuration);
  engine_->Step(output_);
  for (const TokenEvent& event : output_.events) Receive(event);
  for (auto& [id, client] : clients_) {
    CHECK_GE(--client.steps_left, 0)
        << "seed " << seed_ << ": request " << static_cast<uint64_t>(id)
        << " does not come to its end";
  }
  AuditStep();
}

void EngineSimulation::NoteAdmitted(Client& client) {
  if (client.was_admitted) return;
  client.was_admitted = true;
  tenants_[client.request.tenant].served +=
      kFairPromptCost * static_cast<int64_t>(client.request.prompt.size());
}

// While two tenants both have requests waiting, what they are served differs by
// no more than fair_policy.cc states.
void EngineSimulation::AuditFairness() {
  const SchedulerOptions& options = engine_->options().scheduler;
  if (options.policy != "fair") return;
  std::map<std::string, bool> waits;
  for (const auto& [id, client] : clients_) {
    const Sequence* sequence = engine_->scheduler().FindRequest(id);
    if (sequence == nullptr) continue;
    bool any_waits = false;
    for (const SequenceId sample : sequence->live->sequences) {
      any_waits |= !engine_->scheduler().sequence(sample).is_running;
    }
    waits[client.request.tenant] |= any_waits;
  }
  for (auto& [name, tenant] : tenants_) {
    if (!waits[name]) {
      tenant.backlogged_since = -1;
    } else if (tenant.backlogged_since < 0) {
      tenant.backlogged_since = num_steps_;
      for (auto& [other_name, other] : tenants_) {
        tenant.lead[other_name] = tenant.served - other.served;
        other.lead[name] = other.served - tenant.served;
      }
    }
  }
  const int64_t longest = engine_->scheduler().MaxTokens();
  const int64_t bound =
      2 * std::max(kFairPromptCost * longest,
                   kFairSampledCost * options.max_batch_sequences * longest);
  for (const auto& [name, tenant] : tenants_) {
    if (tenant.backlogged_since < 0) continue;
    for (const auto& [other_name, other] : tenants_) {
      if (other.backlogged_since < 0 || other_name == name) continue;
      const int64_t gained =
          tenant.served - other.served - tenant.lead.at(other_name);
      CHECK_LE(gained, bound) << "seed " << seed_ << ": tenant " << name;
      Count("step: two tenants wait");
    }
  }
}

// Counts, page by page, what the report says of shared pages.
void EngineSimulation::AuditSharing() {
  const Scheduler& scheduler = engine_->scheduler();
  BatchReport state;
  engine_->scheduler().Report(state);
  state.memory.CheckIdentities();
  std::map<PageId, int32_t> holders;
  std::map<PageId, int32_t> tokens;
  for (const SequenceMemory& memory : state.memory.sequences) {
    const Sequence& sequence = scheduler.sequence(memory.sequence);
    for (int32_t i = 0; i < sequence.table.num_entries(); ++i) {
      const PageId page = sequence.table.pages()[i];
      if (page == kNoPage) continue;
      ++holders[page];
      tokens[page] =
          std::clamp(sequence.num_computed - i * state.memory.page_size, 0,
                     state.memory.page_size);
    }
  }
  int64_t tokens_held = 0;
  int32_t pages_shared = 0;
  for (const auto& [page, count] : holders) {
    tokens_held += tokens[page];
    pages_shared += count > 1;
  }
  CHECK_EQ(state.memory.tokens_held, tokens_held) << "seed " << seed_;
  CHECK_EQ(state.memory.pages_shared, pages_shared) << "seed " << seed_;
  for (const SequenceMemory& memory : state.memory.sequences) {
    int32_t shared = 0;
    for (const PageId page :
         scheduler.sequence(memory.sequence).table.pages()) {
      shared += page != kNoPage && holders[page] > 1;
    }
    CHECK_EQ(memory.shared_pages, shared) << "seed " << seed_;
  }
}

void EngineSimulation::AuditStep() {
  engine_->scheduler().CheckInvariants();
  for (auto& [id, client] : clients_) {
    const Sequence* sequence = engine_->scheduler().FindRequest(id);
    if (sequence != nullptr && sequence->was_admitted()) NoteAdmitted(client);
  }
  AuditFairness();
  AuditSharing();
  if (!output_.stepped) return;
  ++num_steps_;
  const BatchReport& report = output_.report;
  report.memory.CheckIdentities();
  const SchedulerOptions& options = engine_->options().scheduler;
  CHECK_GE(report.prefill_tokens + report.decode_tokens, 1);
  CHECK_LE(report.prefill_tokens + report.decode_tokens,
           options.max_batch_tokens);
  CHECK_LE(report.sequences_running, options.max_batch_sequences);
  CHECK_EQ(report.memory.pool_bytes, engine_->options().kv_pool_bytes);
  if (report.prefill_tokens > 0 && report.decode_tokens > 0) {
    Count("step: prefill and decode mixed");
  }
  (*counts_)["preemption"] += report.sequences_preempted;
  (*counts_)["prefix: tokens found"] += report.prefix_hit_tokens;
  (*counts_)["prefix: pages evicted"] += report.pages_evicted;
  (*counts_)["fork: pages copied"] += report.pages_copied;
  if (report.memory.pages_shared > 0) Count("step: pages are shared");
  if (report.memory.pages_cached > 0) Count("step: pages are cached");
  switch (report.wait_reason) {
    case WaitReason::kNone:
      break;
    case WaitReason::kTokens:
      Count("waits for: tokens");
      break;
    case WaitReason::kSequences:
      Count("waits for: sequences");
      break;
    case WaitReason::kPages:
      Count("waits for: pages");
      break;
    case WaitReason::kWatermark:
      Count("waits for: watermark");
      break;
    case WaitReason::kPolicy:
      Count("waits for: policy");
      break;
  }
  MixIntoTrace(report.prefix_hit_tokens);
  MixIntoTrace(report.pages_evicted);
  MixIntoTrace(report.prefill_tokens);
  MixIntoTrace(report.decode_tokens);
  MixIntoTrace(report.sequences_preempted);
  for (const auto& [id, client] : clients_) {
    const Sequence* sequence = engine_->scheduler().FindRequest(id);
    if (sequence != nullptr && sequence->table.num_vacated() > 0) {
      Count("step: pages have left the window");
    }
  }
  for (const SequenceMemory& sequence : report.memory.sequences) {
    MixIntoTrace(static_cast<uint64_t>(sequence.sequence));
    MixIntoTrace(sequence.pages);
    MixIntoTrace(sequence.tokens);
  }
}

void EngineSimulation::Receive(const TokenEvent& event) {
  MixIntoTrace(static_cast<uint64_t>(event.request_id));
  MixIntoTrace(static_cast<uint64_t>(event.finish_reason));
  MixIntoTrace(event.usage.preemptions);
  for (TokenId token : event.sampled.tokens) MixIntoTrace(token);
  for (char byte : event.text) MixIntoTrace(static_cast<uint8_t>(byte));

  const auto it = clients_.find(event.request_id);
  CHECK(it != clients_.end()) << "seed " << seed_ << ": an event after the end";
  Client& client = it->second;
  if (event.terminal) {
    CheckEnd(client, event);
    // (Admitted and done in one step, before any audit.)
    const bool was_served = IsEnding(event.finish_reason) ||
                            event.finish_reason == FinishReason::kError;
    if (was_served) NoteAdmitted(client);
    ended_.push_back(event.request_id);
    if (ended_.size() > 4) ended_.erase(ended_.begin());
    clients_.erase(it);
    return;
  }
  CHECK_LT(event.sample_index, client.request.n);
  Sample& sample = client.samples[event.sample_index];
  CHECK(sample.finish == FinishReason::kNone);
  sample.finish = event.finish_reason;
  sample.text += event.text;
  sample.received.insert(sample.received.end(), event.sampled.tokens.begin(),
                         event.sampled.tokens.end());
  tenants_[client.request.tenant].served +=
      kFairSampledCost * static_cast<int64_t>(event.sampled.tokens.size());
  client.prompt_scored.insert(client.prompt_scored.end(),
                              event.prompt.tokens.begin(),
                              event.prompt.tokens.end());
}

// Whoever ended early has received a part of what was expected. `reason` is the
// last sample's: some may have ended by themselves before it was cancelled.
void EngineSimulation::CheckSample(const Client& client, const Sample& sample,
                                   FinishReason reason) const {
  CHECK(sample.finish == reason || sample.finish == client.expected_finish)
      << "seed " << seed_;
  if (sample.finish == client.expected_finish && IsEnding(sample.finish)) {
    CHECK_EQ(sample.received.size(), client.expected.size());
  }
  CHECK_LE(sample.received.size(), client.expected.size()) << "seed " << seed_;
  CHECK(std::equal(sample.received.begin(), sample.received.end(),
                   client.expected.begin()))
      << "seed " << seed_ << ": wrong tokens";
  std::string text;
  Detokenizer detokenizer(&tokenizer_, TextStart::kContinuation);
  for (TokenId token : sample.received) detokenizer.Append(token, text);
  detokenizer.Finish(text);
  CHECK_EQ(sample.text, text) << "seed " << seed_;
}

void EngineSimulation::CheckEnd(const Client& client, const TokenEvent& event) {
  const FinishReason reason = event.finish_reason;
  CHECK_EQ(event.usage.prompt_tokens,
           static_cast<int32_t>(client.request.prompt.size()));
  CHECK_LT(event.usage.cached_tokens, event.usage.prompt_tokens);
  int32_t num_received = 0;
  for (const Sample& sample : client.samples) {
    CheckSample(client, sample, reason);
    num_received += static_cast<int32_t>(sample.received.size());
  }
  CHECK_EQ(event.usage.generated_tokens, num_received);
  if (event.usage.cached_tokens > 0) Count("finished with cached tokens");

  if (reason == FinishReason::kCancelled) {
    CHECK(client.cancelled);
    return;
  }
  if (reason == FinishReason::kDeadline) {
    CHECK_LE(client.request.deadline, clock_.Now());
    Count(event.usage.generated_tokens > 0 ? "deadline: while running"
                                           : "deadline: before a token");
    return;
  }
  CHECK(reason == client.expected_finish) << "seed " << seed_;
  if (IsEnding(reason)) {
    const auto& prompt = client.request.prompt;
    if (client.request.sampling.prompt_logprobs) {
      CHECK(std::equal(client.prompt_scored.begin(), client.prompt_scored.end(),
                       prompt.begin() + 1, prompt.end()))
          << "seed " << seed_
          << ": prompt logprobs are not those of the prompt";
    }
  }
  if (event.usage.preemptions > 0) Count("finished after preemption");
  Count(reason == FinishReason::kStop     ? "finished: stop"
        : reason == FinishReason::kLength ? "finished: length"
                                          : "failed: not a number");
}

void EngineSimulation::MixIntoTrace(uint64_t value) {
  trace_ = (trace_ ^ value) * 1099511628211u;  // FNV-1a.
}

}  // namespace folio
