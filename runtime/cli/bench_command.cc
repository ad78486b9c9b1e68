#include "runtime/cli/bench_command.h"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "cache/kv_layout.h"
#include "runtime/base/byte_size.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_macros.h"
#include "runtime/cli/flags.h"
#include "runtime/cli/json_line.h"
#include "runtime/cli/open_engine.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  folio bench
  folio bench --model my-model --streams 1,32 --prompt-tokens 512 --json
  folio bench --model random:vocab=50257,hidden=576,heads=9,layers=2

Every stream begins at the same moment with a prompt of random tokens and goes
on until each has generated --generate-tokens. Prefill is timed until the last
prompt is through. The decode rate and the time outside the model are of the
steps after that, in which all streams generate one token each.

Inside the model: embedding, norms, projections, attention, activations and
lm_head. Outside: planning the step, building its input, sampling, log-softmax,
committing and detokenising.)";

constexpr int32_t kWarmUpTokens = 4;

struct BenchFlags {
  EngineFlags engine;
  int32_t prompt_tokens = 128;
  int32_t generate_tokens = 64;
  std::vector<int32_t> streams = {1, 4, 16, 32};
  std::optional<uint64_t> seed;
  bool json = false;

  int32_t max_streams() const {
    return *std::max_element(streams.begin(), streams.end());
  }
};

struct Measured {
  absl::Duration prefill;
  int64_t decode_steps = 0;
  int64_t decode_tokens = 0;
  absl::Duration decode;
  absl::Duration decode_forward;  // Of it, in the forward pass.

  double decode_seconds() const { return absl::ToDoubleSeconds(decode); }
  double outside_seconds() const {
    return absl::ToDoubleSeconds(decode - decode_forward);
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
  const int64_t tokens =
      std::min<int64_t>(model.context_length,
                        int64_t{flags.prompt_tokens} + flags.generate_tokens +
                            MostTokensAhead(flags, options.scheduler));
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

// One load on an engine that has nothing else to do.
class Load {
 public:
  Load(Engine* engine, const BenchFlags& flags)
      : engine_(*engine), flags_(flags) {}

  absl::Status Start(int32_t streams) {
    for (int32_t stream = 0; stream < streams; ++stream) {
      Request request;
      request.prompt = RandomPrompt(stream);
      request.ignore_eos = true;
      FOLIO_RETURN_IF_ERROR(engine_.Prepare(request));
      generated_.emplace(request.id, 0);
      FOLIO_RETURN_IF_ERROR(engine_.Submit(std::move(request)));
    }
    return absl::OkStatus();
  }

  // Steps until every stream has `generate_tokens` tokens (or as many as the
  // context allows), then ends them all.
  absl::StatusOr<Measured> Run(int32_t generate_tokens) {
    Measured measured;
    StepOutput output;
    while (!generated_.empty() && LeastGenerated() < generate_tokens) {
      const bool decodes = LeastGenerated() > 0;
      engine_.Step(output);
      if (!output.stepped) {
        return absl::InternalError(
            absl::StrCat("the engine made no step, though ", generated_.size(),
                         " streams are live; this is a bug in Folio"));
      }
      FOLIO_RETURN_IF_ERROR(Count(output.events));
      if (!decodes) {
        measured.prefill += output.report.duration;
        continue;
      }
      ++measured.decode_steps;
      measured.decode_tokens += output.report.decode_tokens;
      measured.decode += output.report.duration;
      measured.decode_forward += output.report.forward_duration;
    }
    for (const auto& [request, count] : generated_) engine_.Abort(request);
    while (engine_.Step(output)) {
    }
    return measured;
  }

 private:
  std::vector<TokenId> RandomPrompt(int32_t stream) const {
    std::vector<TokenId> prompt(flags_.prompt_tokens);
    const int32_t vocab_size = engine_.model_info().vocab_size;
    const uint64_t seed = flags_.seed.value_or(1);
    for (size_t i = 0; i < prompt.size(); ++i) {
      prompt[i] =
          static_cast<TokenId>(UniformDouble(seed, stream, i) * vocab_size);
    }
    return prompt;
  }

  int32_t LeastGenerated() const {
    int32_t least = INT32_MAX;
    for (const auto& [request, count] : generated_) {
      least = std::min(least, count);
    }
    return least;
  }

  absl::Status Count(const TokenEvents& events) {
    for (const TokenEvent& event : events) {
      if (event.finish_reason == FinishReason::kError) {
        return absl::InternalError(
            "the model gave logits that are not numbers");
      }
      if (event.terminal) {
        generated_.erase(event.request_id);
      } else {
        generated_[event.request_id] +=
            static_cast<int32_t>(event.sampled.tokens.size());
      }
    }
    return absl::OkStatus();
  }

  Engine& engine_;
  const BenchFlags& flags_;
  absl::flat_hash_map<RequestId, int32_t> generated_;  // Of live streams.
};

absl::StatusOr<Measured> Measure(Engine* engine, const BenchFlags& flags,
                                 int32_t streams, int32_t generate_tokens) {
  Load load(engine, flags);
  FOLIO_RETURN_IF_ERROR(load.Start(streams));
  return load.Run(generate_tokens);
}

void Print(const BenchFlags& flags, int32_t streams, const Measured& measured) {
  const double prefill_rate = int64_t{streams} * flags.prompt_tokens /
                              absl::ToDoubleSeconds(measured.prefill);
  const double decode_rate = measured.decode_tokens / measured.decode_seconds();
  const double share = measured.outside_seconds() / measured.decode_seconds();
  const double outside_us =
      measured.outside_seconds() * 1e6 / measured.decode_steps;
  if (flags.json) {
    PrintJsonLine(Json{{"streams", streams},
                       {"prompt_tokens", flags.prompt_tokens},
                       {"generate_tokens", flags.generate_tokens},
                       {"threads", flags.engine.threads},
                       {"prefill_tokens_per_second", prefill_rate},
                       {"decode_tokens_per_second", decode_rate},
                       {"decode_steps", measured.decode_steps},
                       {"outside_forward_share", share},
                       {"outside_forward_microseconds", outside_us}});
    return;
  }
  std::cout << absl::StreamFormat("%7d %14.1f %14.1f %13.2f%% %12.1f us\n",
                                  streams, prefill_rate, decode_rate,
                                  share * 100, outside_us)
            << std::flush;
}

absl::Status Bench(const BenchFlags& flags) {
  FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<OpenedEngine> opened,
                         Open(flags));
  Engine* const engine = opened->engine.get();
  if (!flags.json) {
    std::cout << absl::StreamFormat(
                     "%s: %d prompt and %d generated tokens a stream, %d "
                     "threads\n%7s %14s %14s %14s %15s\n",
                     engine->model_info().name, flags.prompt_tokens,
                     flags.generate_tokens, flags.engine.threads, "streams",
                     "prefill tok/s", "decode tok/s", "outside share",
                     "outside a step")
              << std::flush;
  }
  for (const int32_t streams : flags.streams) {
    if (!std::cout.good()) break;
    // The first time, memory is touched and kernels are made for the shapes.
    FOLIO_RETURN_IF_ERROR(
        Measure(engine, flags, streams,
                std::min(kWarmUpTokens, flags.generate_tokens))
            .status());
    FOLIO_ASSIGN_OR_RETURN(
        const Measured measured,
        Measure(engine, flags, streams, flags.generate_tokens));
    Print(flags, streams, measured);
  }
  return absl::OkStatus();
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
  command
      ->add_option("--prompt-tokens", flags->prompt_tokens,
                   "Tokens of each prompt")
      ->capture_default_str()
      ->check(CLI::Range(1, INT32_MAX).description(""))
      ->type_name("N");
  command
      ->add_option("--generate-tokens", flags->generate_tokens,
                   "Tokens that each stream generates, at least 2")
      ->capture_default_str()
      ->check(CLI::Range(2, INT32_MAX).description(""))
      ->type_name("N");
  AddListOption(*command, "--streams", flags->streams,
                "Numbers of streams, each measured. Default: 1,4,16,32");
  AddSeedOption(*command, flags->seed, "Of the random prompts. Default: 1");
  command->add_flag("--json", flags->json,
                    "One JSON object a line for each number of streams");
  command->callback([flags, &run] {
    for (const int32_t streams : flags->streams) {
      if (streams < 1) {
        throw CLI::ValidationError(
            "--streams",
            absl::StrCat(streams, " streams are none; use 1 or more"));
      }
      if (streams > kMaxBatchSequences) {
        throw CLI::ValidationError(
            "--streams",
            absl::StrCat(streams, " streams are too many; at most ",
                         kMaxBatchSequences, " are possible"));
      }
    }
    if (flags->streams.empty()) {
      throw CLI::ValidationError("--streams",
                                 "the list is empty; name at least one number");
    }
    run = [flags] { return Bench(*flags); };
  });
}

}  // namespace folio
