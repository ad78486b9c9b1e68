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
  options.max_waiting_requests = static_cast<int32_t>(Uniform(0, 12));
  options.seed_source = seed_;
  return options;
}

Request EngineSimulation::RandomRequest() {
  Request request;
  const int32_t most =
      std::min<int32_t>(engine_->scheduler().MaxTokens() - 1,
                        static_cast<int32_t>(Chance(0.2) ? 150 : 30));
  request.prompt.resize(Uniform(1, most));
  for (TokenId& token : request.prompt) {
    token = static_cast<TokenId>(Uniform(0, ScriptedModel::kVocabSize - 2));
  }
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

void EngineSimulation::SubmitRandomRequest() {
  Client client;
  client.request = RandomRequest();
  const absl::Status prepared = engine_->Prepare(client.request);
  CHECK(prepared.ok()) << "seed " << seed_ << ": " << prepared;
  Expect(client);
  const absl::Status submitted = engine_->Submit(client.request);
  const EngineOptions& options = engine_->options();
  const size_t most_live =
      options.scheduler.max_batch_sequences + options.max_waiting_requests;
  if (!submitted.ok()) {
    CHECK(absl::IsResourceExhausted(submitted)) << submitted;
    CHECK_GE(clients_.size(), most_live) << "seed " << seed_;
    Count("refused: full");
    return;
  }
  client.steps_left = StepBound() + StepsFor(client) + 2;
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
}

void EngineSimulation::PreemptRandomClient() {
  if (clients_.empty()) return;
  auto it = std::next(clients_.begin(), Uniform(0, clients_.size() - 1));
  engine_->scheduler().RequestPreemption(it->first);
  // All that it had computed may be computed once more, and those behind it may
  // get ahead meanwhile.
  const int64_t more = StepBound() + 1;
  for (auto& [id, client] : clients_) client.steps_left += more;
}

int64_t EngineSimulation::StepsFor(const Client& client) const {
  const bool recompute = engine_->options().scheduler.recompute_always;
  return int64_t{client.limit} * (recompute ? client.limit : 1);
}

int64_t EngineSimulation::StepBound() const {
  int64_t bound = 0;
  for (const auto& [id, client] : clients_) bound += StepsFor(client);
  return bound;
}

void EngineSimulation::Run(int64_t num_steps) {
  while (num_steps_ < num_steps) {
    if (Chance(arrival_rate_)) SubmitRandomRequest();
    if (Chance(0.002)) SubmitInvalidRequest();
    if (Chance(0.03)) CancelRandomClient();
    if (Chance(0.01)) PreemptRandomClient();
    TakeStep();
  }
  while (!clients_.empty()) TakeStep();
  TakeStep();
  CHECK_EQ(engine_->scheduler().cache().num_free(),
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

void EngineSimulation::AuditStep() {
  engine_->scheduler().CheckInvariants();
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
    ended_.push_back(event.request_id);
    if (ended_.size() > 4) ended_.erase(ended_.begin());
    clients_.erase(it);
    return;
  }
  CHECK(client.sample_finish == FinishReason::kNone);
  client.sample_finish = event.finish_reason;
  client.text += event.text;
  client.received.insert(client.received.end(), event.sampled.tokens.begin(),
                         event.sampled.tokens.end());
  client.prompt_scored.insert(client.prompt_scored.end(),
                              event.prompt.tokens.begin(),
                              event.prompt.tokens.end());
}

void EngineSimulation::CheckEnd(const Client& client, const TokenEvent& event) {
  const FinishReason reason = event.finish_reason;
  CHECK(client.sample_finish == reason) << "seed " << seed_;
  CHECK_EQ(event.usage.prompt_tokens,
           static_cast<int32_t>(client.request.prompt.size()));
  CHECK_EQ(event.usage.generated_tokens,
           static_cast<int32_t>(client.received.size()));

  // Whoever ended early has received a part of what was expected.
  CHECK_LE(client.received.size(), client.expected.size()) << "seed " << seed_;
  CHECK(std::equal(client.received.begin(), client.received.end(),
                   client.expected.begin()))
      << "seed " << seed_ << ": wrong tokens";
  std::string text;
  Detokenizer detokenizer(&tokenizer_, TextStart::kContinuation);
  for (TokenId token : client.received) detokenizer.Append(token, text);
  detokenizer.Finish(text);
  CHECK_EQ(client.text, text) << "seed " << seed_;

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
    CHECK_EQ(client.received.size(), client.expected.size());
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
