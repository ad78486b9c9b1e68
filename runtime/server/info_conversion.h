// What does not change while a server lives, as clients read it.

#ifndef RUNTIME_SERVER_INFO_CONVERSION_H_
#define RUNTIME_SERVER_INFO_CONVERSION_H_

#include "folio/v1/introspection.pb.h"
#include "runtime/engine/engine.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {

v1::ModelInfo ToProto(const ModelInfo& model, const TokenizerInfo& tokenizer);

// Without `start` and `max_message_bytes`, which the engine does not know.
v1::ServerInfo ServerInfoOf(const Engine& engine);

}  // namespace folio

#endif  // RUNTIME_SERVER_INFO_CONVERSION_H_
