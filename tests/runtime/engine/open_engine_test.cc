#include "runtime/engine/open_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/folio.h"

namespace folio {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A small model whose tokens are bytes.
OpenOptions Small() {
  OpenOptions options;
  options.model = "random:";
  options.threads = 2;
  options.engine.kv_pool_bytes = 8 << 20;
  return options;
}

std::unique_ptr<OpenedEngine> Open(const OpenOptions& options) {
  absl::StatusOr<std::unique_ptr<OpenedEngine>> opened = OpenEngine(options);
  EXPECT_TRUE(opened.ok()) << opened.status();
  return *std::move(opened);
}

// The request is prepared, and not submitted yet.
Request Ask(const OpenedEngine& opened, const std::string& text,
            int32_t max_tokens) {
  Request request;
  request.prompt =
      opened.tokenizer->Encode(text, {.add_special = true}).value();
  request.max_tokens = max_tokens;
  EXPECT_TRUE(opened.engine->Prepare(request).ok());
  return request;
}

// What one request gets, when the caller drives the engine.
std::vector<TokenId> Generate(const OpenedEngine& opened,
                              const std::string& text) {
  EXPECT_TRUE(opened.engine->Submit(Ask(opened, text, 20)).ok());
  std::vector<TokenId> tokens;
  StepOutput output;
  for (bool live = true; live;) {
    live = opened.engine->Step(output);
    for (const TokenEvent& event : output.events) {
      tokens.insert(tokens.end(), event.sampled.tokens.begin(),
                    event.sampled.tokens.end());
    }
  }
  return tokens;
}

void ExpectRefused(const OpenOptions& options, const std::string& part) {
  const absl::Status status = OpenEngine(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

TEST(OpenEngine, SaysWhatIsWrong) {
  for (const int32_t threads : {-1, 0, kMaxThreads + 1}) {
    OpenOptions options = Small();
    options.threads = threads;
    ExpectRefused(options, "threads is " + std::to_string(threads) +
                               "; it must be from 1 to 1024");
  }
  OpenOptions options = Small();
  options.engine.page_size = 24;
  ExpectRefused(options, "page size is 24");
  options = Small();
  options.model = "random:heads=none";
  ExpectRefused(options, "heads");
}

TEST(OpenEngine, TellsWhatItHasCheckedBeforeItReadsWeights) {
  std::vector<std::string> calls;
  int64_t last_done = 0;
  int64_t last_total = -1;
  OpenOptions options = Small();
  options.model = "";
  options.on_checked = [&](const ModelSource& source,
                           const TokenizerInfo& tokenizer) {
    calls.push_back(source.name + ", " + tokenizer.kind);
  };
  options.on_progress = [&](int64_t done, int64_t total) {
    if (calls.size() < 2) calls.push_back("progress");
    EXPECT_GE(done, last_done);
    last_done = done;
    last_total = total;
  };
  const auto opened = Open(options);
  EXPECT_THAT(calls, ElementsAre("folio-tiny, byte-level BPE", "progress"));
  EXPECT_GT(last_done, 0);  // It comes after matrices, not after each norm.
  EXPECT_LE(last_done, last_total);
  EXPECT_EQ(opened->model_config.vocab_size, 2048);
}

TEST(OpenEngine, LetsThePoolBeChosenForTheModel) {
  OpenOptions options = Small();
  options.choose_pool = [](const ModelInfo& model, const EngineOptions& with) {
    return model.kv_shape.BytesPerToken() * with.page_size * 10;
  };
  const auto opened = Open(options);
  EXPECT_EQ(opened->engine->scheduler().cache().num_pages(), 10);
}

TEST(OpenEngine, DrawsASeedSourceUnlessThereIsOne) {
  const auto first_seed = [](uint64_t source) {
    OpenOptions options = Small();
    options.engine.seed_source = source;
    return *Ask(*Open(options), "a", 1).sampling.seed;
  };
  EXPECT_EQ(first_seed(7), first_seed(7));
  EXPECT_NE(first_seed(0), first_seed(0));  // Equal once in 2^53 runs.
}

TEST(OpenEngine, AThreadCanDriveIt) {
  const auto opened = Open(Small());
  const std::vector<TokenId> alone = Generate(*opened, "alone");

  std::map<RequestId, std::vector<TokenId>> tokens;
  std::map<RequestId, FinishReason> ends;
  Request whole = Ask(*opened, "alone", 20);
  Request endless = Ask(*opened, "endless", 100000);
  const RequestId whole_id = whole.id;
  const RequestId endless_id = endless.id;
  Outbox outbox;
  EngineThread thread(opened->engine.get(), &outbox);
  ASSERT_TRUE(opened->engine->Submit(std::move(endless)).ok());
  ASSERT_TRUE(opened->engine->Submit(std::move(whole)).ok());
  StepOutput output;
  while (ends.size() < 2 && outbox.Pop(output)) {
    for (const TokenEvent& event : output.events) {
      std::vector<TokenId>& all = tokens[event.request_id];
      all.insert(all.end(), event.sampled.tokens.begin(),
                 event.sampled.tokens.end());
      if (!event.terminal) continue;
      EXPECT_TRUE(
          ends.try_emplace(event.request_id, event.finish_reason).second);
      if (event.request_id == whole_id) opened->engine->Abort(endless_id);
    }
  }
  EXPECT_EQ(tokens[whole_id], alone);
  EXPECT_EQ(ends[whole_id], FinishReason::kLength);
  EXPECT_EQ(ends[endless_id], FinishReason::kCancelled);
}

TEST(OpenEngine, SeveralLiveInOneProcess) {
  const std::vector<TokenId> expected = Generate(*Open(Small()), "same");
  std::vector<std::vector<TokenId>> found(2);
  std::vector<std::thread> threads;
  for (std::vector<TokenId>& tokens : found) {
    threads.emplace_back(
        [&tokens] { tokens = Generate(*Open(Small()), "same"); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(found, ElementsAre(expected, expected));
}

}  // namespace
}  // namespace folio
