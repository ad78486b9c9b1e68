// folio.v1.Generation.

#ifndef RUNTIME_SERVER_GENERATION_SERVICE_H_
#define RUNTIME_SERVER_GENERATION_SERVICE_H_

#include <grpcpp/support/server_callback.h>

#include "absl/status/statusor.h"
#include "folio/v1/generation.grpc.pb.h"
#include "runtime/base/clock.h"
#include "runtime/engine/engine.h"
#include "runtime/server/generate_reactor.h"
#include "runtime/server/request_registry.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {

class GenerationService final : public v1::Generation::CallbackService {
 public:
  // All must outlive the service. `clock` is the engine's.
  GenerationService(Engine* engine, const Tokenizer* tokenizer,
                    const Clock* clock, RequestRegistry* registry)
      : engine_(engine),
        tokenizer_(tokenizer),
        clock_(clock),
        registry_(registry) {}

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context,
      const v1::GenerateRequest* request) override;

  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const v1::TokenizeRequest* request,
                                     v1::TokenizeResponse* response) override;

  grpc::ServerUnaryReactor* Detokenize(
      grpc::CallbackServerContext* context,
      const v1::DetokenizeRequest* request,
      v1::DetokenizeResponse* response) override;

 private:
  // The reactor of a request that is on its way through the engine.
  absl::StatusOr<GenerateReactor*> Start(
      const grpc::CallbackServerContext& context,
      const v1::GenerateRequest& proto);

  Engine* const engine_;
  const Tokenizer* const tokenizer_;
  const Clock* const clock_;
  RequestRegistry* const registry_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_GENERATION_SERVICE_H_
