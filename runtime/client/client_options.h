// How a client proves who it is, and knows the server.

#ifndef RUNTIME_CLIENT_CLIENT_OPTIONS_H_
#define RUNTIME_CLIENT_CLIENT_OPTIONS_H_

#include <string>

namespace folio {

struct ClientOptions {
  // Paths of PEM files; an empty one: not given.
  std::string tls_ca;    // Whose certificates servers must have; none: no TLS.
  std::string tls_cert;  // The client's own certificate, then its chain.
  std::string tls_key;   // The private key of tls_cert.
  // Sent with each call, where it is not empty: also without TLS, where the
  // network can read it.
  std::string token;
};

}  // namespace folio

#endif  // RUNTIME_CLIENT_CLIENT_OPTIONS_H_
