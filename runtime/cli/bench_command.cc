#include "runtime/cli/bench_command.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cache/kv_layout.h"
#include "runtime/base/byte_size.h"
#include "runtime/base/status_macros.h"
#include "runtime/cli/bench_ceiling.h"
#include "runtime/cli/bench_load.h"
#include "runtime/cli/bench_printer.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/flags.h"
#include "runtime/cli/json_line.h"
#include "runtime/model/gguf_export.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  folio bench
  folio bench --model random:llama-135m --weights-dtype bf16
  folio bench --model random:llama-135m --streams 16 --prompt-tokens 2000
  folio bench --model random:llama-1b --streams 1,16 --json
  folio bench --model random:llama-135m --write-gguf 135m.gguf --gguf-type q8_0

Every stream begins at the same moment with a prompt of random tokens and goes
on until each has generated --generate-tokens. Prefill is timed until the last
prompt is through. The decode rate and the time outside the model are of the
steps after that, in which all streams generate one token each.

Inside the model: embedding, norms, projections, attention, activations and
lm_head. Outside: planning the step, building its input, sampling, log-softmax,
committing and detokenising.

The ceiling is what a step takes at least: the time of its own matrix products
(logits for sampled rows only), called on oneDNN directly, and of reading its
K/V at the bandwidth of memory. It is measured between steps, right after one,
as often as takes no longer than the steps themselves; so a model that would
stay in the caches does not. Of each number of streams --rounds loads run, and
medians are printed.)";

constexpr int32_t kWarmUpTokens = 4;

struct BenchFlags {
  EngineFlags engine;
  int32_t prompt_tokens = 128;
  int32_t generate_tokens = 64;
  std::vector<int32_t> streams = {1, 4, 16, 32};
  int32_t rounds = 3;
  std::optional<uint64_t> seed;
  bool no_ceiling = false;
  std::string write_prompts;
  std::string write_gguf;
  std::string gguf_type = "bf16";
  bool json = false;

  int32_t max_streams() const {
    return *std::max_element(streams.begin(), streams.end());
  }
  // No two rounds have a prompt in common.
  BenchLoad LoadOf(int32_t num_streams, int32_t round) const {
    return {.streams = num_streams,
            .prompt_tokens = prompt_tokens,
            .generate_tokens = generate_tokens,
            .seed = seed.value_or(1),
            .first_prompt = int64_t{round} * max_streams()};
  }
};

// Prompts go through one after another, so the first stream is ahead of the
// last by as many tokens as the prefill of the others takes steps.
int64_t MostTokensAhead(const BenchFlags& flags,
                        const SchedulerOptions& options) {
  const int64_t streams = flags.max_streams();
  const int64_t prefill_a_step =
      std::max<int64_t>(1, options.max_batch_tokens - streams);
  return streams * flags.prompt_tokens / prefill_a_step + 1;
}

// Enough for all streams at their longest, so that none is ever preempted.
int64_t PoolToFit(const BenchFlags& flags, const ModelInfo& model,
                  const EngineOptions& options) {
  const KvLayout layout(model.kv_shape, options.page_size);
  int64_t tokens =
      std::min<int64_t>(model.context_length,
                        int64_t{flags.prompt_tokens} + flags.generate_tokens +
                            MostTokensAhead(flags, options.scheduler));
  if (model.window.has_value()) {
    // The window, the tokens of one step, and the page that neither fills.
    tokens = std::min<int64_t>(tokens, int64_t{*model.window} +
                                           options.scheduler.max_batch_tokens +
                                           options.page_size);
  }
  return flags.max_streams() * layout.PagesFor(tokens) * layout.page_bytes();
}

absl::Status Check(const BenchFlags& flags, const Engine& engine) {
  const ModelInfo& model = engine.model_info();
  const int64_t tokens = int64_t{flags.prompt_tokens} + flags.generate_tokens;
  if (tokens > model.context_length) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--prompt-tokens and --generate-tokens are ", tokens,
        " together, more than the model's context of ", model.context_length));
  }
  const int64_t needed = PoolToFit(flags, model, engine.options());
  if (engine.options().kv_pool_bytes < needed) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--kv-pool is ", FormatByteSize(engine.options().kv_pool_bytes),
        "; without preemptions ", flags.max_streams(), " streams need ", needed,
        " bytes. Leave the flag out to get as much as is needed"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OpenedEngine>> Open(const BenchFlags& flags) {
  EngineOptions options = flags.engine.ToOptions();
  // Each round computes its prompts, and all streams start together.
  options.prefix_cache = false;
  options.scheduler.watermark_pages = 0;
  SchedulerOptions& scheduler = options.scheduler;
  if (!flags.engine.max_batch_sequences.has_value()) {
    scheduler.max_batch_sequences = flags.max_streams();
  }
  if (!flags.engine.max_batch_tokens.has_value()) {
    scheduler.max_batch_tokens =
        std::max(scheduler.max_batch_tokens, scheduler.max_batch_sequences);
  }
  if (scheduler.max_batch_sequences < flags.max_streams()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max-batch-sequences is ", scheduler.max_batch_sequences,
                     "; ", flags.max_streams(), " streams need as many"));
  }
  ChoosePool choose_pool;
  if (!flags.engine.kv_pool_bytes.has_value()) {
    choose_pool = [&](const ModelInfo& model, const EngineOptions& with) {
      return PoolToFit(flags, model, with);
    };
  }
  FOLIO_ASSIGN_OR_RETURN(std::unique_ptr<OpenedEngine> opened,
                         OpenEngine(flags.engine, options, choose_pool));
  FOLIO_RETURN_IF_ERROR(Check(flags, *opened->engine));
  return opened;
}

// One JSON array a line for each stream of the first load.
absl::Status WritePrompts(const BenchFlags& flags, int32_t vocab_size) {
  std::ofstream file(flags.write_prompts);
  const BenchLoad load = flags.LoadOf(flags.max_streams(), /*round=*/0);
  for (int32_t stream = 0; stream < load.streams; ++stream) {
    file << Json(RandomPrompt(load.seed, load.first_prompt + stream,
                              load.prompt_tokens, vocab_size))
                .dump()
         << '\n';
  }
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("writing '", flags.write_prompts, "' failed"));
}

absl::Status WriteGguf(const BenchFlags& flags) {
  FOLIO_ASSIGN_OR_RETURN(const DType type, FindGgufExportType(flags.gguf_type));
  FOLIO_ASSIGN_OR_RETURN(const ModelLocation location,
                         FindModel(flags.engine.model));
  FOLIO_ASSIGN_OR_RETURN(const ModelSource source, OpenModelSource(location));
  FOLIO_RETURN_IF_ERROR(ExportGguf(source, type, flags.write_gguf));
  if (flags.write_prompts.empty()) return absl::OkStatus();
  return WritePrompts(flags, source.config.vocab_size);
}

// Measures one number of streams.
absl::StatusOr<BenchResult> Measure(const BenchFlags& flags, int32_t streams,
                                    Engine& engine, BenchCeiling* ceiling) {
  // The first time, memory is touched and kernels are made for the shapes.
  BenchLoad warm_up = flags.LoadOf(streams, flags.rounds);
  warm_up.generate_tokens = std::min(kWarmUpTokens, flags.generate_tokens);
  FOLIO_RETURN_IF_ERROR(
      RunBenchLoad(warm_up, engine, [](BenchPhase, const BenchStep&) {}));
  BenchResult result;
  for (int32_t round = 0; round < flags.rounds; ++round) {
    const BenchLoad load = flags.LoadOf(streams, round);
    PhaseCeiling prefill(ceiling);
    PhaseCeiling decode(ceiling);
    FOLIO_RETURN_IF_ERROR(RunBenchLoad(
        load, engine, [&](BenchPhase phase, const BenchStep& step) {
          (phase == BenchPhase::kPrefill ? prefill : decode).After(step);
        }));
    result.AddRound(load, prefill, decode, ceiling != nullptr);
  }
  return result;
}

absl::Status Bench(const BenchFlags& flags) {
  if (!flags.write_gguf.empty()) return WriteGguf(flags);
  FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<OpenedEngine> opened,
                         Open(flags));
  Engine& engine = *opened->engine;
  const ModelInfo& model = engine.model_info();
  if (!flags.write_prompts.empty()) {
    FOLIO_RETURN_IF_ERROR(WritePrompts(flags, model.vocab_size));
  }
  std::unique_ptr<BenchCeiling> ceiling;
  if (!flags.no_ceiling && BenchCeiling::IsPossible(model.weights_type)) {
    ceiling = std::make_unique<BenchCeiling>(
        opened->model_config, model.weights_type, opened->executor.get());
  }
  const BenchPrinter printer(flags.json, flags.engine.threads, model);
  printer.PrintHeader(flags.LoadOf(flags.max_streams(), 0));
  for (const int32_t streams : flags.streams) {
    if (!std::cout.good()) break;
    FOLIO_ASSIGN_OR_RETURN(const BenchResult result,
                           Measure(flags, streams, engine, ceiling.get()));
    printer.Print(flags.LoadOf(streams, 0), result);
  }
  return absl::OkStatus();
}

void AddLoadOptions(CLI::App& command, BenchFlags& flags) {
  command
      .add_option("--prompt-tokens", flags.prompt_tokens,
                  "Tokens of each prompt")
      ->capture_default_str()
      ->check(CLI::Range(1, INT32_MAX).description(""))
      ->type_name("N");
  command
      .add_option("--generate-tokens", flags.generate_tokens,
                  "Tokens that each stream generates, at least 2")
      ->capture_default_str()
      ->check(CLI::Range(2, INT32_MAX).description(""))
      ->type_name("N");
  AddListOption(command, "--streams", flags.streams,
                "Numbers of streams, each measured. Default: 1,4,16,32");
  command
      .add_option("--rounds", flags.rounds,
                  "Loads of each number of streams, of which medians are taken")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
  AddSeedOption(command, flags.seed, "Of the random prompts. Default: 1");
  command.add_flag("--no-ceiling", flags.no_ceiling,
                   "Measures no ceilings, which take as much memory as the "
                   "weights");
}

void AddFileOptions(CLI::App& command, BenchFlags& flags) {
  command
      .add_option("--write-prompts", flags.write_prompts,
                  "Writes the prompts of the first round to a file, an array "
                  "of token ids a line")
      ->type_name("PATH");
  command
      .add_option("--write-gguf", flags.write_gguf,
                  "Measures nothing, and writes the model to a GGUF file")
      ->type_name("PATH");
  command
      .add_option("--gguf-type", flags.gguf_type,
                  "Of the matrices in that file: bf16, f32, q8_0 or q4_0")
      ->capture_default_str()
      ->type_name("TYPE");
}

void CheckStreams(const std::vector<int32_t>& numbers) {
  for (const int32_t streams : numbers) {
    if (streams < 1) {
      throw CLI::ValidationError(
          "--streams",
          absl::StrCat(streams, " streams are none; use 1 or more"));
    }
    if (streams > kMaxBatchSequences) {
      throw CLI::ValidationError(
          "--streams", absl::StrCat(streams, " streams are too many; at most ",
                                    kMaxBatchSequences, " are possible"));
    }
  }
  if (numbers.empty()) {
    throw CLI::ValidationError("--streams",
                               "the list is empty; name at least one number");
  }
}

}  // namespace

void AddBenchCommand(CLI::App& app, CommandRun& run) {
  const auto flags = std::make_shared<BenchFlags>();
  CLI::App* const command = app.add_subcommand(
      "bench", "Measures prefill and decode in this process");
  command->footer(kExamples);
  EngineFlagDefaults defaults;
  defaults.kv_pool = "as much as is needed";
  defaults.max_batch_tokens += ", or more for more streams";
  defaults.max_batch_sequences = "the most streams";
  AddEngineFlags(*command, flags->engine, defaults);
  AddLoadOptions(*command, *flags);
  AddFileOptions(*command, *flags);
  command->add_flag("--json", flags->json,
                    "One JSON object a line for each number of streams");
  command->callback([flags, &run] {
    CheckStreams(flags->streams);
    run = [flags] { return Bench(*flags); };
  });
}

}  // namespace folio
