// What the page pool wastes while more requests wait than fit: pages hold
// tokens, or slots that no token has filled yet, or are kept back by the
// watermark for what running sequences will generate. Beside it, the same pool
// cut into one contiguous buffer of the context length for each sequence.
//
// The scheduler and the cache alone, with a loop that feeds tokens to them:
// none of this depends on a model.

#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <algorithm>
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
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "bench/load/load.h"
#include "bench/load/synthetic.h"
#include "bench/load/trace.h"
#include "cache/kv_cache.h"
#include "runtime/base/status_macros.h"
#include "scheduler/scheduler.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  waste
  waste chat-lengths-2000.jsonl
  waste --pool-pages 1024 --watermark 2 --context 2048 --json

All requests are there from the beginning. The pool is saturated from the first
step in which pages, and not the budget of tokens, keep a request waiting, until
the last one in which any waits. Shares are means over these steps, at the
fullest moment of each; "least" is the least of any of them.

tokens:     of the pool's slots, those with a token's K/V
waste:      of the slots in pages in use, those without
watermark:  of the pool's pages, those that no request is admitted to, because
            running sequences may need them: --watermark for each of these, or
            what it can still take if that is fewer
unused:     the rest: free, and too few for the request that is next)";

struct Flags {
  std::string trace;
  int32_t page_size = 16;
  int32_t pool_pages = 4096;
  int32_t context = 4096;
  SchedulerOptions scheduler = {.max_batch_tokens = 2048,
                                .max_batch_sequences = 1024};
  bool json = false;
};

// Sums over the saturated steps.
struct Totals {
  int64_t steps = 0;
  double tokens = 0;
  double waste = 0;
  double watermark = 0;
  double least_tokens_or_watermark = 1;
  double running = 0;

  void Add(double step_tokens, double step_waste, double step_watermark,
           int32_t step_running) {
    ++steps;
    tokens += step_tokens;
    waste += step_waste;
    watermark += step_watermark;
    least_tokens_or_watermark =
        std::min(least_tokens_or_watermark, step_tokens + step_watermark);
    running += step_running;
  }
  double Mean(double total) const {
    return steps == 0 ? 0 : total / static_cast<double>(steps);
  }
};

struct Result {
  Totals saturated;
  double last_waste = 0;  // Of the last saturated step.
  int32_t most_running = 0;
  int64_t steps = 0;
  int64_t preemptions = 0;
  int64_t tokens_computed = 0;
  int64_t tokens_needed = 0;  // Without preemptions.
};

class Simulation {
 public:
  Simulation(const Flags& flags, const std::vector<LoadRequest>& load)
      : flags_(flags),
        layout_({.num_layers = 1, .num_kv_heads = 1, .head_dim = 1},
                flags.page_size),
        cache_(layout_, flags.pool_pages, {.prefix_cache = false}),
        scheduler_(flags.scheduler, flags.context,
                   flags.pool_pages * layout_.page_bytes(), &cache_) {
    for (const LoadRequest& wanted : load) {
      auto request = std::make_shared<Request>(ToRequest(wanted, 1));
      request->id = RequestId{limits_.size()};
      limits_.push_back(static_cast<int32_t>(request->prompt.size()) +
                        wanted.output_tokens);
      // The last token is never fed back.
      result_.tokens_needed += limits_.back() - 1;
      scheduler_.Add(std::move(request));
    }
  }

  Result Run() {
    while (scheduler_.HasWork()) {
      Step();
      report_.memory.CheckIdentities();
      Count();
    }
    return result_;
  }

 private:
  void Step() {
    events_.Clear();
    scheduler_.Plan(absl::UnixEpoch(), plan_);
    scheduler_.Apply(plan_, absl::UnixEpoch(), applied_, events_);
    step_result_.sequences.Clear();
    for (const AppliedSequence& planned : applied_.sequences) {
      SequenceResult& entry = step_result_.sequences.Append();
      entry.id = planned.id;
      if (scheduler_.sequence(planned.id).SamplesAfter(planned.count)) {
        entry.sampled.tokens.push_back(0);
      }
    }
    scheduler_.Commit(applied_, step_result_, absl::UnixEpoch(), NeverStops,
                      events_, report_);
  }

  void Count() {
    const MemoryReport& memory = report_.memory;
    ++result_.steps;
    result_.preemptions += report_.sequences_preempted;
    result_.tokens_computed += report_.prefill_tokens + report_.decode_tokens;
    result_.most_running =
        std::max(result_.most_running, report_.sequences_running);
    is_saturated_ |= report_.wait_reason == WaitReason::kPages ||
                     report_.wait_reason == WaitReason::kWatermark;
    if (!is_saturated_ || report_.sequences_waiting == 0) return;
    const double slots = static_cast<double>(memory.pages_total) *
                         static_cast<double>(flags_.page_size);
    result_.last_waste = memory.waste_share();
    result_.saturated.Add(
        static_cast<double>(memory.tokens_held) / slots, memory.waste_share(),
        static_cast<double>(WatermarkPages()) / memory.pages_total,
        report_.sequences_running);
  }

  // What the planner keeps available for running sequences, as far as it is.
  int64_t WatermarkPages() const {
    const MemoryReport& memory = report_.memory;
    int64_t pages = 0;
    for (const SequenceMemory& sequence : memory.sequences) {
      const int64_t limit = limits_[static_cast<uint64_t>(sequence.request)];
      pages += std::clamp<int64_t>(layout_.PagesFor(limit) - sequence.pages, 0,
                                   flags_.scheduler.watermark_pages);
    }
    return std::min<int64_t>(pages, memory.pages_free);
  }

  const Flags& flags_;
  const KvLayout layout_;
  KvCache cache_;
  Scheduler scheduler_;
  std::vector<int32_t> limits_;  // In tokens, by request.
  bool is_saturated_ = false;
  Result result_;

  BatchPlan plan_;
  AppliedPlan applied_;
  StepResult step_result_;
  TokenEvents events_;
  BatchReport report_;
};

void PrintTable(const Flags& flags, const std::vector<LoadRequest>& load,
                const Result& result) {
  const Totals& saturated = result.saturated;
  const double tokens = saturated.Mean(saturated.tokens);
  const double waste = saturated.Mean(saturated.waste);
  const double watermark = saturated.Mean(saturated.watermark);
  const int64_t contiguous =
      int64_t{flags.pool_pages} * flags.page_size / flags.context;
  const double running = saturated.Mean(saturated.running);
  std::printf(
      "%zu requests at once, %d pages of %d tokens, a watermark of %d pages a "
      "sequence\n"
      "%lld of %lld steps saturated, %lld preemptions, %.2f%% of tokens "
      "computed again\n\n",
      load.size(), flags.pool_pages, flags.page_size,
      flags.scheduler.watermark_pages, static_cast<long long>(saturated.steps),
      static_cast<long long>(result.steps),
      static_cast<long long>(result.preemptions),
      100.0 * (static_cast<double>(result.tokens_computed) /
                   static_cast<double>(result.tokens_needed) -
               1));
  std::printf(
      "                                      mean    least or last step\n"
      "waste, of what is reserved         %6.2f%%              %6.2f%%\n"
      "pool: tokens                       %6.2f%%\n"
      "pool: watermark                    %6.2f%%\n"
      "pool: tokens and watermark         %6.2f%%              %6.2f%%\n"
      "pool: waste and unused             %6.2f%%\n\n",
      100 * waste, 100 * result.last_waste, 100 * tokens, 100 * watermark,
      100 * (tokens + watermark), 100 * saturated.least_tokens_or_watermark,
      100 * (1 - tokens - watermark));
  std::printf(
      "sequences at once in these bytes: %.1f paged (at most %d), %lld "
      "contiguous with a context of %d: %.1fx\n",
      running, result.most_running, static_cast<long long>(contiguous),
      flags.context, contiguous == 0 ? 0.0 : running / contiguous);
}

void PrintJson(const Flags& flags, const std::vector<LoadRequest>& load,
               const Result& result) {
  const Totals& saturated = result.saturated;
  const nlohmann::ordered_json line = {
      {"requests", load.size()},
      {"pool_pages", flags.pool_pages},
      {"page_size", flags.page_size},
      {"watermark_pages", flags.scheduler.watermark_pages},
      {"steps", result.steps},
      {"saturated_steps", saturated.steps},
      {"waste_of_reserved", saturated.Mean(saturated.waste)},
      {"waste_of_reserved_at_end", result.last_waste},
      {"tokens_of_pool", saturated.Mean(saturated.tokens)},
      {"watermark_of_pool", saturated.Mean(saturated.watermark)},
      {"least_tokens_and_watermark_of_pool",
       saturated.least_tokens_or_watermark},
      {"sequences_running", saturated.Mean(saturated.running)},
      {"most_sequences_running", result.most_running},
      {"contiguous_context", flags.context},
      {"contiguous_sequences",
       int64_t{flags.pool_pages} * flags.page_size / flags.context},
      {"preemptions", result.preemptions},
      {"tokens_computed", result.tokens_computed},
      {"tokens_needed", result.tokens_needed}};
  std::cout << line.dump() << std::endl;
}

absl::Status CheckLengths(const Flags& flags,
                          const std::vector<LoadRequest>& load) {
  const int64_t most = std::min<int64_t>(
      flags.context, int64_t{flags.pool_pages} * flags.page_size);
  for (const LoadRequest& request : load) {
    const int64_t tokens = int64_t{request.prefix_tokens} +
                           request.prompt_tokens + request.output_tokens;
    if (tokens > most) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a request has ", tokens, " tokens; --context and the pool allow ",
          most, ". Give a larger --context or --pool-pages"));
    }
  }
  return absl::OkStatus();
}

absl::Status Run(const Flags& flags) {
  FOLIO_RETURN_IF_ERROR(flags.scheduler.Validate());
  std::vector<LoadRequest> load = MakeLoad({.count = 2000});
  if (!flags.trace.empty()) {
    FOLIO_ASSIGN_OR_RETURN(load, ReadTrace(flags.trace));
    FOLIO_RETURN_IF_ERROR(CheckPlain(load));
  }
  FOLIO_RETURN_IF_ERROR(CheckLengths(flags, load));
  const Result result = Simulation(flags, load).Run();
  if (result.saturated.steps == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("the pool was never full; --pool-pages ", flags.pool_pages,
                     " is too many for ", load.size(), " requests"));
  }
  (flags.json ? PrintJson : PrintTable)(flags, load, result);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Measures what of the page pool holds tokens at saturation.");
  app.footer(kExamples);
  app.add_option("trace", flags.trace,
                 "Requests, a JSON object a line with prompt_tokens and "
                 "output_tokens. Default: 2,000 whose lengths are log-normal "
                 "with medians of 200 and 150");
  const auto number = [&app](const char* name, int32_t& value, int32_t least,
                             const char* what) {
    app.add_option(name, value, what)
        ->capture_default_str()
        ->check(CLI::Range(least, 1 << 24).description(""))
        ->type_name("N");
  };
  number("--page-size", flags.page_size, 1, "Tokens in a page");
  number("--pool-pages", flags.pool_pages, 1, "Pages in the pool");
  number("--context", flags.context, 2,
         "Tokens for which a contiguous buffer has room");
  number("--watermark", flags.scheduler.watermark_pages, 0,
         "Pages for each running sequence, as of folio serve");
  number("--max-batch-tokens", flags.scheduler.max_batch_tokens, 1,
         "Most tokens that a step computes");
  number("--max-batch-sequences", flags.scheduler.max_batch_sequences, 1,
         "Most sequences that a step computes");
  app.add_flag("--json", flags.json, "One JSON object");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(flags);
  if (status.ok()) return 0;
  std::cerr << "waste: " << std::string(status.message()) << "\n";
  return 1;
}

}  // namespace
}  // namespace folio

int main(int argc, char** argv) { return folio::Main(argc, argv); }
