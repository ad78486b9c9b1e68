// What the prefix cache costs where it never hits: every prompt is new. Engines
// with it and without it take turns on the same load, and so do schedulers
// without a model, whose steps are all bookkeeping.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/bench_model.h"
#include "bench/load/inproc.h"
#include "bench/load/load.h"
#include "bench/load/metrics.h"
#include "cache/kv_cache.h"
#include "runtime/base/status_macros.h"
#include "scheduler/scheduler.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  prefix_cost
  prefix_cost --rounds 21 --json

A round is 32 requests at once, 16 of which run at a time, with prompts of 128
tokens and 32 generated; the pool is so small that the prefix cache evicts all
the time. Each token computed, of prompts and generated, counts once.

model:      time of the whole load, a token
scheduler:  of planning, applying and committing the same steps without a model
cost:       by how much on takes longer than off: the median over rounds of
            neighbours' ratios less one; in the last row, the scheduler's
            difference as a share of the model's time, which is the same cost
            without the model's noise)";

constexpr int32_t kRequests = 32;
constexpr int32_t kSequences = 16;
constexpr int32_t kPrompt = 128;
constexpr int32_t kOutput = 32;
// The last token that is generated is not computed.
constexpr int64_t kTokens = int64_t{kRequests} * (kPrompt + kOutput - 1);
// Once and a half of what runs at once.
constexpr int32_t kPoolTokens = kSequences * (kPrompt + kOutput) * 3 / 2;
// Loads without a model that make up a round; one takes too little time.
constexpr int32_t kLoadsWithoutModel = 20;

struct Flags {
  BenchModelFlags model;
  int32_t rounds = 9;
  bool json = false;
};

EngineOptions OptionsOf(bool prefix_cache) {
  EngineOptions options;
  options.prefix_cache = prefix_cache;
  options.scheduler.max_batch_sequences = kSequences;
  return options;
}

// Prompts that no round before has had.
std::vector<LoadRequest> FreshLoad() {
  static uint64_t next_seed = 1;
  std::vector<LoadRequest> load;
  for (int32_t i = 0; i < kRequests; ++i) {
    load.push_back({.prompt_tokens = kPrompt,
                    .output_tokens = kOutput,
                    .token_seed = next_seed++});
  }
  return load;
}

// A scheduler with its cache, fed by a loop.
class Loop {
 public:
  explicit Loop(bool prefix_cache)
      : layout_({.num_layers = 1, .num_kv_heads = 1, .head_dim = 1},
                EngineOptions().page_size),
        cache_(layout_, kPoolTokens / layout_.page_size(),
               {.prefix_cache = prefix_cache}),
        scheduler_(OptionsOf(prefix_cache).scheduler,
                   /*context_length=*/kPrompt + kOutput,
                   kPoolTokens / layout_.page_size() * layout_.page_bytes(),
                   &cache_) {}

  // The time of the steps of one load.
  absl::Duration Run() {
    for (const LoadRequest& wanted : FreshLoad()) {
      auto request = std::make_shared<Request>(ToRequest(wanted, 50000));
      request->id = RequestId{next_id_++};
      scheduler_.Add(std::move(request));
    }
    absl::Duration time;
    while (scheduler_.HasWork()) {
      const absl::Time begin = absl::Now();
      events_.Clear();
      scheduler_.Plan(absl::UnixEpoch(), plan_);
      scheduler_.Apply(plan_, absl::UnixEpoch(), applied_, events_);
      const absl::Time planned = absl::Now();
      MakeResult();
      const absl::Time made = absl::Now();
      scheduler_.Commit(applied_, result_, absl::UnixEpoch(), NeverStops,
                        events_, report_);
      time += planned - begin + (absl::Now() - made);
    }
    return time;
  }

 private:
  void MakeResult() {
    result_.sequences.Clear();
    for (const AppliedSequence& planned : applied_.sequences) {
      SequenceResult& entry = result_.sequences.Append();
      entry.id = planned.id;
      if (scheduler_.sequence(planned.id).SamplesAfter(planned.count)) {
        entry.sampled.tokens.push_back(1);
      }
    }
  }

  const KvLayout layout_;
  KvCache cache_;
  Scheduler scheduler_;
  uint64_t next_id_ = 1;

  BatchPlan plan_;
  AppliedPlan applied_;
  StepResult result_;
  TokenEvents events_;
  BatchReport report_;
};

// In microseconds a token.
struct Costs {
  std::vector<double> on;
  std::vector<double> off;

  double Cost() const {
    std::vector<double> ratios;
    for (size_t i = 0; i < on.size(); ++i) ratios.push_back(on[i] / off[i]);
    return Median(std::move(ratios)) - 1;
  }
  double Difference() const {
    std::vector<double> differences;
    for (size_t i = 0; i < on.size(); ++i) {
      differences.push_back(on[i] - off[i]);
    }
    return Median(std::move(differences));
  }
};

// Who goes first changes from round to round.
absl::Status Measure(
    int32_t rounds, Costs& costs,
    const std::function<absl::StatusOr<double>(bool on)>& measure) {
  for (int32_t round = 0; round < rounds; ++round) {
    for (const bool on : {round % 2 == 0, round % 2 != 0}) {
      FOLIO_ASSIGN_OR_RETURN((on ? costs.on : costs.off).emplace_back(),
                             measure(on));
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureModel(const Flags& flags, Costs& costs) {
  EngineOptions options = OptionsOf(true);
  FOLIO_ASSIGN_OR_RETURN(const auto model,
                         BenchModel::Open(flags.model, options.model_limits()));
  const KvLayout layout(model->info().kv_shape, options.page_size);
  options.kv_pool_bytes = layout.PagesFor(kPoolTokens) * layout.page_bytes();
  FOLIO_ASSIGN_OR_RETURN(const auto on, model->MakeEngine(options));
  options.prefix_cache = false;
  FOLIO_ASSIGN_OR_RETURN(const auto off, model->MakeEngine(options));
  const auto serve = [&](bool is_on) -> absl::StatusOr<double> {
    FOLIO_ASSIGN_OR_RETURN(const std::vector<RequestRecord> records,
                           model->Serve(FreshLoad(), is_on ? *on : *off));
    return absl::ToDoubleMicroseconds(folio::Measure(records).duration) /
           kTokens;
  };
  for (const bool is_on : {true, false}) {
    FOLIO_RETURN_IF_ERROR(serve(is_on).status());
  }
  return Measure(flags.rounds, costs, serve);
}

absl::Status MeasureScheduler(const Flags& flags, Costs& costs) {
  Loop on(true);
  Loop off(false);
  return Measure(flags.rounds, costs,
                 [&](bool is_on) -> absl::StatusOr<double> {
                   absl::Duration time;
                   for (int32_t i = 0; i < kLoadsWithoutModel; ++i) {
                     time += (is_on ? on : off).Run();
                   }
                   return absl::ToDoubleMicroseconds(time) /
                          (kTokens * kLoadsWithoutModel);
                 });
}

void Print(const Flags& flags, const Costs& model, const Costs& scheduler) {
  const double off = Median(model.off);
  const double share = scheduler.Difference() / off;
  if (flags.json) {
    const nlohmann::ordered_json line = {
        {"model_us_per_token_on", Median(model.on)},
        {"model_us_per_token_off", off},
        {"model_cost", model.Cost()},
        {"scheduler_us_per_token_on", Median(scheduler.on)},
        {"scheduler_us_per_token_off", Median(scheduler.off)},
        {"scheduler_cost", scheduler.Cost()},
        {"scheduler_difference_of_model", share}};
    std::cout << line.dump() << std::endl;
    return;
  }
  std::printf("us a token                 on        off      cost\n");
  std::printf("model              %10.3f %10.3f %+8.2f%%\n", Median(model.on),
              off, 100 * model.Cost());
  std::printf("scheduler          %10.3f %10.3f %+8.2f%%\n",
              Median(scheduler.on), Median(scheduler.off),
              100 * scheduler.Cost());
  std::printf("scheduler of model %10s %10s %+8.3f%%\n", "", "", 100 * share);
}

absl::Status Run(const Flags& flags) {
  Costs model;
  Costs scheduler;
  FOLIO_RETURN_IF_ERROR(MeasureModel(flags, model));
  FOLIO_RETURN_IF_ERROR(MeasureScheduler(flags, scheduler));
  Print(flags, model, scheduler);
  return absl::OkStatus();
}

}  // namespace
}  // namespace folio

int main(int argc, char** argv) {
  folio::Flags flags;
  CLI::App app("Measures what the prefix cache costs without hits.");
  app.footer(folio::kExamples);
  folio::AddModelFlags(app, flags.model);
  app.add_option("--rounds", flags.rounds, "Measurements of each, in turns")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
  app.add_flag("--json", flags.json, "One JSON object");
  return folio::RunBenchmark(app, argc, argv,
                             [&] { return folio::Run(flags); });
}
