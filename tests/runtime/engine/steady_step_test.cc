// A steady step allocates nothing: no thread inside the model, and no thread
// outside of it. Adding and ending requests may.

#include <glog/logging.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/outbox.h"
#include "runtime/model/model_registry.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/runtime/engine/watched_allocations.h"

namespace folio {
namespace {

constexpr int32_t kPageSize = 8;
constexpr int32_t kNumRequests = 6;
constexpr int32_t kWarmSteps = 20;
constexpr int32_t kWatchedSteps = 100;  // Twelve page boundaries a sequence.
constexpr int32_t kMaxTokens = kWarmSteps + kWatchedSteps + 20;

// Marks what is allocated inside the model it passes everything on to.
class MarkedModel final : public Model {
 public:
  explicit MarkedModel(std::unique_ptr<Model> model)
      : model_(std::move(model)) {}

  const ModelInfo& info() const override { return model_->info(); }
  void Forward(const StepInput& input, KvStorage& storage) override {
    SetMark(true);
    model_->Forward(input, storage);
    SetMark(false);
  }
  const ColumnBlocks& Logits(int32_t first, int32_t count) override {
    SetMark(true);
    const ColumnBlocks& logits = model_->Logits(first, count);
    SetMark(false);
    return logits;
  }

 private:
  const std::unique_ptr<Model> model_;
};

// Tokens of a few bytes, now and then of many, some of which end inside a
// character.
class WordyTokenizer final : public Tokenizer {
 public:
  explicit WordyTokenizer(int32_t vocab_size) { info_.vocab_size = vocab_size; }

  const TokenizerInfo& info() const override { return info_; }
  absl::StatusOr<std::vector<TokenId>> Encode(
      std::string_view, const EncodeOptions&) const override {
    return absl::UnimplementedError("there is no text here");
  }
  void AppendBytes(TokenId token, std::string& bytes) const override {
    bytes.append(token % 64 == 0 ? 200 : token % 10, 'x');
    if (token % 3 == 0) bytes += '\xE2';
  }

 private:
  TokenizerInfo info_;
};

// One that uses everything.
Request BusyRequest(int32_t index, int32_t vocab_size,
                    const std::vector<TokenId>& stop_tokens) {
  Request request;
  for (int32_t i = 0; i < 5 + 3 * index; ++i) {
    request.prompt.push_back((17 * index + 5 * i) % vocab_size);
  }
  request.max_tokens = kMaxTokens;
  request.sampling = {.temperature = index == 0 ? 0.0f : 1.0f,
                      .top_k = index % 3 == 1 ? 40 : 0,
                      .top_p = index % 2 == 1 ? 0.9f : 1.0f,
                      .seed = static_cast<uint64_t>(index),
                      .logprobs = 5};
  request.stop_tokens = stop_tokens;
  request.ignore_eos = true;
  return request;
}

// How an engine thread and its publisher live.
class Loop {
 public:
  explicit Loop(Engine* engine)
      : engine_(*engine), was_sampled_(engine->model_info().vocab_size) {}

  void Submit(const std::vector<TokenId>& stop_tokens) {
    for (int32_t i = 0; i < kNumRequests; ++i) {
      Request request =
          BusyRequest(i, engine_.model_info().vocab_size, stop_tokens);
      CHECK(engine_.Prepare(request).ok());
      CHECK(engine_.Submit(std::move(request)).ok());
    }
  }

  bool Step() {
    const bool has_work = engine_.Step(output_);
    for (const TokenEvent& event : output_.events) {
      text_bytes_ += static_cast<int64_t>(event.text.size());
      for (const TokenId token : event.sampled.tokens) {
        was_sampled_[token] = true;
      }
    }
    outbox_.Push(output_);
    CHECK(outbox_.Pop(taken_));
    return has_work;
  }

  int64_t text_bytes() const { return text_bytes_; }

  std::vector<TokenId> NeverSampled() const {
    std::vector<TokenId> tokens;
    for (size_t i = 0; i < was_sampled_.size(); ++i) {
      if (!was_sampled_[i]) tokens.push_back(static_cast<TokenId>(i));
    }
    return tokens;
  }

 private:
  Engine& engine_;
  Outbox outbox_;
  StepOutput output_;
  StepOutput taken_;
  int64_t text_bytes_ = 0;
  std::vector<bool> was_sampled_;  // [vocab_size]
};

void ExpectNoAllocation(const std::vector<AllocationCall>& calls) {
  std::map<std::pair<std::string, bool>, int64_t> places;
  for (const AllocationCall& call : calls) {
    if (call.kind == AllocationCall::Kind::kAllocate) {
      ++places[{PlaceOf(call.caller), call.marked}];
    }
  }
  for (const auto& [place, count] : places) {
    ADD_FAILURE() << count << " allocations "
                  << (place.second ? "inside" : "outside") << " the model by "
                  << place.first;
  }
}

struct Case {
  const char* name;
  const char* model;
  WantedTypes types;
  int num_threads;
};

class SteadyStepTest : public testing::TestWithParam<Case> {};

TEST_P(SteadyStepTest, AllocatesNothing) {
  const Case& param = GetParam();
  EngineOptions options;
  options.page_size = kPageSize;
  options.kv_pool_bytes = 16 << 20;
  options.scheduler = {.max_batch_tokens = 64,
                       .max_batch_sequences = kNumRequests};
  const std::unique_ptr<Executor> executor =
      MakeParallelExecutor(param.num_threads);
  auto model = OpenModel(param.model, options.model_limits(), executor.get(),
                         param.types);
  ASSERT_TRUE(model.ok()) << model.status();
  const WordyTokenizer tokenizer((*model)->info().vocab_size);
  const SystemClock clock;
  auto engine =
      Engine::Create(options, std::make_unique<MarkedModel>(*std::move(model)),
                     &tokenizer, &clock, executor.get());
  ASSERT_TRUE(engine.ok()) << engine.status();

  // What a model keeps for a step's page tables grows to the longest ones. And
  // equal seeds will give equal tokens, which shows which ones stop nothing.
  Loop before(engine->get());
  before.Submit(/*stop_tokens=*/{});
  while (before.Step()) {
  }
  std::vector<TokenId> stop_tokens = before.NeverSampled();
  stop_tokens.resize(8);

  Loop loop(engine->get());
  loop.Submit(stop_tokens);
  for (int32_t step = 0; step < kWarmSteps; ++step) loop.Step();
  ASSERT_EQ((*engine)->scheduler().num_running(), kNumRequests);

  const int64_t text_bytes = loop.text_bytes();
  StartWatching();
  for (int32_t step = 0; step < kWatchedSteps; ++step) loop.Step();
  StopWatching();
  ExpectNoAllocation(SeenCalls());
  EXPECT_EQ((*engine)->scheduler().num_running(), kNumRequests);
  EXPECT_GT(loop.text_bytes(), text_bytes + kWatchedSteps * kNumRequests);
}

constexpr WantedTypes kF32{ElementType::kF32, ElementType::kF32};
constexpr WantedTypes kBf16{ElementType::kBf16, ElementType::kBf16};
constexpr char kModel[] = "random:arch=llama,hidden=96,heads=6,vocab=3000";
constexpr char kWindow[] = "random:arch=mistral,window=40,vocab=3000";

INSTANTIATE_TEST_SUITE_P(, SteadyStepTest,
                         testing::Values(Case{"F32", kModel, kF32, 1},
                                         Case{"F32Two", kModel, kF32, 2},
                                         Case{"Bf16", kModel, kBf16, 1},
                                         Case{"Bf16Two", kModel, kBf16, 2},
                                         Case{"Window", kWindow, kBf16, 1},
                                         Case{"WindowTwo", kWindow, kBf16, 2}),
                         [](const auto& param) { return param.param.name; });

// Without this, a watch that sees nothing would let everything pass.
TEST(WatchedAllocationsTest, SeesEveryWayToAllocate) {
  // The compiler may leave out an allocation that nobody looks at.
  void* volatile memory = nullptr;
  StartWatching();
  SetMark(true);
  memory = std::malloc(1);
  std::free(memory);
  memory = std::calloc(2, 3);
  memory = std::realloc(memory, 50);
  SetMark(false);
  std::free(memory);
  memory = std::aligned_alloc(64, 128);
  std::free(memory);
  memory = ::operator new(7);
  ::operator delete(memory);
  memory = ::operator new[](8, std::align_val_t{64});
  ::operator delete[](memory, std::align_val_t{64});
  std::thread([&memory] { memory = std::malloc(9); }).join();
  std::free(memory);
  StopWatching();
  std::vector<size_t> bytes;
  int num_marked = 0;
  int num_freed = 0;
  const std::string here = LibraryOf(__builtin_return_address(0));
  for (const AllocationCall& call : SeenCalls()) {
    // (Starting a thread allocates, too, in other places.)
    if (LibraryOf(call.caller) != here) continue;
    num_marked += call.marked ? 1 : 0;
    if (call.kind == AllocationCall::Kind::kFree) {
      ++num_freed;
    } else {
      bytes.push_back(call.bytes);
    }
  }
  EXPECT_THAT(bytes, testing::IsSupersetOf({1, 6, 50, 128, 7, 8, 9}));
  EXPECT_EQ(num_marked, 4);
  EXPECT_GE(num_freed, 6);
}

}  // namespace
}  // namespace folio
