// Certificates made up for tests.

#ifndef TESTS_RUNTIME_SERVER_TEST_CERTIFICATES_H_
#define TESTS_RUNTIME_SERVER_TEST_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace folio {

// In PEM.
struct Identity {
  std::string cert;
  std::string key;
};

// A certificate authority with a key of its own (P-256), for an hour.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);

  const std::string& cert() const { return cert_; }

  // A certificate with a new key. Empty names are left out. The alternative
  // names are as OpenSSL's configuration has them, "DNS:a, URI:b, IP:::1".
  Identity Issue(const std::string& common_name,
                 const std::string& alternative_names) const;

  // For a server at 127.0.0.1.
  Identity IssueToServer() const;

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

  // Unsigned; for an hour, from an hour ago.
  static Certificate NewCertificate(EVP_PKEY* key, const std::string& name);

  const Key key_;
  const Certificate certificate_;
  std::string cert_;
};

}  // namespace folio

#endif  // TESTS_RUNTIME_SERVER_TEST_CERTIFICATES_H_
