#include "runtime/server/generation_service.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/base/status_macros.h"
#include "runtime/server/request_conversion.h"
#include "runtime/server/response_conversion.h"
#include "runtime/server/status_conversion.h"
#include "runtime/tokenizer/detokenizer.h"
#include "scheduler/request.h"

namespace folio {
namespace {

// A call that ends before it has begun.
class RefusedCall final
    : public grpc::ServerWriteReactor<v1::GenerateResponse> {
 public:
  explicit RefusedCall(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

// The call's deadline, by the engine's clock. The two clocks may differ, since
// only one of them jumps when the machine's time is set; what is left until the
// deadline does not.
absl::Time DeadlineOf(const grpc::CallbackServerContext& context,
                      const Clock& clock) {
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) {
    return absl::InfiniteFuture();
  }
  return clock.Now() +
         absl::FromChrono(deadline - std::chrono::system_clock::now());
}

absl::Status Encode(const Tokenizer& tokenizer,
                    const v1::TokenizeRequest& request,
                    v1::TokenizeResponse& response) {
  FOLIO_ASSIGN_OR_RETURN(
      const std::vector<TokenId> tokens,
      tokenizer.Encode(request.text(),
                       {.add_special = request.add_special(),
                        .parse_special = request.parse_special()}));
  response.mutable_ids()->Assign(tokens.begin(), tokens.end());
  return absl::OkStatus();
}

absl::Status DecodeIds(const Tokenizer& tokenizer, int32_t vocab_size,
                       const v1::DetokenizeRequest& request,
                       v1::DetokenizeResponse& response) {
  FOLIO_RETURN_IF_ERROR(tokenizer.Encode("", {}).status());  // Is there one?
  for (int i = 0; i < request.ids_size(); ++i) {
    if (request.ids(i) >= 0 && request.ids(i) < vocab_size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("ids[", i, "] is ", request.ids(i),
                     "; token ids are from 0 to ", vocab_size - 1));
  }
  response.set_text(
      Decode(tokenizer,
             {request.ids().data(), static_cast<size_t>(request.ids_size())}));
  return absl::OkStatus();
}

std::string NameOf(const v1::GenerateRequest& proto, RequestId id) {
  if (!proto.request_id().empty()) return proto.request_id();
  return absl::StrCat("request-", static_cast<uint64_t>(id));
}

}  // namespace

grpc::ServerWriteReactor<v1::GenerateResponse>* GenerationService::Generate(
    grpc::CallbackServerContext* context, const v1::GenerateRequest* request) {
  const absl::StatusOr<GenerateReactor*> reactor = Start(*context, *request);
  if (!reactor.ok()) return new RefusedCall(reactor.status());
  return *reactor;
}

grpc::ServerUnaryReactor* GenerationService::Tokenize(
    grpc::CallbackServerContext* context, const v1::TokenizeRequest* request,
    v1::TokenizeResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(Encode(*tokenizer_, *request, *response)));
  return reactor;
}

grpc::ServerUnaryReactor* GenerationService::Detokenize(
    grpc::CallbackServerContext* context, const v1::DetokenizeRequest* request,
    v1::DetokenizeResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(DecodeIds(
      *tokenizer_, engine_->model_info().vocab_size, *request, *response)));
  return reactor;
}

absl::StatusOr<GenerateReactor*> GenerationService::Start(
    const grpc::CallbackServerContext& context,
    const v1::GenerateRequest& proto) {
  FOLIO_ASSIGN_OR_RETURN(
      Request request,
      RequestFromProto(proto, engine_->model_info(), *tokenizer_));
  request.deadline = DeadlineOf(context, *clock_);
  FOLIO_RETURN_IF_ERROR(engine_->Prepare(request));

  const RequestId id = request.id;
  auto reactor = std::make_unique<GenerateReactor>(
      engine_, id, NameOf(proto, id), *request.sampling.seed);
  // First of all: events may come before Submit returns.
  if (!registry_->Add(id, reactor.get())) {
    return StatusOfFinish(FinishReason::kShutdown);
  }
  const absl::Status submitted = engine_->Submit(std::move(request));
  if (!submitted.ok()) {
    registry_->Remove(id);
    // Clients know a server that ends by one status, wherever it refuses them.
    return absl::IsUnavailable(submitted)
               ? StatusOfFinish(FinishReason::kShutdown)
               : submitted;
  }
  return reactor.release();
}

}  // namespace folio
