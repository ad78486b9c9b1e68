#include "runtime/server/info_conversion.h"

#include <algorithm>
#include <cstdint>

namespace folio {

v1::ModelInfo ToProto(const ModelInfo& model, const TokenizerInfo& tokenizer) {
  v1::ModelInfo proto;
  proto.set_name(model.name);
  proto.set_architecture(model.architecture);
  proto.set_num_parameters(model.num_parameters);
  proto.set_weight_bytes(model.weight_bytes);
  proto.set_vocab_size(model.vocab_size);
  proto.set_context_length(model.context_length);
  if (model.window.has_value()) proto.set_window(*model.window);
  if (model.bos_token.has_value()) proto.set_bos_token_id(*model.bos_token);
  proto.mutable_eos_token_ids()->Add(model.eos_tokens.begin(),
                                     model.eos_tokens.end());
  proto.set_tokenizer(tokenizer.kind);
  return proto;
}

v1::ServerInfo ServerInfoOf(const Engine& engine) {
  const EngineOptions& options = engine.options();
  const RequestLimits& limits = engine.request_limits();
  v1::ServerInfo proto;
  proto.set_version(FOLIO_VERSION);
  proto.set_policy(options.scheduler.policy);
  proto.set_max_batch_tokens(options.scheduler.max_batch_tokens);
  proto.set_max_batch_sequences(options.scheduler.max_batch_sequences);
  proto.set_max_waiting_requests(options.queue.max_waiting_requests);
  proto.set_max_waiting_tokens(options.queue.max_waiting_tokens);
  proto.set_max_tenant_requests(options.queue.max_tenant_requests);
  proto.set_max_prompt_tokens(limits.MaxPromptTokens());
  proto.set_max_samples(limits.max_samples);
  proto.set_max_logprobs(limits.max_logprobs);
  proto.set_page_size(options.page_size);
  proto.set_pages_total(
      static_cast<int32_t>(limits.pool_tokens / options.page_size));
  proto.set_prefix_cache(options.prefix_cache);
  return proto;
}

}  // namespace folio
