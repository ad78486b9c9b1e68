#include "runtime/server/tls_files.h"

#include <glog/logging.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/server/small_file.h"

namespace folio {
namespace {

template <auto kFree>
struct Freer {
  void operator()(auto* object) const { kFree(object); }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;

// A file that a flag names.
struct NamedFile {
  std::string_view flag;
  const std::string& path;
};

absl::Status Wrong(const NamedFile& file, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(file.flag), " '", file.path, "': ", std::string(why)));
}

// Why OpenSSL's last call failed. Leaves none of its errors behind.
std::string LastReason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "unknown" : reason;
}

absl::StatusOr<std::string> Read(const NamedFile& file) {
  absl::StatusOr<std::string> contents = ReadSmallFile(file.path);
  if (contents.ok()) return contents;
  return absl::Status(
      contents.status().code(),
      absl::StrCat(std::string(file.flag), ": ", contents.status().message()));
}

Bio BioOf(const std::string& pem) {
  Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  CHECK(bio != nullptr);
  return bio;
}

// All certificates of a PEM, at least one.
absl::StatusOr<std::vector<Certificate>> ParseCertificates(
    const std::string& pem, const NamedFile& file) {
  const Bio bio = BioOf(pem);
  std::vector<Certificate> certificates;
  while (X509* const certificate =
             PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(certificate);
  }
  // What ends a good file is that no further one starts.
  const bool is_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = LastReason();
  if (!is_end) {
    return Wrong(file, absl::StrCat("certificate ", certificates.size() + 1,
                                    " in it can't be read (", reason, ")"));
  }
  if (certificates.empty()) {
    return Wrong(file,
                 "it has no certificate in PEM (-----BEGIN CERTIFICATE-----)");
  }
  return certificates;
}

absl::StatusOr<Key> ParseKey(const std::string& pem, const NamedFile& file) {
  const Bio bio = BioOf(pem);
  // Without this, OpenSSL would ask the terminal.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (key != nullptr) return key;
  ERR_clear_error();
  return Wrong(file, "it has no unencrypted private key in PEM");
}

}  // namespace

absl::StatusOr<TlsFiles> ReadTlsFiles(const SecurityOptions& options) {
  const NamedFile cert_file{"--tls-cert", options.tls_cert};
  const NamedFile key_file{"--tls-key", options.tls_key};
  const NamedFile ca_file{"--tls-client-ca", options.tls_client_ca};
  ERR_clear_error();
  TlsFiles files;
  FOLIO_ASSIGN_OR_RETURN(files.cert_chain, Read(cert_file));
  FOLIO_ASSIGN_OR_RETURN(const std::vector<Certificate> chain,
                         ParseCertificates(files.cert_chain, cert_file));
  FOLIO_ASSIGN_OR_RETURN(files.key, Read(key_file));
  FOLIO_ASSIGN_OR_RETURN(const Key key, ParseKey(files.key, key_file));

  const Context context(SSL_CTX_new(TLS_server_method()));
  CHECK(context != nullptr);
  if (SSL_CTX_use_certificate(context.get(), chain.front().get()) != 1) {
    return Wrong(cert_file,
                 absl::StrCat("TLS can't use it (", LastReason(), ")"));
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1) {
    return Wrong(key_file,
                 absl::StrCat("it is not the key of the certificate in '",
                              options.tls_cert, "' (", LastReason(), ")"));
  }
  if (!options.tls_client_ca.empty()) {
    FOLIO_ASSIGN_OR_RETURN(files.client_ca, Read(ca_file));
    FOLIO_RETURN_IF_ERROR(ParseCertificates(files.client_ca, ca_file).status());
  }
  return files;
}

}  // namespace folio
