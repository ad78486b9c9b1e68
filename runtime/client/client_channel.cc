#include "runtime/client/client_channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_interceptor.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace folio {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

// Adds the metadata that says who calls. gRPC's call credentials would do so
// with TLS only, but on loopback there may be none.
class TokenSender : public Interceptor {
 public:
  explicit TokenSender(std::string authorization)
      : authorization_(std::move(authorization)) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace("authorization",
                                                 authorization_);
    }
    methods->Proceed();
  }

 private:
  const std::string authorization_;
};

class TokenSenderFactory : public ClientInterceptorFactoryInterface {
 public:
  explicit TokenSenderFactory(const std::string& token)
      : authorization_(absl::StrCat("Bearer ", token)) {}

  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override {
    return new TokenSender(authorization_);
  }

 private:
  const std::string authorization_;
};

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    return absl::InvalidArgumentError(
        absl::StrCat("can't read '", path, "': ", strerror(errno)));
  }
  std::ostringstream contents;
  contents << file.rdbuf();
  if (!absl::StrContains(contents.str(), "-----BEGIN ")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' has nothing in PEM (-----BEGIN ...)"));
  }
  return contents.str();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsOf(
    const ClientOptions& options) {
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    return absl::InvalidArgumentError(
        "a client's certificate and its private key are given together or not "
        "at all");
  }
  if (options.tls_ca.empty()) {
    if (options.tls_cert.empty()) return grpc::InsecureChannelCredentials();
    return absl::InvalidArgumentError(
        "a client's certificate needs TLS: give the certificate authority of "
        "the server, too");
  }
  grpc::SslCredentialsOptions ssl;
  FOLIO_ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadPem(options.tls_ca));
  if (!options.tls_cert.empty()) {
    FOLIO_ASSIGN_OR_RETURN(ssl.pem_cert_chain, ReadPem(options.tls_cert));
    FOLIO_ASSIGN_OR_RETURN(ssl.pem_private_key, ReadPem(options.tls_key));
  }
  return grpc::SslCredentials(ssl);
}

// gRPC would end the process for a byte that metadata can't have.
absl::Status CheckToken(const std::string& token) {
  if (std::ranges::all_of(
          token, [](unsigned char c) { return absl::ascii_isgraph(c); })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "the token has a space, a control character or one beyond ASCII; it must "
      "be one word, as `folio token` prints it");
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> MakeClientChannel(
    const std::string& address, const ClientOptions& options,
    const grpc::ChannelArguments& arguments) {
  FOLIO_RETURN_IF_ERROR(CheckToken(options.token));
  FOLIO_ASSIGN_OR_RETURN(
      const std::shared_ptr<grpc::ChannelCredentials> credentials,
      CredentialsOf(options));
  std::vector<std::unique_ptr<ClientInterceptorFactoryInterface>> interceptors;
  if (!options.token.empty()) {
    interceptors.push_back(std::make_unique<TokenSenderFactory>(options.token));
  }
  return grpc::experimental::CreateCustomChannelWithInterceptors(
      address, credentials, arguments, std::move(interceptors));
}

}  // namespace folio
