// What each mechanism of a paged runtime is worth: on and off, on one model, in
// one run. Every row says how its number was measured (see --help).

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "bench/bench_model.h"
#include "bench/load/inproc.h"
#include "bench/load/load.h"
#include "bench/load/metrics.h"
#include "bench/load/synthetic.h"
#include "cache/kv_layout.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  mechanisms
  mechanisms --model random:llama-135m --weights-dtype int8 --threads 2
  mechanisms --rounds 5 --json

continuous batching: 48 requests at once with outputs of different lengths, 16
  run at a time. Off: the next 16 begin when the last of the 16 before has
  ended. Output tokens a second.
chunked prefill: 8 requests generate when a prompt of 2,000 tokens arrives.
  On: it is computed 128 tokens a step, or in the row below as many as keep a
  step below 50 ms by the cost model. Off: in one step. The largest gap between
  two tokens of any of the 8.
prefix cache: 7 requests one after another, with a system prompt of 1,000 tokens
  in common and 50 of their own. Off: --no-prefix-cache. Time to first token,
  mean of all but the first request.
paged K/V: 96 requests at once, in a pool of 4 contexts of 4,096 tokens. The
  most that ever run at once. Off: what a contiguous buffer of the context
  length for each leaves room for, and in the row below what that costs in
  output tokens a second: the same run with as many sequences at most.
K/V cache: 64 tokens after a prompt of 128, one request. Off: each token
  computes the whole sequence again. Output tokens a second.

On and off take turns, --rounds times; medians are printed. "gain" is how many
times better on is than off.)";

struct Flags {
  BenchModelFlags model;
  int32_t rounds = 3;
  bool json = false;
};

struct Row {
  std::string mechanism;
  std::string unit;
  bool more_is_better = true;
  double on = 0;
  double off = 0;

  double gain() const {
    const double better = more_is_better ? on : off;
    const double worse = more_is_better ? off : on;
    return worse == 0 ? 0 : better / worse;
  }
};

constexpr char kTokensPerSecond[] = "tokens/s";

// What a step of the model has to have room for, of all loads.
constexpr int32_t kLongPrompt = 2000;
constexpr int32_t kDecoders = 8;
constexpr int32_t kMostSequences = 96;

class Bench {
 public:
  Bench(const Flags& flags, BenchModel& model) : flags_(flags), model_(model) {}

  absl::Status Run() {
    if (!flags_.json) {
      std::printf("%-34s %-10s %10s %10s %8s\n", "mechanism", "", "on", "off",
                  "gain");
    }
    FOLIO_RETURN_IF_ERROR(ContinuousBatching());
    FOLIO_RETURN_IF_ERROR(ChunkedPrefill());
    FOLIO_RETURN_IF_ERROR(PrefixCache());
    FOLIO_RETURN_IF_ERROR(PagedCache());
    return CachedDecode();
  }

 private:
  using Measured = absl::StatusOr<double>;

  absl::Status ContinuousBatching();
  absl::Status ChunkedPrefill();
  absl::Status PrefixCache();
  absl::Status PagedCache();
  absl::Status CachedDecode();

  static EngineOptions Options() {
    EngineOptions options;
    options.kv_pool_bytes = int64_t{512} << 20;
    options.scheduler.max_batch_sequences = 16;
    return options;
  }

  // Warmed up.
  absl::StatusOr<std::unique_ptr<Engine>> Open(const EngineOptions& options);

  // Measures on and off in turns and prints their medians.
  absl::Status Compare(Row row, const std::function<Measured()>& on,
                       const std::function<Measured()>& off);

  void Print(const Row& row) const;

  // A seed that no prompt has had: nothing of it is in a prefix cache.
  uint64_t FreshSeed() { return next_seed_++; }

  const Flags& flags_;
  BenchModel& model_;
  uint64_t next_seed_ = 1;
};

absl::StatusOr<std::unique_ptr<Engine>> Bench::Open(
    const EngineOptions& options) {
  FOLIO_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                         model_.MakeEngine(options));
  const std::vector<LoadRequest> warm_up(
      4, {.prompt_tokens = 100, .output_tokens = 8, .token_seed = FreshSeed()});
  FOLIO_RETURN_IF_ERROR(model_.Serve(warm_up, *engine).status());
  return engine;
}

absl::Status Bench::Compare(Row row, const std::function<Measured()>& on,
                            const std::function<Measured()>& off) {
  std::vector<double> all_on;
  std::vector<double> all_off;
  for (int32_t round = 0; round < flags_.rounds; ++round) {
    FOLIO_ASSIGN_OR_RETURN(all_on.emplace_back(), on());
    FOLIO_ASSIGN_OR_RETURN(all_off.emplace_back(), off());
  }
  row.on = Median(std::move(all_on));
  row.off = Median(std::move(all_off));
  Print(row);
  return absl::OkStatus();
}

void Bench::Print(const Row& row) const {
  if (flags_.json) {
    const nlohmann::ordered_json line = {{"mechanism", row.mechanism},
                                         {"unit", row.unit},
                                         {"on", row.on},
                                         {"off", row.off},
                                         {"gain", row.gain()}};
    std::cout << line.dump() << std::endl;
    return;
  }
  std::printf("%-34s %-10s %10.1f %10.1f %7.1fx\n", row.mechanism.c_str(),
              row.unit.c_str(), row.on, row.off, row.gain());
  std::fflush(stdout);
}

absl::Status Bench::ContinuousBatching() {
  constexpr int32_t kRequests = 48;
  FOLIO_ASSIGN_OR_RETURN(const auto engine, Open(Options()));
  const auto batch =
      static_cast<size_t>(engine->options().scheduler.max_batch_sequences);
  // Serves the load `at_once` requests at a time.
  const auto serve = [&](size_t at_once) -> Measured {
    const std::vector<LoadRequest> load =
        MakeLoad({.count = kRequests,
                  .prompt = LogNormalLength{32, 0.5, 128},
                  .output = LogNormalLength{40, 0.8, 200}});
    int64_t tokens = 0;
    absl::Duration duration;
    for (size_t first = 0; first < load.size(); first += at_once) {
      const auto part = std::span(load).subspan(
          first, std::min(at_once, load.size() - first));
      FOLIO_ASSIGN_OR_RETURN(const std::vector<RequestRecord> records,
                             model_.Serve(part, *engine));
      const LoadMetrics metrics = Measure(records);
      tokens += metrics.output_tokens;
      duration += metrics.duration;
    }
    engine->FlushPrefixCache();
    return static_cast<double>(tokens) / absl::ToDoubleSeconds(duration);
  };
  return Compare(
      {.mechanism = "continuous batching", .unit = kTokensPerSecond},
      [&] { return serve(kRequests); }, [&] { return serve(batch); });
}

absl::Status Bench::ChunkedPrefill() {
  const auto open = [&](int32_t max_batch_tokens,
                        std::optional<absl::Duration> target) {
    EngineOptions options = Options();
    options.scheduler.max_batch_tokens = max_batch_tokens;
    options.scheduler.target_itl = target;
    return Open(options);
  };
  const auto largest_gap = [&](Engine& engine) -> Measured {
    std::vector<LoadRequest> load;
    for (int32_t i = 0; i < kDecoders; ++i) {
      load.push_back({.prompt_tokens = 32,
                      .output_tokens = 120,
                      .token_seed = FreshSeed()});
    }
    load.push_back({.arrival = absl::Milliseconds(700),
                    .prompt_tokens = kLongPrompt,
                    .output_tokens = 1,
                    .token_seed = FreshSeed()});
    FOLIO_ASSIGN_OR_RETURN(const std::vector<RequestRecord> records,
                           model_.Serve(load, engine));
    return absl::ToDoubleMilliseconds(
        Measure(std::span(records).first(kDecoders)).itl.max);
  };
  FOLIO_ASSIGN_OR_RETURN(const auto whole,
                         open(kLongPrompt + kDecoders, std::nullopt));
  FOLIO_ASSIGN_OR_RETURN(const auto chunks,
                         open(128 + kDecoders, std::nullopt));
  FOLIO_ASSIGN_OR_RETURN(const auto target,
                         open(kLongPrompt + kDecoders, absl::Milliseconds(50)));
  const auto off = [&] { return largest_gap(*whole); };
  FOLIO_RETURN_IF_ERROR(Compare(
      {.mechanism = "chunked prefill, 128 a step",
       .unit = "ms gap",
       .more_is_better = false},
      [&] { return largest_gap(*chunks); }, off));
  return Compare(
      {.mechanism = "chunked prefill, target of 50 ms",
       .unit = "ms gap",
       .more_is_better = false},
      [&] { return largest_gap(*target); }, off);
}

absl::Status Bench::PrefixCache() {
  constexpr int32_t kRequests = 7;
  const auto open = [&](bool prefix_cache) {
    EngineOptions options = Options();
    options.prefix_cache = prefix_cache;
    return Open(options);
  };
  const auto first_token = [&](Engine& engine) -> Measured {
    const uint64_t system_seed = FreshSeed();
    absl::Duration sum;
    for (int32_t i = 0; i < kRequests; ++i) {
      const LoadRequest load{.prompt_tokens = 50,
                             .output_tokens = 2,
                             .token_seed = FreshSeed(),
                             .prefix_seed = system_seed,
                             .prefix_tokens = 1000};
      FOLIO_ASSIGN_OR_RETURN(const std::vector<RequestRecord> records,
                             model_.Serve(std::span(&load, 1), engine));
      if (i > 0) sum += records[0].samples[0][0];
    }
    return absl::ToDoubleMilliseconds(sum / (kRequests - 1));
  };
  FOLIO_ASSIGN_OR_RETURN(const auto with, open(true));
  FOLIO_ASSIGN_OR_RETURN(const auto without, open(false));
  return Compare(
      {.mechanism = "prefix cache, 1,000 tokens shared",
       .unit = "ms TTFT",
       .more_is_better = false},
      [&] { return first_token(*with); },
      [&] { return first_token(*without); });
}

absl::Status Bench::PagedCache() {
  constexpr int32_t kContext = 4096;
  constexpr int32_t kContiguous = 4;
  constexpr int32_t kRequests = kMostSequences;
  const auto open = [&](int32_t sequences) {
    EngineOptions options = Options();
    options.scheduler.max_batch_sequences = sequences;
    const KvLayout layout(model_.info().kv_shape, options.page_size);
    options.kv_pool_bytes =
        kContiguous * layout.PagesFor(kContext) * layout.page_bytes();
    return Open(options);
  };
  int32_t most_running = 0;
  InprocOptions watch;
  watch.after_step = [&](const StepOutput& output) {
    most_running = std::max(most_running, output.report.sequences_running);
  };
  const auto serve = [&](Engine& engine) -> Measured {
    most_running = 0;
    engine.FlushPrefixCache();
    const std::vector<LoadRequest> load =
        MakeLoad({.count = kRequests,
                  .prompt = LogNormalLength{120, 0.9, 1000},
                  .output = LogNormalLength{40, 0.5, 200}});
    FOLIO_ASSIGN_OR_RETURN(const std::vector<RequestRecord> records,
                           model_.Serve(load, engine, watch));
    return Measure(records).output_tokens_per_second;
  };
  // As many may run as there are requests: pages alone decide.
  FOLIO_ASSIGN_OR_RETURN(const auto paged, open(kRequests));
  FOLIO_ASSIGN_OR_RETURN(const auto contiguous, open(kContiguous));
  Row row{.mechanism = "paged K/V", .unit = "at once"};
  FOLIO_ASSIGN_OR_RETURN(const double fast, serve(*paged));
  row.on = most_running;
  FOLIO_ASSIGN_OR_RETURN(const double slow, serve(*contiguous));
  row.off = most_running;
  if (most_running != kContiguous) {
    return absl::InternalError(
        absl::StrCat(most_running,
                     " sequences ran, where buffers of the context length "
                     "leave room for ",
                     kContiguous));
  }
  Print(row);
  Print({.mechanism = "paged K/V",
         .unit = kTokensPerSecond,
         .on = fast,
         .off = slow});
  return absl::OkStatus();
}

absl::Status Bench::CachedDecode() {
  const auto open = [&](bool recompute) {
    EngineOptions options = Options();
    options.scheduler.recompute_always = recompute;
    return Open(options);
  };
  const auto serve = [&](Engine& engine) -> Measured {
    const LoadRequest load{
        .prompt_tokens = 128, .output_tokens = 64, .token_seed = FreshSeed()};
    FOLIO_ASSIGN_OR_RETURN(const std::vector<RequestRecord> records,
                           model_.Serve(std::span(&load, 1), engine));
    return Measure(records).output_tokens_per_second;
  };
  FOLIO_ASSIGN_OR_RETURN(const auto cached, open(false));
  FOLIO_ASSIGN_OR_RETURN(const auto recomputed, open(true));
  return Compare(
      {.mechanism = "K/V cache", .unit = kTokensPerSecond},
      [&] { return serve(*cached); }, [&] { return serve(*recomputed); });
}

absl::Status Run(const Flags& flags) {
  const EngineOptions largest{
      .scheduler = {.max_batch_tokens = kLongPrompt + kDecoders,
                    .max_batch_sequences = kMostSequences}};
  FOLIO_ASSIGN_OR_RETURN(const auto model,
                         BenchModel::Open(flags.model, largest.model_limits()));
  return Bench(flags, *model).Run();
}

}  // namespace
}  // namespace folio

int main(int argc, char** argv) {
  folio::Flags flags;
  CLI::App app("Measures each mechanism on and off.");
  app.footer(folio::kExamples);
  folio::AddModelFlags(app, flags.model);
  app.add_option("--rounds", flags.rounds, "Measurements of each, in turns")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
  app.add_flag("--json", flags.json, "One JSON object a line");
  return folio::RunBenchmark(app, argc, argv,
                             [&] { return folio::Run(flags); });
}
