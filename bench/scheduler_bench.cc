// What a step's bookkeeping costs: it grows with the batch, and does not with
// the requests that wait.

#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "cache/kv_cache.h"
#include "cache/page_allocator.h"
#include "scheduler/scheduler.h"

namespace folio {
namespace {

constexpr int32_t kContext = 1 << 20;

// Plan, Apply, Commit with `range(0)` sequences that decode and `range(1)`
// requests that wait behind them.
void BM_Step(benchmark::State& state) {
  const int32_t running = static_cast<int32_t>(state.range(0));
  const KvLayout layout({.num_layers = 1, .num_kv_heads = 1, .head_dim = 1},
                        /*page_size=*/16);
  constexpr int32_t kPages = 1 << 22;
  KvCache cache(layout, kPages);
  Scheduler scheduler(
      {.max_batch_tokens = 16 * running, .max_batch_sequences = running},
      kContext, kPages * layout.page_bytes(), &cache);
  for (int64_t i = 0; i < running + state.range(1); ++i) {
    auto request = std::make_shared<Request>();
    request->id = RequestId{static_cast<uint64_t>(i + 1)};
    request->prompt = {1};
    // Running ones go on for ever; each reserves its token array.
    request->max_tokens = i < running ? kContext / 4 : 1;
    scheduler.Add(std::move(request));
  }
  BatchPlan plan;
  StepResult result;
  TokenEvents events;
  BatchReport report;
  for (auto _ : state) {
    events.Clear();
    scheduler.Plan(absl::UnixEpoch(), plan);
    scheduler.Apply(plan, events);
    result.sequences.Clear();
    for (const PlannedSequence& planned : plan.sequences) {
      SequenceResult& entry = result.sequences.Append();
      entry.id = planned.id;
      entry.sampled.tokens.push_back(1);
    }
    scheduler.Commit(plan, result, events, report);
  }
  state.counters["sequences"] = static_cast<double>(plan.sequences.size());
}
BENCHMARK(BM_Step)
    ->ArgNames({"running", "waiting"})
    ->ArgsProduct({{1, 8, 32, 128}, {0, 100, 10000}})
    ->Iterations(20000)
    ->Unit(benchmark::kMicrosecond);

// Takes and gives back `range(0)` pages.
void BM_AllocateAndRelease(benchmark::State& state) {
  PageAllocator allocator(1 << 16);
  std::vector<PageId> pages(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(allocator.Allocate(pages));
    for (const PageId page : pages) allocator.Release(page);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_AllocateAndRelease)->RangeMultiplier(8)->Range(1, 1 << 15);

}  // namespace
}  // namespace folio
