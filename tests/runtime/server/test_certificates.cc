#include "tests/runtime/server/test_certificates.h"

#include <glog/logging.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>

namespace folio {
namespace {

constexpr long kHour = 3600;  // As OpenSSL has seconds.

// What `write` puts into a BIO.
std::string PemOf(const auto& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(BIO_new(BIO_s_mem()),
                                                          BIO_free_all);
  CHECK_EQ(write(bio.get()), 1);
  char* data;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, size);
}

std::string PemOf(X509* certificate) {
  return PemOf([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

std::string PemOf(EVP_PKEY* key) {
  return PemOf([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr,
                                    nullptr);
  });
}

void AddExtension(X509* certificate, int nid, const std::string& value) {
  X509_EXTENSION* const extension =
      X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
  CHECK(extension != nullptr) << value;
  CHECK_EQ(X509_add_ext(certificate, extension, /*loc=*/-1), 1);
  X509_EXTENSION_free(extension);
}

}  // namespace

TestAuthority::TestAuthority(const std::string& name)
    : key_(EVP_EC_gen("P-256"), EVP_PKEY_free),
      certificate_(NewCertificate(key_.get(), name)) {
  AddExtension(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  X509_set_issuer_name(certificate_.get(),
                       X509_get_subject_name(certificate_.get()));
  CHECK_GT(X509_sign(certificate_.get(), key_.get(), EVP_sha256()), 0);
  cert_ = PemOf(certificate_.get());
}

Identity TestAuthority::Issue(const std::string& common_name,
                              const std::string& alternative_names) const {
  const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const Certificate certificate = NewCertificate(key.get(), common_name);
  if (!alternative_names.empty()) {
    AddExtension(certificate.get(), NID_subject_alt_name, alternative_names);
  }
  X509_set_issuer_name(certificate.get(),
                       X509_get_subject_name(certificate_.get()));
  CHECK_GT(X509_sign(certificate.get(), key_.get(), EVP_sha256()), 0);
  return {.cert = PemOf(certificate.get()), .key = PemOf(key.get())};
}

Identity TestAuthority::IssueToServer() const {
  return Issue("server", "IP:127.0.0.1");
}

TestAuthority::Certificate TestAuthority::NewCertificate(
    EVP_PKEY* key, const std::string& name) {
  CHECK(key != nullptr);
  static std::atomic<long> serial = 1;
  Certificate certificate(X509_new(), X509_free);
  CHECK(certificate != nullptr);
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kHour);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kHour);
  X509_set_pubkey(certificate.get(), key);
  if (!name.empty()) {
    CHECK_EQ(X509_NAME_add_entry_by_txt(
                 X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                 reinterpret_cast<const unsigned char*>(name.c_str()),
                 /*len=*/-1, /*loc=*/-1, /*set=*/0),
             1);
  }
  return certificate;
}

}  // namespace folio
