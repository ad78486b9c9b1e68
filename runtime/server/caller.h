// Who makes a call.

#ifndef RUNTIME_SERVER_CALLER_H_
#define RUNTIME_SERVER_CALLER_H_

#include <grpcpp/server_context.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/server/security_options.h"
#include "runtime/server/token_table.h"

namespace folio {

struct Caller {
  std::string tenant;  // Empty: the call names none.
  // Whether `tenant` was proven, by a token or a certificate, and so is not for
  // the client to choose.
  bool authenticated = false;
};

// Tells the callers of a server apart. Any thread may call, also at the same
// time.
class Callers {
 public:
  // Loads options.token_file; its errors are TokenTable's.
  static absl::StatusOr<std::unique_ptr<Callers>> Create(
      const SecurityOptions& options);

  // Whoever made the call of `context`:
  // - With a token file, who has the token in its metadata "authorization:
  //   Bearer TOKEN"; UNAUTHENTICATED when there is none or an unknown one.
  // - Otherwise, with client certificates, whom the client's names: its first
  //   subject alternative name, or the common name where it has none;
  //   UNAUTHENTICATED when it has neither, or one that can't be a tenant.
  // - Otherwise whom the optional metadata "folio-tenant" names, unproven.
  // An authenticated caller may repeat its name there; PERMISSION_DENIED when
  // that is another one. INVALID_ARGUMENT for a "folio-tenant" of more than 256
  // bytes, one that is not UTF-8, or several of them. No message has a token.
  absl::StatusOr<Caller> Of(const grpc::ServerContextBase& context) const;

 private:
  Callers(std::unique_ptr<TokenTable> tokens, bool by_certificate)
      : tokens_(std::move(tokens)), by_certificate_(by_certificate) {}

  const std::unique_ptr<const TokenTable> tokens_;  // May be null.
  const bool by_certificate_;
};

// Whom a request of `caller` is for, when its own field says `field`: an empty
// field is the caller's own tenant. Only a caller that is neither authenticated
// nor named may choose; PERMISSION_DENIED tells an authenticated one, and
// INVALID_ARGUMENT one that contradicts itself, both names.
absl::StatusOr<std::string> TenantOf(const Caller& caller,
                                     const std::string& field);

}  // namespace folio

#endif  // RUNTIME_SERVER_CALLER_H_
