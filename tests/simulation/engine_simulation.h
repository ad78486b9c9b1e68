// An engine, clients that want everything at once, and an audit of every step.

#ifndef TESTS_SIMULATION_ENGINE_SIMULATION_H_
#define TESTS_SIMULATION_ENGINE_SIMULATION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/engine/engine.h"
#include "runtime/tokenizer/byte_tokenizer.h"

namespace folio {

// How often each kind of event occurred.
using EventCounts = std::map<std::string, int64_t>;

// One engine with a ScriptedModel, a small pool and a manual clock, all of
// whose sizes, arrivals, cancels and deadlines follow from a seed. Every
// expectation is CHECKed as the run goes; a failure names the seed.
class EngineSimulation {
 public:
  EngineSimulation(uint64_t seed, EventCounts* counts);
  ~EngineSimulation();

  // Runs `num_steps` steps under load, then until nothing is live.
  void Run(int64_t num_steps);

  // A digest of every batch (who had how many pages and tokens in it) and every
  // event so far, in order.
  uint64_t trace() const { return trace_; }
  int64_t num_steps() const { return num_steps_; }

 private:
  struct Sample {
    std::vector<TokenId> received;
    std::string text;
    FinishReason finish = FinishReason::kNone;
  };

  // What the simulation knows of a live request without asking the engine.
  struct Client {
    Request request;
    int32_t limit = 0;
    std::vector<TokenId> expected;  // To be generated, were it left alone.
    FinishReason expected_finish{};
    bool cancelled = false;
    std::vector<Sample> samples;  // [n]
    std::vector<TokenId> prompt_scored;
    bool was_admitted = false;
    int64_t steps_left = 0;  // Until it must have ended.
  };

  // Draws from [low, high].
  int64_t Uniform(int64_t low, int64_t high);
  bool Chance(double probability);
  void Count(const std::string& event) { ++(*counts_)[event]; }

  EngineOptions RandomOptions();
  void RandomPolicy(SchedulerOptions& options);
  Request RandomRequest();
  std::vector<TokenId> RandomPrompt();
  void Submit(Request request);
  void SubmitInvalidRequest();
  void Expect(Client& client) const;
  void CancelRandomClient();
  void PreemptRandomClient();
  // The most steps that compute for `client` alone: each computes a token at
  // least, and each sample is computed again at most as often as it can be
  // preempted. (When all is recomputed, each token costs all before it again.)
  int64_t StepsFor(const Client& client) const;
  // Gives a new client as many steps as all that may be served before it need,
  // and adds its own to the others' that it may be served before.
  void SetStepBound(Client& client);
  std::string StateOf(RequestId request);

  void TakeStep();
  void AuditStep();
  // What a tenant is served, while it has requests waiting.
  struct TenantAudit {
    int64_t served = 0;                   // Cost, as the policy counts it.
    int64_t backlogged_since = -1;        // Step; -1: nothing waits.
    std::map<std::string, int64_t> lead;  // Over others, when both began.
  };
  void NoteAdmitted(Client& client);
  void AuditFairness();
  void AuditSharing();
  void Receive(const TokenEvent& event);
  void CheckSample(const Client& client, const Sample& sample,
                   FinishReason reason) const;
  void CheckEnd(const Client& client, const TokenEvent& event);
  void MixIntoTrace(uint64_t value);

  const uint64_t seed_;
  EventCounts* const counts_;
  uint64_t num_draws_ = 0;
  ManualClock clock_;
  SerialExecutor executor_;
  ByteTokenizer tokenizer_;
  int32_t context_length_ = 0;
  std::optional<int32_t> window_;
  std::unique_ptr<Engine> engine_;
  StepOutput output_;

  std::map<RequestId, Client> clients_;
  std::vector<std::vector<TokenId>> prompts_;  // Lately; some come again.
  std::map<std::string, TenantAudit> tenants_;
  std::vector<RequestId> ended_;  // Lately, to cancel when it is too late.
  double arrival_rate_ = 0;       // Requests a step.
  int64_t num_steps_ = 0;
  uint64_t trace_ = 14695981039346656037u;
};

}  // namespace folio

#endif  // TESTS_SIMULATION_ENGINE_SIMULATION_H_
