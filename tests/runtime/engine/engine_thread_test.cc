// Many threads at the engine's edge at once.

#include "runtime/engine/engine_thread.h"

#include <atomic>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/tokenizer/byte_tokenizer.h"
#include "tests/support/scripted_model.h"

namespace folio {
namespace {

constexpr int kThreads = 4;
constexpr int kRequestsPerThread = 100;

TEST(EngineThreadTest, EveryRequestEndsOnceAndEveryPageComesBack) {
  EngineOptions options;
  options.kv_pool_bytes = 20 * 16 * 2 * sizeof(float);
  options.scheduler = {.max_batch_tokens = 32, .max_batch_sequences = 8};
  options.queue.max_waiting_requests = kThreads * kRequestsPerThread;
  const SystemClock clock;
  SerialExecutor executor;
  const ByteTokenizer tokenizer(ScriptedModel::kVocabSize);
  auto engine = Engine::Create(
      options, std::make_unique<ScriptedModel>(100, options.model_limits()),
      &tokenizer, &clock, &executor);
  ASSERT_TRUE(engine.ok()) << engine.status();

  Outbox outbox;
  std::map<RequestId, int> terminal_events;
  std::atomic<int> num_tokens = 0;
  std::thread consumer([&] {
    StepOutput output;
    while (outbox.Pop(output)) {
      output.AnswerCallbacks();
      if (output.stepped) output.report.memory.CheckIdentities();
      for (const TokenEvent& event : output.events) {
        num_tokens += static_cast<int>(event.sampled.tokens.size());
        terminal_events[event.request_id] += event.terminal;
      }
    }
  });

  std::atomic<int> num_reports = 0;
  {
    EngineThread engine_thread(engine->get(), &outbox);
    std::vector<std::thread> clients;
    for (int t = 0; t < kThreads; ++t) {
      clients.emplace_back([&, t] {
        for (int i = 0; i < kRequestsPerThread; ++i) {
          Request request;
          request.prompt = {t, i, 1};
          request.max_tokens = i % 20;
          EXPECT_TRUE((*engine)->Prepare(request).ok());
          const RequestId id = request.id;
          EXPECT_TRUE((*engine)->Submit(std::move(request)).ok());
          if (i % 3 == 0) (*engine)->Abort(id);
          if (i % 10 == 0) {
            EXPECT_TRUE((*engine)->AskForReport(
                [&](const BatchReport&) { ++num_reports; }));
          }
        }
      });
    }
    for (std::thread& client : clients) client.join();
    while (num_tokens == 0) std::this_thread::yield();
  }  // The engine is closed while requests are live.
  consumer.join();

  EXPECT_EQ(num_reports, kThreads * kRequestsPerThread / 10);
  EXPECT_EQ(terminal_events.size(), size_t{kThreads * kRequestsPerThread});
  for (const auto& [id, count] : terminal_events) EXPECT_EQ(count, 1);
  const KvCache& cache = (*engine)->scheduler().cache();
  EXPECT_EQ(cache.num_available(), cache.num_pages());
}

}  // namespace
}  // namespace folio
