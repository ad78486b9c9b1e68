#include "runtime/cli/open_engine.h"

#include <filesystem>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/byte_size.h"
#include "runtime/base/status_macros.h"
#include "runtime/cli/flags.h"
#include "runtime/model/model_registry.h"

namespace folio {
namespace {

// Scratch memory grows with these, too; beyond, a number is a slip.
constexpr int kMaxThreads = 1024;
constexpr int kMaxBatchTokens = 1 << 20;

// Seeds that nobody gave shall differ from run to run.
uint64_t DrawSeedSource() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

std::vector<TokenId> SpecialTokens(const ModelInfo& model) {
  std::vector<TokenId> special = model.eos_tokens;
  if (model.bos_token.has_value()) special.push_back(*model.bos_token);
  return special;
}

// Adds to the error of a model that is none what could be one.
absl::Status ExplainModel(const std::string& model,
                          const absl::Status& status) {
  std::error_code ignored;
  const bool is_folder =
      std::filesystem::exists(model + "/config.json", ignored) &&
      std::filesystem::exists(model + "/model.safetensors", ignored);
  if (model.empty() || model.starts_with("random:") || is_folder) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(absl::StripSuffix(status.message(), "."),
                   "; --model takes a folder with config.json and "
                   "model.safetensors, random:KEY=N,..., or is left out for "
                   "the embedded model"));
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
  SchedulerOptions& scheduler = options.scheduler;
  scheduler.max_batch_tokens =
      max_batch_tokens.value_or(scheduler.max_batch_tokens);
  scheduler.max_batch_sequences =
      max_batch_sequences.value_or(scheduler.max_batch_sequences);
  return options;
}

void AddEngineFlags(CLI::App& app, EngineFlags& flags,
                    const EngineFlagDefaults& defaults) {
  app.add_option("--model", flags.model,
                 "Folder with config.json and model.safetensors; or random "
                 "weights, with any of the keys vocab, hidden, heads, layers, "
                 "context, seed. Default: the embedded model")
      ->type_name("PATH|random:KEY=N,...");
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
}

absl::StatusOr<std::unique_ptr<OpenedEngine>> OpenEngine(
    const std::string& model_name, int32_t threads, EngineOptions options,
    const ChoosePool& choose_pool) {
  FOLIO_RETURN_IF_ERROR(options.Validate());
  options.seed_source = DrawSeedSource();
  auto opened = std::make_unique<OpenedEngine>();
  opened->executor = MakeParallelExecutor(threads);
  absl::StatusOr<std::unique_ptr<Model>> opened_model =
      OpenModel(model_name, options.model_limits(), opened->executor.get());
  if (!opened_model.ok()) {
    return ExplainModel(model_name, opened_model.status());
  }
  std::unique_ptr<Model> model = *std::move(opened_model);
  if (choose_pool) options.kv_pool_bytes = choose_pool(model->info(), options);
  opened->tokenizer = std::make_unique<Tokenizer>(model->info().vocab_size,
                                                  SpecialTokens(model->info()));
  FOLIO_ASSIGN_OR_RETURN(
      opened->engine,
      Engine::Create(options, std::move(model), opened->tokenizer.get(),
                     &opened->clock, opened->executor.get()));
  return opened;
}

}  // namespace folio
