#include "runtime/server/server_credentials.h"

#include <glog/logging.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status_macros.h"
#include "runtime/server/reloaded.h"
#include "runtime/server/tls_files.h"

namespace folio {
namespace {

using ReloadedTlsFiles = Reloaded<TlsFiles>;

// Tells gRPC what one port shows from the next connection on.
class PortFiles {
 public:
  explicit PortFiles(std::shared_ptr<ReloadedTlsFiles> files)
      : files_(std::move(files)) {}

  // A grpc_ssl_server_certificate_config_callback. gRPC asks for each new
  // connection of the port, one after the other, and keeps what it has when
  // nothing is new, or when it can't use what is.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* port_files, grpc_ssl_server_certificate_config** config) {
    return static_cast<PortFiles*>(port_files)->Fetch(config);
  }

  static void Delete(void* port_files) {
    delete static_cast<PortFiles*>(port_files);
  }

 private:
  grpc_ssl_certificate_config_reload_status Fetch(
      grpc_ssl_server_certificate_config** config) {
    std::shared_ptr<const TlsFiles> files = files_->Current();
    std::lock_guard lock(mutex_);
    if (files == shown_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {
        .private_key = files->key.c_str(),
        .cert_chain = files->cert_chain.c_str()};
    // gRPC ends the process when there are no roots, even where it does not ask
    // clients for certificates; then it has no use for them, and any will do.
    const std::string& roots =
        files->client_ca.empty() ? files->cert_chain : files->client_ca;
    *config = grpc_ssl_server_certificate_config_create(
        roots.c_str(), &pair, /*num_key_cert_pairs=*/1);
    shown_ = std::move(files);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const std::shared_ptr<ReloadedTlsFiles> files_;
  std::mutex mutex_;
  std::shared_ptr<const TlsFiles> shown_;  // Guarded by mutex_.
};

// TLS by gRPC's callback for certificates. Its FileWatcherCertificateProvider
// would be shorter, but takes files without a look: a broken one, or a key that
// comes a moment before its certificate, leaves the port with nothing to show.
class TlsServerCredentials : public grpc::ServerCredentials {
 public:
  TlsServerCredentials(std::shared_ptr<ReloadedTlsFiles> files,
                       bool wants_client_certificate)
      : files_(std::move(files)),
        wants_client_certificate_(wants_client_certificate) {}

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    LOG(FATAL) << "callers are looked at by Callers";
  }

 private:
  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    const auto request_type =
        wants_client_certificate_
            ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
            : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    auto* const port_files = new PortFiles(files_);
    grpc_server_credentials* const credentials =
        grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                request_type, PortFiles::Fetch, port_files));
    // The server keeps the credentials as long as it likes. A processor of
    // metadata that processes nothing is how it deletes what they use.
    grpc_server_credentials_set_auth_metadata_processor(
        credentials, {.process = nullptr,
                      .destroy = PortFiles::Delete,
                      .state = port_files});
    const int port =
        grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  const std::shared_ptr<ReloadedTlsFiles> files_;
  const bool wants_client_certificate_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const SecurityOptions& options) {
  if (!options.has_tls()) return grpc::InsecureServerCredentials();
  std::vector<std::string> paths = {options.tls_cert, options.tls_key};
  const bool wants_client_certificate = !options.tls_client_ca.empty();
  if (wants_client_certificate) paths.push_back(options.tls_client_ca);
  FOLIO_ASSIGN_OR_RETURN(std::shared_ptr<ReloadedTlsFiles> files,
                         ReloadedTlsFiles::Load(std::move(paths), [options] {
                           return ReadTlsFiles(options);
                         }));
  return std::make_shared<TlsServerCredentials>(std::move(files),
                                                wants_client_certificate);
}

}  // namespace folio
