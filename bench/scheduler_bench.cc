// What a step's bookkeeping costs: it grows with the batch, and does not with
// the requests that wait.
//
// "of_limit" is the time as a share of what Folio allows itself, 20
// microseconds a step and 1 a sequence. Plain/... is the least that any
// scheduler does for the same batch, without queues, budgets, preemption,
// deadlines, stop tokens or a report.

#include <benchmark/benchmark.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cache/kv_cache.h"
#include "scheduler/scheduler.h"

namespace folio {
namespace {

constexpr int32_t kPageSize = 16;
constexpr int32_t kIterations = 20000;
constexpr int32_t kPages = 1 << 20;
// Every sequence goes on for longer than the benchmark runs.
constexpr int32_t kMaxTokens = kIterations + 100;

// Adds "of_limit", where all iterations together took `elapsed`.
void ReportLimit(benchmark::State& state, absl::Duration elapsed) {
  const absl::Duration limit =
      absl::Microseconds(20) + absl::Microseconds(1) * state.range(0);
  state.counters["of_limit"] = absl::FDivDuration(
      elapsed, limit * static_cast<int64_t>(state.iterations()));
}

void AddRequests(Scheduler& scheduler, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    auto request = std::make_shared<Request>();
    request->id = RequestId{static_cast<uint64_t>(i + 1)};
    request->prompt = {1};
    request->max_tokens = kMaxTokens;
    scheduler.Add(std::move(request));
  }
}

// Plan, Apply, Commit with `range(0)` sequences that decode and `range(1)`
// requests that wait behind them.
void Step(benchmark::State& state) {
  const int32_t running = static_cast<int32_t>(state.range(0));
  const KvLayout layout({.num_layers = 1, .num_kv_heads = 1, .head_dim = 1},
                        kPageSize);
  KvCache cache(layout, kPages);
  Scheduler scheduler(
      {.max_batch_tokens = 16 * running, .max_batch_sequences = running},
      /*context_length=*/1 << 17, kPages * layout.page_bytes(), &cache);
  AddRequests(scheduler, running + state.range(1));
  BatchPlan plan;
  AppliedPlan applied;
  StepResult result;
  TokenEvents events;
  BatchReport report;
  const absl::Time start = absl::Now();
  for (auto _ : state) {
    events.Clear();
    scheduler.Plan(absl::UnixEpoch(), plan);
    scheduler.Apply(plan, absl::UnixEpoch(), applied, events);
    result.sequences.Clear();
    for (const AppliedSequence& planned : applied.sequences) {
      SequenceResult& entry = result.sequences.Append();
      entry.id = planned.id;
      entry.sampled.tokens.push_back(1);
    }
    scheduler.Commit(applied, result, absl::UnixEpoch(), NeverStops, events,
                     report);
  }
  ReportLimit(state, absl::Now() - start);
}
BENCHMARK(Step)
    ->ArgNames({"running", "waiting"})
    ->ArgsProduct({{1, 32, 256}, {0, 10000}})
    ->Iterations(kIterations)
    ->Unit(benchmark::kMicrosecond);

// Each sequence gets a token, perhaps a page, and an event.
void PlainStep(benchmark::State& state) {
  struct PlainSequence {
    std::vector<TokenId> tokens;
    std::vector<int32_t> pages;
  };
  std::vector<PlainSequence> sequences(state.range(0));
  for (PlainSequence& sequence : sequences) {
    sequence.tokens.reserve(kMaxTokens);
    sequence.pages.reserve(kMaxTokens / kPageSize + 1);
  }
  int32_t next_page = 0;
  TokenEvents events;
  const absl::Time start = absl::Now();
  for (auto _ : state) {
    events.Clear();
    for (PlainSequence& sequence : sequences) {
      if (sequence.tokens.size() % kPageSize == 0) {
        sequence.pages.push_back(next_page++);
      }
      sequence.tokens.push_back(1);
      events.Append().sampled.tokens.push_back(1);
    }
    benchmark::ClobberMemory();
  }
  ReportLimit(state, absl::Now() - start);
}
BENCHMARK(PlainStep)
    ->Name("Plain/Step")
    ->ArgName("running")
    ->Arg(1)
    ->Arg(32)
    ->Arg(256)
    ->Iterations(kIterations)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace folio
