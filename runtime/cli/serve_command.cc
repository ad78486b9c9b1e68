#include "runtime/cli/serve_command.h"

#include <glog/logging.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/base/byte_size.h"
#include "runtime/base/status_macros.h"
#include "runtime/cli/engine_flags.h"
#include "runtime/cli/flags.h"
#include "runtime/server/server.h"

namespace folio {
namespace {

constexpr char kExamples[] = R"(Examples:
  folio serve
  folio serve --model my-model --listen 0.0.0.0:50051 --kv-pool 4GiB
  folio serve --listen 127.0.0.1:0
  folio serve --policy fair --target-itl 50ms --max-tenant-requests 16

Prints "listening on ADDR:PORT" once it serves. SIGINT or SIGTERM ends it: new
requests are refused, live ones have 10 seconds to finish, and the exit status
is 0. A second signal, and one while the model is still being loaded, ends it at
once with exit status 128 + the signal's number.)";

// How long live requests may take to finish after the signal.
constexpr absl::Duration kGrace = absl::Seconds(10);

struct ServeFlags {
  EngineFlags engine;
  ServerOptions server;
};

// What SIGINT and SIGTERM do depends on how far the server is.
enum class Phase { kLoading, kServing, kDraining };

// Signals reach a process, not an object. An atomic without a lock and a
// semaphore are what a handler may touch.
std::atomic<Phase> phase = Phase::kLoading;
static_assert(std::atomic<Phase>::is_always_lock_free);
std::atomic<int> end_signal = 0;
sem_t end_is_due;

// The first signal while serving begins the draining; any other ends the
// process here and now. The default action would not do so for process 1 of a
// container.
extern "C" void OnEndSignal(int signal) {
  Phase expected = Phase::kServing;
  if (!phase.compare_exchange_strong(expected, Phase::kDraining)) {
    _exit(128 + signal);
  }
  end_signal = signal;
  sem_post(&end_is_due);
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

// Returns the signal that ends the serving.
int WaitForEndSignal() {
  while (sem_wait(&end_is_due) != 0) {
    PCHECK(errno == EINTR);
  }
  return end_signal;
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

absl::Status Serve(const ServeFlags& flags) {
  FLAGS_minloglevel = google::GLOG_INFO;
  HandleEndSignals();
  FOLIO_ASSIGN_OR_RETURN(const std::unique_ptr<OpenedEngine> opened,
                         OpenEngine(flags.engine, flags.engine.ToOptions()));
  LogEngine(*opened->engine);
  FOLIO_ASSIGN_OR_RETURN(
      const std::unique_ptr<Server> server,
      Server::Start(flags.server, opened->engine.get(), opened->tokenizer.get(),
                    &opened->clock));
  phase = Phase::kServing;
  std::cout << "listening on " << server->address() << std::endl;
  if (!std::cout.good()) return absl::CancelledError("nobody reads stdout");
  const int signal = WaitForEndSignal();
  LOG(INFO) << strsignal(signal) << ": shutting down";
  server->Shutdown(kGrace);
  LOG(INFO) << "shut down";
  return absl::OkStatus();
}

}  // namespace

void AddServeCommand(CLI::App& app, CommandRun& run) {
  const auto flags = std::make_shared<ServeFlags>();
  CLI::App* const command =
      app.add_subcommand("serve", "Serves a model over gRPC");
  command->footer(kExamples);
  command
      ->add_option("--listen", flags->server.listen,
                   "Where to listen; port 0: any free one")
      ->capture_default_str()
      ->check(HostPortCheck(/*min_port=*/0))
      ->type_name("ADDR:PORT");
  AddEngineFlags(*command, flags->engine);
  AddSchedulingFlags(*command, flags->engine);
  command->callback([flags, &run] { run = [flags] { return Serve(*flags); }; });
}

}  // namespace folio
