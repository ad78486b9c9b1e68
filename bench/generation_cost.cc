// What generating costs with the KV cache and without it, beside the laws: with
// P prompt tokens and G generated ones, attention takes P^2 + PG operations
// (and G^2) with the cache, and P^2 G + P G^2 + G^3 without it.

#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/engine.h"
#include "runtime/model/model_registry.h"
#include "runtime/tokenizer/byte_tokenizer.h"

namespace folio {
namespace {

struct Cost {
  double seconds = 0;
  int64_t tokens_computed = 0;
  int64_t pairs = 0;  // (query, key) pairs that attention looked at, a head.
};

// Generates `generate` tokens after `prompt` ones, one request alone.
absl::StatusOr<Cost> Generate(const std::string& model_spec, int32_t prompt,
                              int32_t generate, bool recompute,
                              Executor* executor) {
  EngineOptions options;
  options.scheduler = {.max_batch_tokens = 4096,
                       .max_batch_sequences = 1,
                       .recompute_always = recompute};
  FOLIO_ASSIGN_OR_RETURN(
      std::unique_ptr<Model> model,
      OpenModel(model_spec, options.model_limits(), executor));
  const ByteTokenizer tokenizer(model->info().vocab_size);
  const SystemClock clock;
  FOLIO_ASSIGN_OR_RETURN(
      const std::unique_ptr<Engine> engine,
      Engine::Create(options, std::move(model), &tokenizer, &clock, executor));

  Request request;
  request.prompt.assign(prompt, 1);
  request.max_tokens = generate;
  request.ignore_eos = true;
  FOLIO_RETURN_IF_ERROR(engine->Prepare(request));
  FOLIO_RETURN_IF_ERROR(engine->Submit(std::move(request)));

  Cost cost;
  StepOutput output;
  bool has_work = true;
  while (has_work) {
    has_work = engine->Step(output);
    if (!output.stepped) continue;
    const int64_t computed =
        output.report.prefill_tokens + output.report.decode_tokens;
    const int64_t held = output.report.memory.tokens_held;
    cost.seconds += absl::ToDoubleSeconds(output.report.duration);
    cost.tokens_computed += computed;
    // The token at position p looks at p + 1 keys.
    cost.pairs +=
        (held * (held + 1) - (held - computed) * (held - computed + 1)) / 2;
  }
  return cost;
}

struct Flags {
  std::string model = "random:vocab=128,hidden=128,heads=4,layers=4";
  int32_t prompt_tokens = 128;
  std::vector<int32_t> generate_tokens = {32, 64, 128, 256, 512};
  int threads = NumUsableCores();
};

double CachedLaw(double p, double g) { return p * p + p * g + g * g; }
double RecomputedLaw(double p, double g) {
  return p * p * g + p * g * g + g * g * g;
}

absl::Status Run(const Flags& flags) {
  const std::unique_ptr<Executor> executor =
      MakeParallelExecutor(flags.threads);
  std::printf(
      "P = %d prompt tokens, G generated ones, %s, %d threads.\n"
      "tokens: computed; pairs: (query, key) pairs of attention, counted; "
      "law:\n"
      "cached P^2 + PG + G^2 (P^2 + PG while G is small), recomputed "
      "P^2 G + P G^2 + G^3.\n\n"
      "            -------------- cached --------------   "
      "------------ recomputed ------------\n"
      "     G        s  tokens      pairs  pairs/law        s   tokens       "
      "pairs  pairs/law   speed-up\n",
      flags.prompt_tokens, flags.model.c_str(), flags.threads);
  for (const int32_t generate : flags.generate_tokens) {
    const double p = flags.prompt_tokens;
    FOLIO_ASSIGN_OR_RETURN(const Cost cached,
                           Generate(flags.model, flags.prompt_tokens, generate,
                                    /*recompute=*/false, executor.get()));
    FOLIO_ASSIGN_OR_RETURN(const Cost recomputed,
                           Generate(flags.model, flags.prompt_tokens, generate,
                                    /*recompute=*/true, executor.get()));
    std::printf(
        "%6d %8.3f %7lld %10lld %10.2f %8.3f %8lld %11lld %10.2f %9.1fx\n",
        generate, cached.seconds,
        static_cast<long long>(cached.tokens_computed),
        static_cast<long long>(cached.pairs),
        cached.pairs / CachedLaw(p, generate), recomputed.seconds,
        static_cast<long long>(recomputed.tokens_computed),
        static_cast<long long>(recomputed.pairs),
        recomputed.pairs / RecomputedLaw(p, generate),
        recomputed.seconds / cached.seconds);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  FLAGS_minloglevel = google::GLOG_WARNING;
  Flags flags;
  CLI::App app(
      "Compares generating with the KV cache to recomputing every token.");
  app.footer(
      "Example:\n  generation_cost --prompt-tokens 512 --generate-tokens "
      "64,256");
  app.add_option("--model", flags.model, "As for folio bench")
      ->capture_default_str();
  app.add_option("--prompt-tokens", flags.prompt_tokens)
      ->capture_default_str()
      ->check(CLI::Range(1, 2048));
  app.add_option("--generate-tokens", flags.generate_tokens)
      ->capture_default_str()
      ->delimiter(',')
      ->check(CLI::Range(1, 2000));
  app.add_option("--threads", flags.threads)
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(flags);
  if (!status.ok())
    std::cerr << "generation_cost: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace folio

int main(int argc, char** argv) { return folio::Main(argc, argv); }
