#include "runtime/server/security_options.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/server/quoted.h"

namespace folio {
namespace {

absl::Status CheckFilesGoTogether(const SecurityOptions& options) {
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    const bool has_cert = !options.tls_cert.empty();
    return absl::InvalidArgumentError(absl::StrCat(
        has_cert ? "--tls-cert" : "--tls-key", " is given without ",
        has_cert ? "--tls-key" : "--tls-cert",
        "; TLS needs both: the server's certificate and its private key"));
  }
  if (!options.tls_client_ca.empty() && !options.has_tls()) {
    return absl::InvalidArgumentError(
        "--tls-client-ca is given without --tls-cert and --tls-key; clients "
        "can only show a certificate to a server that has one itself");
  }
  return absl::OkStatus();
}

}  // namespace

bool IsLoopback(std::string_view host) {
  if (host.starts_with("unix:") || host.starts_with("unix-abstract:")) {
    return true;
  }
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  const std::string text(host);
  if (absl::EqualsIgnoreCase(text, "localhost")) return true;
  in_addr v4;
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) {
    return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  in6_addr v6;
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 &&
         IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::Status CheckSecurity(const SecurityOptions& options,
                           std::string_view host) {
  FOLIO_RETURN_IF_ERROR(CheckFilesGoTogether(options));
  if (options.insecure || IsLoopback(host)) return absl::OkStatus();
  if (!options.has_tls()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(host),
        " is not a loopback address, and without TLS the network "
        "reads every prompt",
        options.token_file.empty() ? "" : " and token",
        "; give --tls-cert and --tls-key, listen on 127.0.0.1, or say "
        "--insecure to serve all the same"));
  }
  if (!options.authenticates()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(host),
        " is not a loopback address, and anybody who reaches it "
        "could call the server; give --token-file or --tls-client-ca, listen "
        "on 127.0.0.1, or say --insecure to serve all the same"));
  }
  return absl::OkStatus();
}

}  // namespace folio
