#include "runtime/cli/security_flags.h"

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/cli/flags.h"
#include "runtime/server/host_port.h"
#include "runtime/server/small_file.h"

namespace folio {
namespace {

constexpr char kGroup[] = "Security";
constexpr char kTokenVariable[] = "FOLIO_TOKEN";

CLI::Option* AddFile(CLI::App& app, const std::string& name, std::string& path,
                     const std::string& description) {
  return app.add_option(name, path, description)
      ->check(NotEmptyCheck())
      ->type_name("FILE")
      ->group(kGroup);
}

// A file ends with a new line, which is none of the token's.
absl::StatusOr<std::string> ReadToken(const std::string& path) {
  FOLIO_ASSIGN_OR_RETURN(const std::string contents, ReadSmallFile(path));
  std::string token(absl::StripAsciiWhitespace(contents));
  if (!token.empty()) return token;
  return absl::InvalidArgumentError(
      absl::StrCat("--token-file '", path, "' is empty; it must have a token"));
}

absl::StatusOr<std::string> TokenOf(const ClientSecurityFlags& flags) {
  if (!flags.token_file.empty()) return ReadToken(flags.token_file);
  const char* const token = std::getenv(kTokenVariable);
  return token == nullptr ? "" : token;
}

}  // namespace

void AddSecurityFlags(CLI::App& app, SecurityOptions& options) {
  AddFile(app, "--tls-cert", options.tls_cert,
          "Serve with TLS: the server's certificate and its chain, in PEM. "
          "Files are read again when they change");
  AddFile(app, "--tls-key", options.tls_key,
          "The private key of --tls-cert, in PEM");
  AddFile(app, "--tls-client-ca", options.tls_client_ca,
          "Serve only clients with a certificate that one of these, in PEM, "
          "has signed. It names the tenant, unless a token does");
  AddFile(app, "--token-file", options.token_file,
          "Serve only clients with a token that stands here: a line for each, "
          "of its SHA-256 and its tenant, as `folio token` prints it");
  app.add_flag("--insecure", options.insecure,
               "Listen on other addresses than this machine's own though the "
               "network can read everything, or anybody may call")
      ->group(kGroup);
}

void AddClientSecurityFlags(CLI::App& app, CLI::Option* server,
                            ClientSecurityFlags& flags) {
  ClientOptions& options = flags.options;
  CLI::Option* const ca =
      AddFile(app, "--tls-ca", options.tls_ca,
              "Connect with TLS to a server whose certificate one of these, in "
              "PEM, has signed (the system's: "
              "/etc/ssl/certs/ca-certificates.crt)")
          ->needs(server);
  CLI::Option* const cert =
      AddFile(app, "--tls-client-cert", options.tls_cert,
              "The certificate to show to the server, and its chain, in PEM")
          ->needs(ca);
  CLI::Option* const key =
      AddFile(app, "--tls-client-key", options.tls_key,
              "The private key of --tls-client-cert, in PEM")
          ->needs(cert);
  cert->needs(key);
  AddFile(app, "--token-file", flags.token_file,
          absl::StrCat("A file with the token to show to the server. Default: "
                       "what the environment variable ",
                       kTokenVariable, " has"))
      ->needs(server);
  app.add_flag("--insecure", flags.insecure,
               "Send the token to another machine without TLS, too")
      ->needs(server)
      ->group(kGroup);
}

absl::StatusOr<ClientOptions> ClientOptionsOf(const ClientSecurityFlags& flags,
                                              const std::string& server) {
  ClientOptions options = flags.options;
  FOLIO_ASSIGN_OR_RETURN(options.token, TokenOf(flags));
  if (options.token.empty() || !options.tls_ca.empty() || flags.insecure) {
    return options;
  }
  FOLIO_ASSIGN_OR_RETURN(const HostPort parsed,
                         ParseHostPort(server, /*min_port=*/1));
  if (IsLoopback(parsed.host)) return options;
  return absl::InvalidArgumentError(absl::StrCat(
      "without TLS, the network on the way to ", server,
      " could read the token; give --tls-ca, or --insecure to send it all the "
      "same"));
}

}  // namespace folio
