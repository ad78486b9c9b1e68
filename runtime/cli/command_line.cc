#include "runtime/cli/command_line.h"

#include <glog/logging.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "runtime/cli/bench_command.h"
#include "runtime/cli/generate_command.h"
#include "runtime/cli/inspect_command.h"
#include "runtime/cli/memory_command.h"
#include "runtime/cli/serve_command.h"
#include "runtime/cli/stdout_writer.h"
#include "runtime/cli/token_command.h"
#include "runtime/cli/tokenize_command.h"
#include "runtime/cli/visible_text.h"

namespace folio {
namespace {

constexpr int kExitError = 1;
constexpr int kExitUsage = 2;

constexpr char kExamples[] = R"(Examples:
  folio serve --listen 127.0.0.1:50051
  folio generate --prompt "Once upon a time" --max-tokens 32
  folio generate --server 127.0.0.1:50051 --prompt "Once upon a time"
  folio memory --server 127.0.0.1:50051 --follow
  folio bench --streams 1,4,16,32

folio COMMAND --help says more about each.)";

// Messages may quote anything, but an error is one line.
void PrintError(const std::string& program, std::string_view message) {
  std::cerr << program << ": "
            << WithVisibleControls(absl::StrReplaceAll(
                   {message.data(), message.size()}, {{"\r", ""}, {"\n", " "}}))
            << std::endl;
}

// What is wrong with a command line. CLI11 says that a word is missing where
// there is a wrong one, and lists what is too much backwards.
std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> extra = app.remaining(/*recurse=*/true);
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands(/*filter=*/{})) {
    commands.push_back(command->get_name());
  }
  if (app.get_subcommands().empty() && !commands.empty() && !extra.empty()) {
    return absl::StrCat("'", extra.front(),
                        "' is not a command; the commands are ",
                        absl::StrJoin(commands, ", "));
  }
  // (Its name is that of the command, so only its type tells.)
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    return absl::StrCat("not expected: ", absl::StrJoin(extra, " "));
  }
  return error.what();
}

// Where to read about the flags that were got wrong.
std::string HelpHint(const CLI::App& app) {
  std::string command = app.get_name();
  for (const CLI::App* chosen : app.get_subcommands()) {
    command += " " + chosen->get_name();
  }
  return " (" + command + " --help says what there is)";
}

absl::Status RunCatching(const CommandRun& run) {
  try {
    return run();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace

int RunCommandLine(int argc, char** argv) {
  CLI::App app("Folio, a paged KV-cache serving runtime.", "folio");
  app.require_subcommand(1);
  app.footer(kExamples);
  CommandRun run;
  AddServeCommand(app, run);
  AddGenerateCommand(app, run);
  AddMemoryCommand(app, run);
  AddInspectCommand(app, run);
  AddTokenizeCommand(app, run);
  AddTokenCommand(app, run);
  AddBenchCommand(app, run);
  return RunProgram(app, argc, argv, run);
}

int RunProgram(CLI::App& app, int argc, char** argv, const CommandRun& run) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_WARNING;  // Commands may want more.
  google::InitGoogleLogging(argv[0]);
  // Errors of gRPC come back as statuses, and are told once, by us. It reads
  // this when it is first used.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);

  const std::string& program = app.get_name();
  app.set_version_flag("--version", program + " " FOLIO_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return RunToExitStatus(program, [&] {
      app.exit(help);
      return absl::OkStatus();
    });
  } catch (const CLI::ParseError& error) {
    PrintError(program, Explain(app, error) + HelpHint(app));
    return kExitUsage;
  }
  return RunToExitStatus(program, run);
}

int RunToExitStatus(const std::string& program, const CommandRun& run) {
  StdoutWriter writer;
  absl::Status status = RunCatching(run);
  // Where output is lost, that is also why the command has ended.
  const absl::Status written = writer.Flush();
  if (!written.ok()) status = written;
  if (status.ok()) return 0;
  PrintError(program, {status.message().data(), status.message().size()});
  return kExitError;
}

}  // namespace folio
