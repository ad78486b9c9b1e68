#include "runtime/cli/token_command.h"

#include <iostream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "runtime/base/status_macros.h"
#include "runtime/server/token_table.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  folio token --tenant alice
  (umask 077; folio token --tenant alice 2>alice.token >>tokens)
  folio serve --token-file tokens
  folio generate --server 127.0.0.1:50051 --token-file alice.token --prompt Hello

Prints a new random token on stderr, for the client, and on stdout its line for
the server's file, which has a hash of it only and need not be kept secret. A
server that runs takes such a line, and forgets one that is removed, with the
next call; calls that run go on. A file that it can't read changes nothing: the
server says so in its log.)";

absl::Status PrintToken(const std::string& tenant) {
  FOLIO_RETURN_IF_ERROR(CheckTenantName(tenant));
  const std::string token = NewToken();
  // A line that nobody gets is of no use to the token.
  std::cout << TokenLine(token, tenant) << std::endl;
  if (std::cout.good()) std::cerr << token << std::endl;
  return absl::OkStatus();
}

}  // namespace

void AddTokenCommand(CLI::App& app, CommandRun& run) {
  const auto tenant = std::make_shared<std::string>();
  CLI::App* const command =
      app.add_subcommand("token", "Makes a token for a server's clients");
  command->footer(kExamples);
  command->add_option("--tenant", *tenant, "Whom it is for")
      ->required()
      ->type_name("NAME");
  command->callback(
      [tenant, &run] { run = [tenant] { return PrintToken(*tenant); }; });
}

}  // namespace folio
