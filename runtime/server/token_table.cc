#include "runtime/server/token_table.h"

#include <glog/logging.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/utf8.h"
#include "runtime/server/small_file.h"

namespace folio {
namespace {

std::string ToHex(const uint8_t* bytes, size_t size) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes), size});
}

absl::StatusOr<TokenHash> ParseHash(const std::string& digits) {
  TokenHash hash;
  if (digits.size() != 2 * hash.size() ||
      !std::ranges::all_of(digits, [](char c) {
        return absl::ascii_isxdigit(static_cast<unsigned char>(c));
      })) {
    // It may be a token, put here by mistake: not to be repeated.
    return absl::InvalidArgumentError(absl::StrCat(
        "it begins with ", digits.size(),
        " characters that are not a SHA-256 "
        "in 64 hexadecimal digits (`folio token` makes such lines)"));
  }
  std::ranges::copy(absl::HexStringToBytes(digits), hash.begin());
  return hash;
}

absl::StatusOr<TokenTable::Entry> ParseEntry(absl::string_view line) {
  const std::vector<std::string> fields =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (fields.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "it has ", fields.size(),
        " words; expected 2, the SHA-256 of a token and its tenant"));
  }
  FOLIO_ASSIGN_OR_RETURN(const TokenHash hash, ParseHash(fields[0]));
  FOLIO_RETURN_IF_ERROR(CheckTenantName(fields[1]));
  return TokenTable::Entry{.hash = hash, .tenant = fields[1]};
}

absl::StatusOr<std::vector<TokenTable::Entry>> ParseEntries(
    const std::string& text, const std::string& path) {
  std::vector<TokenTable::Entry> entries;
  std::map<TokenHash, int> line_of;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    absl::StatusOr<TokenTable::Entry> entry = ParseEntry(line);
    if (!entry.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("token file '", path,
                                                     "', line ", number, ": ",
                                                     entry.status().message()));
    }
    if (const auto [first, is_new] = line_of.emplace(entry->hash, number);
        !is_new) {
      return absl::InvalidArgumentError(absl::StrCat(
          "token file '", path, "', line ", number,
          ": it has the hash of line ", first->second,
          "; a token belongs to one tenant, so remove one of them"));
    }
    entries.push_back(*std::move(entry));
  }
  // (Whoever removes the last one means it.)
  LOG_IF(WARNING, entries.empty())
      << "token file '" << path
      << "' has no tokens, so nobody can call; `folio token --tenant NAME` "
         "makes a line of it";
  return entries;
}

absl::StatusOr<std::vector<TokenTable::Entry>> ReadEntries(
    const std::string& path) {
  FOLIO_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path));
  return ParseEntries(text, path);
}

}  // namespace

TokenHash HashOfToken(std::string_view token) {
  TokenHash hash;
  CHECK_EQ(EVP_Digest(token.data(), token.size(), hash.data(), /*size=*/nullptr,
                      EVP_sha256(), /*impl=*/nullptr),
           1);
  return hash;
}

std::string NewToken() {
  std::array<uint8_t, 32> secret;
  CHECK_EQ(RAND_bytes(secret.data(), secret.size()), 1);
  return ToHex(secret.data(), secret.size());
}

absl::Status CheckTenantName(std::string_view tenant) {
  if (tenant.empty() || tenant.size() > kMaxTenantBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tenant's name has ", tenant.size(),
                     " bytes; it must have from 1 to ", kMaxTenantBytes));
  }
  const bool is_word = std::ranges::none_of(tenant, [](unsigned char c) {
    return absl::ascii_isspace(c) || absl::ascii_iscntrl(c);
  });
  if (!is_word || !IsValidUtf8(tenant)) {
    return absl::InvalidArgumentError(
        "the tenant's name must be valid UTF-8, without spaces and control "
        "characters");
  }
  return absl::OkStatus();
}

std::string TokenLine(std::string_view token, std::string_view tenant) {
  const TokenHash hash = HashOfToken(token);
  return absl::StrCat(ToHex(hash.data(), hash.size()), " ",
                      std::string(tenant));
}

absl::StatusOr<std::unique_ptr<TokenTable>> TokenTable::Load(
    const std::string& path) {
  FOLIO_ASSIGN_OR_RETURN(
      std::unique_ptr<Reloaded<Entries>> entries,
      Reloaded<Entries>::Load({path}, [path] { return ReadEntries(path); }));
  return std::unique_ptr<TokenTable>(new TokenTable(std::move(entries)));
}

std::optional<std::string> TokenTable::TenantOf(std::string_view token) const {
  const std::shared_ptr<const Entries> entries = entries_->Current();
  const TokenHash hash = HashOfToken(token);
  // All are compared, and each to its end, so that the time tells nothing.
  const Entry* found = nullptr;
  for (const Entry& entry : *entries) {
    const bool equal =
        CRYPTO_memcmp(entry.hash.data(), hash.data(), hash.size()) == 0;
    found = equal ? &entry : found;
  }
  if (found == nullptr) return std::nullopt;
  return found->tenant;
}

}  // namespace folio
