#include "runtime/server/caller.h"

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"
#include "runtime/server/quoted.h"

namespace folio {
namespace {

constexpr char kTenantKey[] = "folio-tenant";
constexpr char kAuthorizationKey[] = "authorization";

std::string_view ToStd(grpc::string_ref text) {
  return {text.data(), text.size()};
}

bool CanBeTenant(std::string_view name) {
  return name.size() <= kMaxTenantBytes && IsValidUtf8(name);
}

// All the values that a call has of one key.
std::vector<std::string_view> ValuesOf(const grpc::ServerContextBase& context,
                                       const char* key) {
  std::vector<std::string_view> values;
  const auto [begin, end] = context.client_metadata().equal_range(key);
  for (auto it = begin; it != end; ++it) values.push_back(ToStd(it->second));
  return values;
}

// What "folio-tenant" says; empty without it.
absl::StatusOr<std::string> NamedTenant(
    const grpc::ServerContextBase& context) {
  const std::vector<std::string_view> names = ValuesOf(context, kTenantKey);
  if (names.empty()) return "";
  if (names.size() > 1 || !CanBeTenant(names.front())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the metadata has ", names.size(), " values of ",
                     kTenantKey, ", the first of ", names.front().size(),
                     " bytes; it may have one, in valid UTF-8 of at most ",
                     kMaxTenantBytes, " bytes"));
  }
  return std::string(names.front());
}

// The token of "authorization: Bearer TOKEN". The scheme's case does not
// matter (RFC 9110, section 11.1).
absl::StatusOr<std::string_view> TokenOf(
    const grpc::ServerContextBase& context) {
  constexpr std::string_view kExpected =
      "send the metadata 'authorization: Bearer TOKEN'";
  const std::vector<std::string_view> values =
      ValuesOf(context, kAuthorizationKey);
  if (values.size() != 1) {
    return absl::UnauthenticatedError(absl::StrCat(
        "this server wants a token, and the call has ",
        values.empty() ? "none" : "several", "; ", std::string(kExpected)));
  }
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view value = values.front();
  if (!absl::EqualsIgnoreCase(std::string(value.substr(0, kScheme.size())),
                              std::string(kScheme))) {
    return absl::UnauthenticatedError(
        absl::StrCat("this server wants a token, and the call's authorization "
                     "is of another kind; ",
                     std::string(kExpected)));
  }
  const std::string_view rest = value.substr(kScheme.size());
  return rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
}

absl::StatusOr<std::string> TenantByToken(
    const grpc::ServerContextBase& context, const TokenTable& tokens) {
  FOLIO_ASSIGN_OR_RETURN(const std::string_view token, TokenOf(context));
  const std::optional<std::string> tenant = tokens.TenantOf(token);
  if (tenant.has_value()) return *tenant;
  return absl::UnauthenticatedError(
      "the token is not, or no longer, in this server's token file; ask "
      "whoever "
      "runs it for one");
}

absl::StatusOr<std::string> TenantByCertificate(
    const grpc::ServerContextBase& context) {
  const std::vector<grpc::string_ref> names =
      context.auth_context()->GetPeerIdentity();
  if (names.empty() || names.front().empty()) {
    return absl::UnauthenticatedError(
        "the client's certificate names nobody; it needs a subject "
        "alternative name or a common name, which is the tenant");
  }
  const std::string_view name = ToStd(names.front());
  if (!CanBeTenant(name)) {
    return absl::UnauthenticatedError(absl::StrCat(
        "the client's certificate has a name of ", name.size(),
        " bytes; the first subject alternative name, or else the common name, "
        "is the tenant: valid UTF-8 of at most ",
        kMaxTenantBytes, " bytes"));
  }
  return std::string(name);
}

absl::Status NotThatTenant(const Caller& caller, std::string_view other,
                           std::string_view where) {
  const std::string names =
      absl::StrCat(Quoted(other), " in ", std::string(where));
  if (caller.authenticated) {
    return absl::PermissionDeniedError(
        absl::StrCat("the caller is ", Quoted(caller.tenant),
                     " and may not act as ", names, "; leave it out"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the tenant is ", Quoted(caller.tenant), " in the metadata ",
                   kTenantKey, ", but ", names, "; give one of them"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Callers>> Callers::Create(
    const SecurityOptions& options) {
  std::unique_ptr<TokenTable> tokens;
  if (!options.token_file.empty()) {
    FOLIO_ASSIGN_OR_RETURN(tokens, TokenTable::Load(options.token_file));
  }
  return std::unique_ptr<Callers>(
      new Callers(std::move(tokens), !options.tls_client_ca.empty()));
}

absl::StatusOr<Caller> Callers::Of(
    const grpc::ServerContextBase& context) const {
  Caller caller;
  if (tokens_ != nullptr) {
    FOLIO_ASSIGN_OR_RETURN(caller.tenant, TenantByToken(context, *tokens_));
    caller.authenticated = true;
  } else if (by_certificate_) {
    FOLIO_ASSIGN_OR_RETURN(caller.tenant, TenantByCertificate(context));
    caller.authenticated = true;
  }
  FOLIO_ASSIGN_OR_RETURN(std::string named, NamedTenant(context));
  if (!caller.authenticated) {
    caller.tenant = std::move(named);
  } else if (!named.empty() && named != caller.tenant) {
    return NotThatTenant(caller, named,
                         absl::StrCat("the metadata ", kTenantKey));
  }
  return caller;
}

absl::StatusOr<std::string> TenantOf(const Caller& caller,
                                     const std::string& field) {
  if (field.empty() || field == caller.tenant) return caller.tenant;
  if (!caller.authenticated && caller.tenant.empty()) return field;
  return NotThatTenant(caller, field, "the request's tenant");
}

}  // namespace folio
