#include "runtime/server/generation_service.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/field_error.h"
#include "runtime/base/status_macros.h"
#include "runtime/server/finish_status.h"
#include "runtime/server/quoted.h"
#include "runtime/server/request_conversion.h"
#include "runtime/server/status_conversion.h"
#include "runtime/tokenizer/detokenizer.h"
#include "runtime/tokenizer/tokenizer.h"

namespace folio {
namespace {

// A call that ends before it has begun.
class RefusedCall final
    : public grpc::ServerWriteReactor<v1::GenerateResponse> {
 public:
  explicit RefusedCall(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

// The same for a stream in both directions.
class RefusedBatch final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  explicit RefusedBatch(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

absl::Status Encode(const Tokenizer& tokenizer,
                    const v1::TokenizeRequest& request,
                    v1::TokenizeResponse& response) {
  const absl::StatusOr<std::vector<TokenId>> tokens = tokenizer.Encode(
      request.text(), {.add_special = request.add_special(),
                       .parse_special = request.parse_special()});
  if (!tokens.ok()) return OfField("text", tokens.status());
  response.mutable_ids()->Assign(tokens->begin(), tokens->end());
  return absl::OkStatus();
}

absl::Status DecodeIds(const Backend& backend,
                       const v1::DetokenizeRequest& request,
                       v1::DetokenizeResponse& response) {
  const Tokenizer& tokenizer = *backend.tokenizer;
  const int32_t vocab_size = backend.engine->model_info().vocab_size;
  FOLIO_RETURN_IF_ERROR(tokenizer.Encode("", {}).status());  // Is there one?
  for (int i = 0; i < request.ids_size(); ++i) {
    if (request.ids(i) >= 0 && request.ids(i) < vocab_size) continue;
    return FieldError(
        absl::StrCat("ids[", i, "]"),
        absl::StrCat(" is ", request.ids(i), "; token ids are from 0 to ",
                     vocab_size - 1));
  }
  response.set_text(
      Decode(tokenizer,
             {request.ids().data(), static_cast<size_t>(request.ids_size())}));
  return absl::OkStatus();
}

// Ends a call that has one answer.
grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext& context,
                                 const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace

absl::StatusOr<const Backend*> GenerationService::BackendFor(
    const grpc::CallbackServerContext& context) const {
  FOLIO_RETURN_IF_ERROR(callers_->Of(context).status());
  return slot_->Get();
}

grpc::ServerWriteReactor<v1::GenerateResponse>* GenerationService::Generate(
    grpc::CallbackServerContext* context, const v1::GenerateRequest* request) {
  const absl::StatusOr<GenerateReactor*> reactor = Start(*context, *request);
  if (!reactor.ok()) return new RefusedCall(reactor.status());
  return *reactor;
}

absl::StatusOr<GenerateReactor*> GenerationService::Start(
    const grpc::CallbackServerContext& context,
    const v1::GenerateRequest& proto) {
  FOLIO_ASSIGN_OR_RETURN(const Caller caller, callers_->Of(context));
  FOLIO_ASSIGN_OR_RETURN(Admission::Checked checked,
                         admission_.Check(proto, caller, TimeLeft(context)));
  auto reactor = std::make_unique<GenerateReactor>(
      checked.engine, checked.request.id, std::move(checked.responses));
  FOLIO_RETURN_IF_ERROR(admission_.Submit(
      *checked.engine, std::move(checked.request), reactor.get()));
  return reactor.release();
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
GenerationService::GenerateBatch(grpc::CallbackServerContext* context) {
  absl::StatusOr<Caller> caller = callers_->Of(*context);
  if (!caller.ok()) return new RefusedBatch(caller.status());
  GenerateBatchReactor* reactor = nullptr;
  bool is_closed;
  {
    std::lock_guard lock(mutex_);
    is_closed = is_closed_;
    if (!is_closed) {
      auto owned = std::make_shared<GenerateBatchReactor>(
          &admission_, *std::move(caller), context,
          [this](GenerateBatchReactor* done) { Forget(done); });
      reactor = owned.get();
      batches_.emplace(reactor, std::move(owned));
    }
  }
  if (is_closed) {
    return new RefusedBatch(StatusOfFinish(FinishReason::kShutdown));
  }
  reactor->Start();
  return reactor;
}

void GenerationService::Forget(GenerateBatchReactor* reactor) {
  std::shared_ptr<GenerateBatchReactor> last;  // Goes when the lock has gone.
  std::lock_guard lock(mutex_);
  const auto entry = batches_.find(reactor);
  last = std::move(entry->second);
  batches_.erase(entry);
}

void GenerationService::Close() {
  std::vector<std::shared_ptr<GenerateBatchReactor>> batches;
  {
    std::lock_guard lock(mutex_);
    is_closed_ = true;
    for (const auto& [unused, batch] : batches_) batches.push_back(batch);
  }
  for (const auto& batch : batches) batch->Close();
}

grpc::ServerUnaryReactor* GenerationService::Abort(
    grpc::CallbackServerContext* context, const v1::AbortRequest* request,
    v1::AbortResponse* /*response*/) {
  return Answer(*context, AbortByName(*context, *request));
}

absl::Status GenerationService::AbortByName(
    const grpc::CallbackServerContext& context,
    const v1::AbortRequest& request) {
  FOLIO_ASSIGN_OR_RETURN(const Caller caller, callers_->Of(context));
  FOLIO_ASSIGN_OR_RETURN(const std::string tenant,
                         TenantOf(caller, request.tenant()));
  FOLIO_ASSIGN_OR_RETURN(const Backend* const backend, slot_->Get());
  const std::optional<RequestId> id =
      registry_->NoteAbort(tenant, request.request_id());
  if (!id.has_value()) {
    return absl::NotFoundError(absl::StrCat(
        "request_id is ", Quoted(request.request_id()),
        "; no request of this tenant with that id is running or waiting"));
  }
  backend->engine->Abort(*id, FinishReason::kAborted);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* GenerationService::Tokenize(
    grpc::CallbackServerContext* context, const v1::TokenizeRequest* request,
    v1::TokenizeResponse* response) {
  const absl::StatusOr<const Backend*> backend = BackendFor(*context);
  return Answer(*context, backend.ok() ? Encode(*(*backend)->tokenizer,
                                                *request, *response)
                                       : backend.status());
}

grpc::ServerUnaryReactor* GenerationService::Detokenize(
    grpc::CallbackServerContext* context, const v1::DetokenizeRequest* request,
    v1::DetokenizeResponse* response) {
  const absl::StatusOr<const Backend*> backend = BackendFor(*context);
  return Answer(*context, backend.ok()
                              ? DecodeIds(**backend, *request, *response)
                              : backend.status());
}

}  // namespace folio
