#include "runtime/cli/memory_command.h"

#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/status_macros.h"
#include "runtime/cli/connect.h"
#include "runtime/cli/flags.h"
#include "runtime/cli/memory_printer.h"
#include "runtime/client/client.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  folio memory --server 127.0.0.1:50051
  folio memory --server 127.0.0.1:50051 --follow
  folio memory --server 127.0.0.1:50051 --follow --json | jq .memory.waste_share

Reserved is what pages in use take, holding what the tokens in them take by the
formula 2 * layers * KV heads * head dimension * bytes per element; the rest of
what is reserved is waste. JSON has the fields of folio.v1.BatchReport, with
durations in seconds. With --follow, batches are reported from the header on.)";

struct MemoryFlags {
  std::optional<std::string> server;  // Required.
  bool follow = false;
  bool json = false;
};

absl::Status Follow(Client& client, const std::string& server, bool json) {
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
  // A server that ends is one of the two ways in which following ends.
  if (IsShutdown(status)) return absl::OkStatus();
  return ExplainBroken(status, server, kIncomplete);
}

absl::Status Memory(const MemoryFlags& flags) {
  FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                         ConnectTo(*flags.server));
  if (flags.follow) return Follow(*client, *flags.server, flags.json);
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
  AddServerOption(*command, flags->server, "Where the server listens")
      ->required();
  command->add_flag("--follow", flags->follow,
                    "A line for each batch, until Ctrl-C or the server's end");
  command->add_flag("--json", flags->json, "One JSON object a line");
  command->callback(
      [flags, &run] { run = [flags] { return Memory(*flags); }; });
}

}  // namespace folio
