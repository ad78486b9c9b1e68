#include "tests/support/scripted_engine.h"

#include <glog/logging.h>

#include <utility>

namespace folio {

EngineOptions ScriptedEngine::Options(int32_t num_pages) {
  EngineOptions options;
  options.page_size = 16;
  options.kv_pool_bytes = num_pages * options.page_size * kTokenBytes;
  options.scheduler = {
      .max_batch_tokens = 32, .max_batch_sequences = 4, .watermark_pages = 0};
  return options;
}

std::vector<TokenId> ScriptedEngine::Expected(std::vector<TokenId> tokens,
                                              int count) {
  const size_t prompt = tokens.size();
  for (int i = 0; i < count; ++i) {
    tokens.push_back(ScriptedModel::NextToken(tokens));
  }
  return {tokens.begin() + static_cast<int64_t>(prompt), tokens.end()};
}

Request ScriptedEngine::MakeRequest(std::vector<TokenId> prompt,
                                    int32_t max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  return request;
}

ScriptedEngine::ScriptedEngine(const EngineOptions& options,
                               std::optional<int32_t> window)
    : clock_(absl::UnixEpoch()), tokenizer_(ScriptedModel::kVocabSize) {
  auto engine = Engine::Create(
      options,
      std::make_unique<ScriptedModel>(kContext, options.model_limits(), window),
      &tokenizer_, &clock_, &executor_);
  CHECK(engine.ok()) << engine.status();
  engine_ = *std::move(engine);
}

Generated ScriptedEngine::RunOne(Request request) {
  std::vector<Request> requests;
  requests.push_back(std::move(request));
  return Run(std::move(requests))[0];
}

RequestId ScriptedEngine::Submit(Request request) {
  const absl::Status prepared = engine_->Prepare(request);
  CHECK(prepared.ok()) << prepared;
  const RequestId id = request.id;
  const absl::Status submitted = engine_->Submit(std::move(request));
  CHECK(submitted.ok()) << submitted;
  return id;
}

}  // namespace folio
