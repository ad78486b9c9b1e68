// What --target-itl does to chat in which long prompts arrive: gaps between
// tokens, time to first token and throughput, with the target and without it;
// and how well the cost model behind it predicts what steps take.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/bench_model.h"
#include "bench/load/inproc.h"
#include "bench/load/load.h"
#include "bench/load/metrics.h"
#include "bench/load/synthetic.h"
#include "bench/load/trace.h"
#include "runtime/base/status_macros.h"
#include "runtime/cli/flags.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  target_itl
  target_itl chat-steady-long-prompts.jsonl --target-itl 50ms --threads 2
  target_itl chat-steady-long-prompts.jsonl --worst-steps 10

Times count from the scheduled arrival. Percentiles are nearest-rank. The
error of a prediction is its distance from the time that the step took, as a
share of that.)";

struct Flags {
  BenchModelFlags model;
  std::string trace;
  std::optional<absl::Duration> target = absl::Milliseconds(50);
  int32_t sequences = 16;
  int32_t rounds = 1;
  int32_t worst_steps = 0;
  bool json = false;
};

// A step that was predicted, and timed.
struct PredictedStep {
  int64_t step = 0;
  int32_t prefill_tokens = 0;
  int32_t decode_tokens = 0;
  int64_t tokens_held = 0;
  absl::Duration predicted;
  absl::Duration measured;

  double error() const {
    return absl::FDivDuration(predicted - measured, measured);
  }
  double size_of_error() const { return std::abs(error()); }
};

struct Run {
  LoadMetrics metrics;
  std::vector<PredictedStep> steps;  // The worst prediction first.

  // Of the errors' sizes, nearest-rank.
  double ErrorPercentile(double percent) const {
    if (steps.empty()) return 0;
    const auto above = static_cast<size_t>(
        (100 - percent) * static_cast<double>(steps.size()) / 100);
    return steps[std::min(above, steps.size() - 1)].size_of_error();
  }
};

// Prompts of other seeds than the load's: nothing of it is cached afterwards.
std::vector<LoadRequest> WarmUpLoad() {
  std::vector<LoadRequest> load;
  for (uint64_t i = 0; i < 4; ++i) {
    load.push_back(
        {.prompt_tokens = 64, .output_tokens = 12, .token_seed = ~i});
  }
  return load;
}

EngineOptions OptionsOf(const Flags& flags, bool with_target) {
  EngineOptions options;
  options.kv_pool_bytes = int64_t{1} << 30;
  options.scheduler.max_batch_sequences = flags.sequences;
  if (with_target) options.scheduler.target_itl = flags.target;
  return options;
}

absl::StatusOr<Run> RunLoad(const std::vector<LoadRequest>& load,
                            BenchModel& model, Engine& engine) {
  Run run;
  InprocOptions options;
  options.after_step = [&run](const StepOutput& output) {
    const BatchReport& report = output.report;
    if (report.predicted_duration == absl::ZeroDuration() ||
        report.commit_interval == absl::ZeroDuration()) {
      return;
    }
    run.steps.push_back({.step = report.step,
                         .prefill_tokens = report.prefill_tokens,
                         .decode_tokens = report.decode_tokens,
                         .tokens_held = report.memory.tokens_held,
                         .predicted = report.predicted_duration,
                         .measured = report.commit_interval});
  };
  engine.FlushPrefixCache();
  FOLIO_ASSIGN_OR_RETURN(const std::vector<RequestRecord> records,
                         model.Serve(load, engine, options));
  run.metrics = Measure(records);
  std::ranges::sort(run.steps, std::ranges::greater{},
                    &PredictedStep::size_of_error);
  return run;
}

double Ms(absl::Duration duration) {
  return absl::ToDoubleMilliseconds(duration);
}

void PrintHeader() {
  std::printf(
      "                 gaps, ms                 first token, ms      output  "
      "  model's error\n"
      "target       p50     p99     max      p50      p99      max     tok/s  "
      "  p50     p90\n");
}

void PrintRow(const std::string& name, const Run& run) {
  const LoadMetrics& metrics = run.metrics;
  std::printf(
      "%-8s  %6.1f  %6.1f  %6.1f  %7.0f  %7.0f  %7.0f  %8.1f  %5.1f%%  "
      "%5.1f%%\n",
      name.c_str(), Ms(metrics.itl.p50), Ms(metrics.itl.p99),
      Ms(metrics.itl.max), Ms(metrics.ttft.p50), Ms(metrics.ttft.p99),
      Ms(metrics.ttft.max), metrics.output_tokens_per_second,
      100 * run.ErrorPercentile(50), 100 * run.ErrorPercentile(90));
  std::fflush(stdout);
}

void PrintWorstSteps(const Run& run, int32_t count) {
  for (size_t i = 0; i < run.steps.size() && i < size_t(count); ++i) {
    const PredictedStep& step = run.steps[i];
    std::printf(
        "  step %lld: %d prefill tokens, %d decodes, %lld tokens held: "
        "predicted %.1f ms, took %.1f ms (%+.0f%%)\n",
        static_cast<long long>(step.step), step.prefill_tokens,
        step.decode_tokens, static_cast<long long>(step.tokens_held),
        Ms(step.predicted), Ms(step.measured), 100 * step.error());
  }
}

void PrintJson(const std::string& name, const Run& run) {
  const LoadMetrics& metrics = run.metrics;
  const nlohmann::ordered_json line = {
      {"target_itl", name},
      {"itl_p50_ms", Ms(metrics.itl.p50)},
      {"itl_p99_ms", Ms(metrics.itl.p99)},
      {"itl_max_ms", Ms(metrics.itl.max)},
      {"ttft_p50_ms", Ms(metrics.ttft.p50)},
      {"ttft_p99_ms", Ms(metrics.ttft.p99)},
      {"ttft_max_ms", Ms(metrics.ttft.max)},
      {"output_tokens_per_second", metrics.output_tokens_per_second},
      {"duration_s", absl::ToDoubleSeconds(metrics.duration)},
      {"steps_predicted", run.steps.size()},
      {"prediction_error_p50", run.ErrorPercentile(50)},
      {"prediction_error_p90", run.ErrorPercentile(90)}};
  std::cout << line.dump() << std::endl;
}

absl::Status Compare(const Flags& flags) {
  std::vector<LoadRequest> load = MakeLoad(
      {.count = 40,
       .arrivals = {.process = Arrivals::Process::kPoisson, .rate = 1.7},
       .prompt = LogNormalLength{130, 0.9, 800},
       .output = LogNormalLength{90, 0.7, 400},
       .long_prompt_every = 10});
  if (!flags.trace.empty()) {
    FOLIO_ASSIGN_OR_RETURN(load, ReadTrace(flags.trace));
    FOLIO_RETURN_IF_ERROR(CheckPlain(load));
  }
  FOLIO_ASSIGN_OR_RETURN(
      const auto model,
      BenchModel::Open(flags.model, OptionsOf(flags, false).model_limits()));
  FOLIO_ASSIGN_OR_RETURN(const auto without,
                         model->MakeEngine(OptionsOf(flags, false)));
  FOLIO_ASSIGN_OR_RETURN(const auto with,
                         model->MakeEngine(OptionsOf(flags, true)));
  for (Engine* const engine : {without.get(), with.get()}) {
    FOLIO_RETURN_IF_ERROR(model->Serve(WarmUpLoad(), *engine).status());
  }
  if (!flags.json) PrintHeader();
  for (int32_t round = 0; round < flags.rounds; ++round) {
    for (Engine* const engine : {without.get(), with.get()}) {
      const std::string name =
          engine == with.get() ? absl::FormatDuration(*flags.target) : "none";
      FOLIO_ASSIGN_OR_RETURN(const Run run, RunLoad(load, *model, *engine));
      (flags.json ? PrintJson : PrintRow)(name, run);
      if (!flags.json) PrintWorstSteps(run, flags.worst_steps);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace folio

int main(int argc, char** argv) {
  folio::Flags flags;
  CLI::App app("Measures --target-itl while long prompts arrive.");
  app.footer(folio::kExamples);
  app.add_option("trace", flags.trace,
                 "Requests, a JSON object a line with arrival_s, "
                 "prompt_tokens, output_tokens and token_seed. Default: 40 at "
                 "1.7 a second, every tenth with 3,000 prompt tokens");
  folio::AddModelFlags(app, flags.model);
  folio::AddDurationOption(app, "--target-itl", flags.target,
                           "As of folio serve. Default: 50ms");
  app.add_option("--sequences", flags.sequences, "That run at once, at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 512).description(""))
      ->type_name("N");
  app.add_option("--rounds", flags.rounds, "Runs of each, in turns")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
  app.add_option("--worst-steps", flags.worst_steps,
                 "Steps to print whose predictions were worst")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 20).description(""))
      ->type_name("N");
  app.add_flag("--json", flags.json, "One JSON object a line");
  return folio::RunBenchmark(app, argc, argv,
                             [&] { return folio::Compare(flags); });
}
