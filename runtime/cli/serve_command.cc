#include "runtime/cli/serve_command.h"

#include <glog/logging.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/base/byte_size.h"
#include "runtime/base/status_macros.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/flags.h"
#include "runtime/cli/security_flags.h"
#include "runtime/cli/telemetry_flags.h"
#include "runtime/server/server.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  folio serve
  folio serve --model my-model --kv-pool 4GiB --metrics-listen 127.0.0.1:9090
  folio serve --listen 0.0.0.0:50051 --tls-cert server.pem --tls-key server.key \
    --token-file tokens
  folio serve --policy fair --target-itl 50ms --max-tenant-requests 16
  folio serve --listen 127.0.0.1:0 --admin-listen unix:/run/folio/admin

Listens at once, says NOT_SERVING while the model is loaded, and prints
"listening on ADDR:PORT" when it serves. SIGINT, SIGTERM or a call of Admin.Drain
ends it: new requests are refused, those that are running or waiting have
--drain-timeout to finish, and the exit status is 0. A second signal, and one
while the model is still being loaded, ends it at once with exit status 128 + the
signal's number.)";

struct ServeFlags {
  EngineFlags engine;
  ServerOptions server;
  std::optional<absl::Duration> drain_timeout;
  std::optional<absl::Duration> stall_timeout;
  std::optional<int64_t> max_message_size;
};

// How long requests may take to finish after the signal.
constexpr absl::Duration kDrainTimeout = absl::Seconds(30);

// Signals reach a process, not an object. Atomics without a lock and a
// semaphore are what a handler may touch.
std::atomic<bool> is_loading = true;
std::atomic<int> end_signal = 0;
static_assert(std::atomic<bool>::is_always_lock_free &&
              std::atomic<int>::is_always_lock_free);
sem_t end_is_due;
// What Admin.Drain asked for; negative: nothing.
std::atomic<int64_t> drain_milliseconds = -1;

// The first signal while serving begins the draining, if Admin.Drain has not; a
// second one, or one while loading, ends the process here and now. The default
// action would not do so for process 1 of a container.
extern "C" void OnEndSignal(int signal) {
  int none = 0;
  if (is_loading || !end_signal.compare_exchange_strong(none, signal)) {
    _exit(128 + signal);
  }
  sem_post(&end_is_due);
}

// The same, by a call of Admin.Drain; while loading, it counts when that is
// done. The first call's timeout counts.
void OnDrainCall(std::optional<absl::Duration> timeout) {
  static std::atomic<bool> was_called = false;
  if (was_called.exchange(true)) return;
  if (timeout.has_value()) {
    drain_milliseconds = absl::ToInt64Milliseconds(*timeout);
  }
  PCHECK(sem_post(&end_is_due) == 0);
}

// Before any thread is started, so that none ever runs without it.
void HandleEndSignals() {
  PCHECK(sem_init(&end_is_due, /*pshared=*/0, /*value=*/0) == 0);
  struct sigaction action = {};
  action.sa_handler = OnEndSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) {
    PCHECK(sigaction(signal, &action, nullptr) == 0);
  }
}

// Returns why the serving ends.
std::string WaitForTheEnd() {
  while (sem_wait(&end_is_due) != 0) {
    PCHECK(errno == EINTR);
  }
  return end_signal == 0 ? "Admin.Drain was called" : strsignal(end_signal);
}

void LogEngine(Engine& engine) {
  const ModelInfo& model = engine.model_info();
  const EngineOptions& options = engine.options();
  LOG(INFO) << "model " << model.name << ", a " << model.architecture << ": "
            << model.num_parameters << " parameters ("
            << FormatByteSize(model.weight_bytes) << " in memory), vocabulary "
            << model.vocab_size << ", context " << model.context_length
            << (model.window.has_value()
                    ? absl::StrCat(", sliding window ", *model.window)
                    : "");
  LOG(INFO) << "KV pool " << FormatByteSize(options.kv_pool_bytes) << ": "
            << engine.scheduler().cache().num_pages() << " pages of "
            << options.page_size << " tokens; up to "
            << options.scheduler.max_batch_tokens << " tokens of "
            << options.scheduler.max_batch_sequences << " sequences a step";
}

absl::StatusOr<ServerOptions> ToServerOptions(const ServeFlags& flags) {
  ServerOptions options = flags.server;
  if (flags.stall_timeout.has_value()) {
    options.stall_timeout = *flags.stall_timeout;
  }
  if (flags.max_message_size.has_value()) {
    if (*flags.max_message_size > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--max-message-size is ", FormatByteSize(*flags.max_message_size),
          "; it must be below 2GiB"));
    }
    options.max_message_bytes = static_cast<int32_t>(*flags.max_message_size);
  }
  options.on_drain = OnDrainCall;
  return options;
}

void LogAddresses(const Server& server) {
  if (!server.admin_address().empty()) {
    LOG(INFO) << "admin calls on " << server.admin_address();
  }
  if (!server.metrics_address().empty()) {
    LOG(INFO) << "metrics on http://" << server.metrics_address() << "/metrics";
  }
}

absl::Status Serve(const ServeFlags& flags) {
  FLAGS_minloglevel = google::GLOG_INFO;
  HandleEndSignals();
  FOLIO_ASSIGN_OR_RETURN(const ServerOptions options, ToServerOptions(flags));
  std::unique_ptr<OpenedEngine> opened;  // It outlives the server.
  FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server,
                         Server::Listen(options));
  FOLIO_ASSIGN_OR_RETURN(opened,
                         OpenEngine(flags.engine, flags.engine.ToOptions()));
  LogEngine(*opened->engine);
  FOLIO_RETURN_IF_ERROR(server->Serve(opened->engine.get(),
                                      opened->tokenizer.get(), &opened->clock));
  LogAddresses(*server);
  is_loading = false;
  std::cout << "listening on " << server->address() << std::endl;
  if (!std::cout.good()) return absl::CancelledError("nobody reads stdout");
  const std::string why = WaitForTheEnd();
  const absl::Duration timeout =
      drain_milliseconds >= 0 ? absl::Milliseconds(drain_milliseconds.load())
                              : flags.drain_timeout.value_or(kDrainTimeout);
  LOG(INFO) << why << ": shutting down; requests may finish within "
            << absl::FormatDuration(timeout);
  server->Shutdown(timeout);
  LOG(INFO) << "shut down";
  return absl::OkStatus();
}

void AddServerFlags(CLI::App& app, ServeFlags& flags) {
  app.add_option("--listen", flags.server.listen,
                 "Where to listen; port 0: any free one")
      ->capture_default_str()
      ->check(HostPortCheck(/*min_port=*/0))
      ->type_name("ADDR:PORT");
  app.add_option("--admin-listen", flags.server.admin_listen,
                 "Where to take calls of Admin: on a loopback address, or a "
                 "unix socket. Default: nowhere")
      ->check(NotEmptyCheck())
      ->type_name("ADDR:PORT|unix:/PATH");
  AddDurationOption(
      app, "--drain-timeout", flags.drain_timeout,
      "How long requests may take to finish when the server ends. "
      "Default: " +
          absl::FormatDuration(kDrainTimeout));
  AddDurationOption(
      app, "--stall-timeout", flags.stall_timeout,
      "Health says NOT_SERVING when requests are live and no step "
      "was made for so long. Default: " +
          absl::FormatDuration(ServerOptions().stall_timeout));
  AddByteSizeOption(app, "--max-message-size", flags.max_message_size,
                    "The largest request. Default: " +
                        FormatByteSize(ServerOptions().max_message_bytes));
  app.add_option("--max-streams-per-connection",
                 flags.server.max_streams_per_connection,
                 "Calls that one connection may have at once")
      ->check(CLI::Range(1, 1 << 30).description(""))
      ->capture_default_str()
      ->type_name("N");
}

}  // namespace

void AddServeCommand(CLI::App& app, CommandRun& run) {
  const auto flags = std::make_shared<ServeFlags>();
  CLI::App* const command =
      app.add_subcommand("serve", "Serves a model over gRPC");
  command->footer(kExamples);
  AddServerFlags(*command, *flags);
  AddSecurityFlags(*command, flags->server.security);
  AddTelemetryFlags(*command, flags->server.telemetry);
  AddEngineFlags(*command, flags->engine);
  AddSchedulingFlags(*command, flags->engine);
  command->callback([flags, &run] { run = [flags] { return Serve(*flags); }; });
}

}  // namespace folio
