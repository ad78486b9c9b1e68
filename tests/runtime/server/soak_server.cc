// A server with the scripted model as a program of its own, so that soak_test
// can see what a server's process takes, without the clients' share.
//
//   soak_server MAX_WAITING_REQUESTS REQUEST_LOG
//
// Says in one line where it serves calls, Admin and metrics. Then, for each
// line that it reads, gives memory that is free back to the system, and says so
// with an empty line. Ends with its input.

#include <glog/logging.h>
#include <malloc.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/engine/engine.h"
#include "runtime/server/server.h"
#include "runtime/tokenizer/byte_tokenizer.h"
#include "tests/runtime/server/gated_model.h"
#include "tests/support/scripted_model.h"

namespace folio {
namespace {

constexpr int32_t kContext = 1024;

// The default pool, of tokens so large that it has fewer pages than the
// sequences of a full batch may want: some of them are preempted.
constexpr int32_t kPageSize = 16;
constexpr int32_t kNumPages = 512;
constexpr int64_t kLayerBytes = 2 * sizeof(float);
constexpr auto kNumLayers = static_cast<int32_t>(
    EngineOptions{}.kv_pool_bytes / (kNumPages * kPageSize * kLayerBytes));

EngineOptions OptionsFor(int32_t max_waiting_requests) {
  EngineOptions options;
  options.page_size = kPageSize;
  options.scheduler.max_batch_sequences = 64;
  options.queue.max_waiting_requests = max_waiting_requests;
  options.seed_source = 1;
  return options;
}

int Main(int argc, char** argv) {
  CHECK_EQ(argc, 3);
  const EngineOptions options = OptionsFor(std::atoi(argv[1]));
  // Time for clients to act while their requests run.
  Gate gate;
  gate.SetDelay(std::chrono::milliseconds(1));
  const ByteTokenizer tokenizer(ScriptedModel::kVocabSize);
  const SystemClock clock;
  SerialExecutor executor;
  auto engine = Engine::Create(
      options,
      std::make_unique<GatedModel>(
          std::make_unique<ScriptedModel>(kContext, options.model_limits(),
                                          /*window=*/std::nullopt, kNumLayers),
          &gate),
      &tokenizer, &clock, &executor);
  CHECK(engine.ok()) << engine.status();
  const auto server = Server::Start(
      {.listen = "127.0.0.1:0",
       .admin_listen = "127.0.0.1:0",
       .telemetry = {.metrics_listen = "127.0.0.1:0", .request_log = argv[2]}},
      engine->get(), &tokenizer, &clock);
  CHECK(server.ok()) << server.status();
  std::cout << (*server)->address() << " " << (*server)->admin_address() << " "
            << (*server)->metrics_address() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    malloc_trim(0);
    const struct mallinfo2 heap = mallinfo2();
    std::cout << heap.uordblks + heap.hblkhd << std::endl;
  }
  (*server)->Shutdown(absl::Seconds(10));
  return 0;
}

}  // namespace
}  // namespace folio

int main(int argc, char** argv) { return folio::Main(argc, argv); }
