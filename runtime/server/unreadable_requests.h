// Requests that are no messages of the kind that their method takes.

#ifndef RUNTIME_SERVER_UNREADABLE_REQUESTS_H_
#define RUNTIME_SERVER_UNREADABLE_REQUESTS_H_

#include <grpcpp/support/server_interceptor.h>

#include <memory>

#include "absl/status/status.h"

namespace folio {

// INVALID_ARGUMENT: a message can't be parsed. Mostly some string in it is not
// UTF-8, which the libraries of some languages send all the same.
absl::Status UnreadableRequest();

// Answers calls whose one request can't be parsed with UnreadableRequest().
// (gRPC by itself says UNIMPLEMENTED, with no message: clients would take the
// server for an old one.) It sees nothing of streams of requests.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>
MakeUnreadableRequestInterceptor();

}  // namespace folio

#endif  // RUNTIME_SERVER_UNREADABLE_REQUESTS_H_
