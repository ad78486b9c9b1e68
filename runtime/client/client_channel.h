// The connection of a client.

#ifndef RUNTIME_CLIENT_CLIENT_CHANNEL_H_
#define RUNTIME_CLIENT_CLIENT_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/client/client_options.h"

namespace folio {

// A channel to `address` on which every call has the options' token.
// INVALID_ARGUMENT for options that do not fit together, a file that can't be
// read or has nothing in PEM, or a token that can't travel.
absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeClientChannel(
    const std::string& address, const ClientOptions& options,
    const grpc::ChannelArguments& arguments);

}  // namespace folio

#endif  // RUNTIME_CLIENT_CLIENT_CHANNEL_H_
