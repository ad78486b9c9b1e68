#include "runtime/cli/engine_flags.h"

#include <glog/logging.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/byte_size.h"
#include "runtime/base/clock.h"
#include "runtime/cli/flags.h"
#include "runtime/model/model_registry.h"
#include "scheduler/scheduling_policy.h"

namespace folio {
namespace {

// Scratch memory grows with these, too; beyond, a number is a slip.
constexpr int kMaxBatchTokens = 1 << 20;
constexpr int kMaxWatermarkPages = 1 << 16;
constexpr int kMaxWaitingRequests = 1 << 24;
constexpr int64_t kMaxWaitingTokens = int64_t{1} << 40;

// Says how far loading is, once a second from the first second on.
class ProgressLines {
 public:
  void Start(const std::string& name) {
    name_ = name;
    last_ = clock_.Now();
  }

  void Show(int64_t done, int64_t total) {
    const absl::Time now = clock_.Now();
    if (now - last_ < absl::Seconds(1) || total == 0) return;
    last_ = now;
    std::cerr << "folio: loading " << name_ << ": " << 100 * done / total << "%"
              << std::endl;
  }

 private:
  const SystemClock clock_;
  std::string name_;
  absl::Time last_;
};

void LogChecked(const ModelSource& source, const TokenizerInfo& tokenizer,
                const WantedTypes& types) {
  LOG_IF(WARNING, tokenizer.vocab_size > source.config.vocab_size)
      << "the tokenizer has " << tokenizer.vocab_size
      << " tokens and the model " << source.config.vocab_size
      << ": text that needs one of the others will be refused";
  LOG(INFO) << ExplainTypes(source, types);
}

}  // namespace

EngineFlagDefaults::EngineFlagDefaults()
    : kv_pool(FormatByteSize(EngineOptions().kv_pool_bytes)),
      max_batch_tokens(absl::StrCat(SchedulerOptions().max_batch_tokens)),
      max_batch_sequences(
          absl::StrCat(SchedulerOptions().max_batch_sequences)) {}

EngineOptions EngineFlags::ToOptions() const {
  EngineOptions options;
  options.page_size = page_size;
  options.kv_pool_bytes = kv_pool_bytes.value_or(options.kv_pool_bytes);
  options.prefix_cache = !no_prefix_cache;
  options.queue = queue;
  options.caps = caps;
  options.scheduler = scheduling;
  SchedulerOptions& scheduler = options.scheduler;
  scheduler.priority_ageing =
      priority_ageing.value_or(scheduler.priority_ageing);
  scheduler.max_batch_tokens =
      max_batch_tokens.value_or(scheduler.max_batch_tokens);
  scheduler.max_batch_sequences = max_batch_sequences.value_or(
      std::min(scheduler.max_batch_sequences, scheduler.max_batch_tokens));
  return options;
}

void AddTypeOptions(CLI::App& app, WantedTypes& types) {
  static constexpr ElementType kWeights[] = {
      ElementType::kF32, ElementType::kBf16, ElementType::kInt8,
      ElementType::kInt4};
  static constexpr ElementType kKv[] = {ElementType::kF32, ElementType::kBf16,
                                        ElementType::kInt8};
  AddElementTypeOption(app, "--weights-dtype", kWeights, types.weights,
                       "What weights are kept and multiplied in. auto: f32 "
                       "for files of f32 or f16, else bf16. "
                       "int8 and int4 are faster and less exact");
  AddElementTypeOption(app, "--kv-dtype", kKv, types.kv,
                       "What keys and values are kept in. auto: f32 with "
                       "weights of f32, else bf16");
}

void AddEngineFlags(CLI::App& app, EngineFlags& flags,
                    const EngineFlagDefaults& defaults) {
  app.add_option("--model", flags.model,
                 "Folder in the Hugging Face layout, or a GGUF file; or random "
                 "weights: llama-135m or llama-1b, any of the keys arch, "
                 "vocab, hidden, heads, kv_heads, head_dim, ffn, layers, "
                 "context, window, tied, seed, or both. "
                 "Default: the embedded model")
      ->type_name("PATH|random:KEY=N,...");
  AddTypeOptions(app, flags.types);
  AddByteSizeOption(app, "--kv-pool", flags.kv_pool_bytes,
                    "Memory for keys and values, such as 1.5GiB. Default: " +
                        defaults.kv_pool);
  app.add_option("--page-size", flags.page_size,
                 "Tokens in a page: 8, 16, 32, 64 or 128")
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--max-batch-tokens", flags.max_batch_tokens,
                 "Most tokens that a step computes. Default: " +
                     defaults.max_batch_tokens)
      ->check(CLI::Range(1, kMaxBatchTokens).description(""))
      ->type_name("N");
  app.add_option("--max-batch-sequences", flags.max_batch_sequences,
                 "Most sequences that a step computes. Default: " +
                     defaults.max_batch_sequences)
      ->check(CLI::Range(1, kMaxBatchSequences).description(""))
      ->type_name("N");
  app.add_option("--threads", flags.threads,
                 "Threads that compute. Default: one for each usable core")
      ->check(CLI::Range(1, kMaxThreads).description(""))
      ->type_name("N");
  app.add_flag("--no-prefix-cache", flags.no_prefix_cache,
               "Forget keys and values with their request, also where another "
               "one may begin with the same tokens");
}

namespace {

void AddCapFlags(CLI::App& app, RequestCaps& caps) {
  app.add_option("--max-prompt-tokens", caps.max_prompt_tokens,
                 "Of one request. Default: what the context and the KV pool "
                 "allow")
      ->check(
          CLI::Range(1, std::numeric_limits<int32_t>::max()).description(""))
      ->type_name("N");
  app.add_option("--max-samples", caps.max_samples,
                 "Samples (n) of one request. Default: --max-batch-sequences")
      ->check(CLI::Range(1, kMaxBatchSequences).description(""))
      ->type_name("N");
  app.add_option("--max-logprobs", caps.max_logprobs,
                 "Logprobs that one request may get, alternatives included; "
                 "each takes some 64 bytes until it is read")
      ->check(CLI::Range(int64_t{0}, kMaxWaitingTokens).description(""))
      ->capture_default_str()
      ->type_name("N");
}

}  // namespace

void AddSchedulingFlags(CLI::App& app, EngineFlags& flags) {
  std::vector<std::string> names;
  std::string explained;
  for (const SchedulingPolicyEntry& policy : SchedulingPolicies()) {
    names.emplace_back(policy.name);
    if (!explained.empty()) explained += "; ";
    explained.append(policy.name).append(": ").append(policy.description);
  }
  SchedulerOptions& scheduler = flags.scheduling;
  app.add_option("--policy", scheduler.policy, "Who goes first. " + explained)
      ->check(CLI::IsMember(names).description(""))
      ->capture_default_str()
      ->type_name(absl::StrJoin(names, "|"));
  AddDurationOption(app, "--priority-ageing", flags.priority_ageing,
                    "With --policy priority: the wait that makes up for a "
                    "priority greater by one. Default: " +
                        absl::FormatDuration(scheduler.priority_ageing));
  app.add_option("--max-prefill-share", scheduler.max_prefill_share,
                 "Most of --max-batch-tokens that prompts get while others "
                 "decode, above 0 and at most 1")
      ->check(CLI::Range(1e-6, 1.0).description(""))
      ->capture_default_str()
      ->type_name("SHARE");
  AddDurationOption(app, "--target-itl", scheduler.target_itl,
                    "Give prompts as much of each step as keeps it, by what "
                    "steps have taken so far, below this. Default: no target");
  app.add_option("--watermark", scheduler.watermark_pages,
                 "Pages for each running sequence that stay available when "
                 "another is admitted, for what they will generate")
      ->check(CLI::Range(0, kMaxWatermarkPages).description(""))
      ->capture_default_str()
      ->type_name("PAGES");
  app.add_option("--max-waiting-requests", flags.queue.max_waiting_requests,
                 "Requests that may wait; more are refused at once")
      ->check(CLI::Range(0, kMaxWaitingRequests).description(""))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--max-waiting-tokens", flags.queue.max_waiting_tokens,
                 "Prompt tokens that may wait, unless nobody else waits")
      ->check(CLI::Range(int64_t{0}, kMaxWaitingTokens).description(""))
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--max-tenant-requests", flags.queue.max_tenant_requests,
                 "Running and waiting requests of one tenant. 0: no limit")
      ->check(CLI::Range(0, kMaxWaitingRequests).description(""))
      ->capture_default_str()
      ->type_name("N");
  AddCapFlags(app, flags.caps);
}

absl::StatusOr<std::unique_ptr<OpenedEngine>> OpenEngine(
    const EngineFlags& flags, EngineOptions options, ChoosePool choose_pool) {
  ProgressLines progress;
  return OpenEngine(
      {.model = flags.model,
       .types = flags.types,
       .threads = flags.threads,
       .engine = std::move(options),
       .choose_pool = std::move(choose_pool),
       .on_checked =
           [&](const ModelSource& source, const TokenizerInfo& tokenizer) {
             LogChecked(source, tokenizer, flags.types);
             progress.Start(source.name);
           },
       .on_progress = [&](int64_t done,
                          int64_t total) { progress.Show(done, total); }});
}

}  // namespace folio
