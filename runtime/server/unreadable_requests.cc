#include "runtime/server/unreadable_requests.h"

#include "runtime/server/status_conversion.h"

namespace folio {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

class UnreadableRequestInterceptor final
    : public grpc::experimental::Interceptor {
 public:
  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::POST_RECV_MESSAGE)) {
      is_unreadable_ = methods->GetRecvMessage() == nullptr;
    }
    if (is_unreadable_ && methods->QueryInterceptionHookPoint(
                              InterceptionHookPoints::PRE_SEND_STATUS)) {
      methods->ModifySendStatus(ToGrpc(UnreadableRequest()));
    }
    methods->Proceed();
  }

 private:
  bool is_unreadable_ = false;
};

class Factory final
    : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // (The end of a stream of requests looks like one that can't be read.)
  grpc::experimental::Interceptor* CreateServerInterceptor(
      ServerRpcInfo* info) override {
    const bool is_one_request =
        info->type() == ServerRpcInfo::Type::UNARY ||
        info->type() == ServerRpcInfo::Type::SERVER_STREAMING;
    return is_one_request ? new UnreadableRequestInterceptor : nullptr;
  }
};

}  // namespace

absl::Status UnreadableRequest() {
  return absl::InvalidArgumentError(
      "the request can't be read: it is not the message that this method "
      "takes, "
      "or a string in it is not valid UTF-8; send text in UTF-8, or its "
      "token_ids");
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>
MakeUnreadableRequestInterceptor() {
  return std::make_unique<Factory>();
}

}  // namespace folio
