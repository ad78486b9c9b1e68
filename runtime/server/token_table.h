// Bearer tokens: secrets that name tenants.

#ifndef RUNTIME_SERVER_TOKEN_TABLE_H_
#define RUNTIME_SERVER_TOKEN_TABLE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/server/reloaded.h"

namespace folio {

// Most bytes in the name of a tenant, as in GenerateRequest.
inline constexpr size_t kMaxTenantBytes = 256;

using TokenHash = std::array<uint8_t, 32>;

// SHA-256. Tokens are drawn from 2^256, so that neither salt nor a slow hash
// would make one harder to find.
TokenHash HashOfToken(std::string_view token);

// A new secret of 256 random bits, in hexadecimal digits.
std::string NewToken();

// INVALID_ARGUMENT unless `tenant` can stand in a token file: valid UTF-8, from
// 1 to 256 bytes, without whitespace and control characters.
absl::Status CheckTenantName(std::string_view tenant);

// The line of a token file that gives `token` to `tenant`.
// REQUIRES: CheckTenantName(tenant).ok()
std::string TokenLine(std::string_view token, std::string_view tenant);

// What a token file says: a line for each token, "HASH TENANT", with HASH the
// token's SHA-256 in 64 hexadecimal digits; empty lines, and those that begin
// with #, say nothing. A tenant may have several tokens.
//
// Any thread may call, also at the same time.
class TokenTable {
 public:
  struct Entry {
    TokenHash hash;
    std::string tenant;
  };

  using Entries = std::vector<Entry>;

  // INVALID_ARGUMENT, or the status of a file that can't be read, names the
  // file, and the line that is wrong. A file without a token lets nobody in.
  static absl::StatusOr<std::unique_ptr<TokenTable>> Load(
      const std::string& path);

  // Nothing when nobody has this token. Takes a time that depends on the number
  // of tokens only, not on how near `token` is to one of them. Follows the file
  // as Reloaded does, so that a token that is taken out of it is refused from
  // the next call on.
  std::optional<std::string> TenantOf(std::string_view token) const;

 private:
  explicit TokenTable(std::unique_ptr<Reloaded<Entries>> entries)
      : entries_(std::move(entries)) {}

  const std::unique_ptr<Reloaded<Entries>> entries_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_TOKEN_TABLE_H_
