#include "runtime/engine/open_engine.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/model_tokenizer.h"

namespace folio {
namespace {

absl::Status Validate(const OpenOptions& options) {
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("the number of threads is ", options.threads,
                     "; it must be from 1 to ", kMaxThreads));
  }
  return options.engine.Validate();
}

uint64_t DrawSeedSource() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// What a file of the model does not say, its tokenizer may.
void TakeSpecialTokens(const TokenizerInfo& tokenizer, DecoderConfig& config) {
  const auto exists = [&](TokenId token) { return token < config.vocab_size; };
  if (!config.bos_token.has_value() && tokenizer.bos_token.has_value() &&
      exists(*tokenizer.bos_token)) {
    config.bos_token = tokenizer.bos_token;
  }
  if (!config.eos_tokens.empty()) return;
  std::ranges::copy_if(tokenizer.eos_tokens,
                       std::back_inserter(config.eos_tokens), exists);
}

}  // namespace

absl::StatusOr<std::unique_ptr<OpenedEngine>> OpenEngine(OpenOptions options) {
  FOLIO_RETURN_IF_ERROR(Validate(options));
  EngineOptions& engine = options.engine;
  if (engine.seed_source == 0) engine.seed_source = DrawSeedSource();
  auto opened = std::make_unique<OpenedEngine>();
  opened->executor = MakeParallelExecutor(options.threads);
  FOLIO_ASSIGN_OR_RETURN(const ModelLocation location,
                         FindModel(options.model));
  FOLIO_ASSIGN_OR_RETURN(ModelSource source, OpenModelSource(location));
  FOLIO_ASSIGN_OR_RETURN(opened->tokenizer,
                         OpenTokenizerOf(location, source.config));
  TakeSpecialTokens(opened->tokenizer->info(), source.config);
  if (options.on_checked) {
    options.on_checked(source, opened->tokenizer->info());
  }

  std::unique_ptr<Model> model = LoadModel(
      source, ChooseTypes(source, options.types), engine.model_limits(),
      opened->executor.get(), options.on_progress);
  source.weights.reset();
  opened->model_config = source.config;
  if (options.choose_pool) {
    engine.kv_pool_bytes = options.choose_pool(model->info(), engine);
  }
  FOLIO_ASSIGN_OR_RETURN(
      opened->engine,
      Engine::Create(engine, std::move(model), opened->tokenizer.get(),
                     &opened->clock, opened->executor.get()));
  return opened;
}

}  // namespace folio
