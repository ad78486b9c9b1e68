#include "runtime/cli/memory_command.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/status_macros.h"
#include "runtime/cli/connect.h"
#include "runtime/cli/flags.h"
#include "runtime/cli/memory_live.h"
#include "runtime/cli/memory_printer.h"
#include "runtime/cli/security_flags.h"
#include "runtime/client/client.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  folio memory --server 127.0.0.1:50051
  folio memory --server 127.0.0.1:50051 --follow
  folio memory --server 10.0.0.7:50051 --tls-ca ca.crt --token-file token
  folio memory --server 127.0.0.1:50051 --follow --json | jq .memory.waste_share

Reserved is what pages in use take, holding what the tokens in them take by the
formula 2 * layers * KV heads * head dimension * bytes per element; the rest of
what is reserved is waste. JSON has the fields of folio.v1.BatchReport, with
durations in seconds. With --follow, a terminal shows a table of the last batch;
a pipe gets a line for each one from the header on.)";

struct MemoryFlags {
  std::optional<std::string> server;  // Required.
  ClientSecurityFlags security;
  bool follow = false;
  bool json = false;
};

// A server that ends is one of the two ways in which following ends.
absl::Status EndOfFollowing(const absl::Status& status,
                            const std::string& server) {
  if (IsShutdown(status)) return absl::OkStatus();
  return ExplainBroken(status, server, kIncomplete);
}

absl::Status FollowLines(Client& client, const std::string& server, bool json) {
  const absl::Status status = client.WatchBatches(
      /*on_start=*/
      [&] {
        if (!json) PrintBatchHeader();
      },
      /*on_report=*/
      [&](const v1::BatchReport& report) {
        if (json) {
          PrintBatchJson(report);
        } else {
          PrintBatchLine(report);
        }
        return std::cout.good();
      });
  return EndOfFollowing(status, server);
}

// Whether a table can be redrawn in place on stdout.
bool IsScreen() {
  const char* const terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

absl::Status FollowLive(const std::string& server,
                        const ClientSecurityFlags& security) {
  MemoryLive live(server);  // Before gRPC's threads, as it wants.
  FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                         ConnectTo(server, security));
  const absl::StatusOr<v1::BatchReport> now = client->GetMemoryReport();
  if (!now.ok()) return ExplainBroken(now.status(), server);
  live.Show(*now);  // Batches may be far away.
  const absl::Status status = client->WatchBatches(
      /*on_start=*/[] {},
      /*on_report=*/
      [&](const v1::BatchReport& report) { return live.Show(report); });
  return EndOfFollowing(status, server);
}

absl::Status Memory(const MemoryFlags& flags) {
  if (flags.follow && !flags.json && IsScreen()) {
    return FollowLive(*flags.server, flags.security);
  }
  FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                         ConnectTo(*flags.server, flags.security));
  if (flags.follow) return FollowLines(*client, *flags.server, flags.json);
  const absl::StatusOr<v1::BatchReport> report = client->GetMemoryReport();
  if (!report.ok()) return ExplainBroken(report.status(), *flags.server);
  if (flags.json) {
    PrintBatchJson(*report);
  } else {
    PrintReportTable(*report);
  }
  return absl::OkStatus();
}

}  // namespace

void AddMemoryCommand(CLI::App& app, CommandRun& run) {
  const auto flags = std::make_shared<MemoryFlags>();
  CLI::App* const command =
      app.add_subcommand("memory", "Shows where the memory of a server is");
  command->footer(kExamples);
  CLI::Option* const server =
      AddServerOption(*command, flags->server, "Where the server listens")
          ->required();
  command->add_flag("--follow", flags->follow,
                    "A live table, or in a pipe a line for each batch, until "
                    "Ctrl-C or the server's end");
  command->add_flag("--json", flags->json, "One JSON object a line");
  AddClientSecurityFlags(*command, server, flags->security);
  command->callback(
      [flags, &run] { run = [flags] { return Memory(*flags); }; });
}

}  // namespace folio
