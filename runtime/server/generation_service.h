// folio.v1.Generation.

#ifndef RUNTIME_SERVER_GENERATION_SERVICE_H_
#define RUNTIME_SERVER_GENERATION_SERVICE_H_

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "folio/v1/generation.grpc.pb.h"
#include "runtime/server/admission.h"
#include "runtime/server/backend.h"
#include "runtime/server/caller.h"
#include "runtime/server/generate_batch_reactor.h"
#include "runtime/server/generate_reactor.h"
#include "runtime/server/request_registry.h"

namespace folio {

// All with callbacks; GenerateBatch parses its messages itself.
using GenerationMethods = v1::Generation::WithCallbackMethod_Generate<
    v1::Generation::WithRawCallbackMethod_GenerateBatch<
        v1::Generation::WithCallbackMethod_Abort<
            v1::Generation::WithCallbackMethod_Tokenize<
                v1::Generation::WithCallbackMethod_Detokenize<
                    v1::Generation::Service>>>>>;

class GenerationService final : public GenerationMethods {
 public:
  // All must outlive the service. `keep_prompts`: see Admission.
  GenerationService(const BackendSlot* slot, const Callers* callers,
                    RequestRegistry* registry, bool keep_prompts)
      : slot_(slot),
        callers_(callers),
        registry_(registry),
        admission_(slot, registry, keep_prompts) {}

  grpc::ServerWriteReactor<v1::GenerateResponse>* Generate(
      grpc::CallbackServerContext* context,
      const v1::GenerateRequest* request) override;

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* GenerateBatch(
      grpc::CallbackServerContext* context) override;

  grpc::ServerUnaryReactor* Abort(grpc::CallbackServerContext* context,
                                  const v1::AbortRequest* request,
                                  v1::AbortResponse* response) override;

  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const v1::TokenizeRequest* request,
                                     v1::TokenizeResponse* response) override;

  grpc::ServerUnaryReactor* Detokenize(
      grpc::CallbackServerContext* context,
      const v1::DetokenizeRequest* request,
      v1::DetokenizeResponse* response) override;

  // Ends the streams of many requests as soon as these have ended; those that
  // come later, too.
  void Close();

 private:
  // The reactor of a request that is on its way through the engine.
  absl::StatusOr<GenerateReactor*> Start(
      const grpc::CallbackServerContext& context,
      const v1::GenerateRequest& proto);
  absl::Status AbortByName(const grpc::CallbackServerContext& context,
                           const v1::AbortRequest& request);
  // For a caller who may use it.
  absl::StatusOr<const Backend*> BackendFor(
      const grpc::CallbackServerContext& context) const;

  void Forget(GenerateBatchReactor* reactor);

  const BackendSlot* const slot_;
  const Callers* const callers_;
  RequestRegistry* const registry_;
  Admission admission_;

  std::mutex mutex_;
  // Guarded by mutex_. A reactor is here until gRPC is done with it.
  absl::flat_hash_map<GenerateBatchReactor*,
                      std::shared_ptr<GenerateBatchReactor>>
      batches_;
  bool is_closed_ = false;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_GENERATION_SERVICE_H_
