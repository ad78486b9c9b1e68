// Faults that other serving runtimes have had, each with the smallest input
// that would show it here, and what is right instead.

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/base/philox.h"
#include "runtime/engine/engine.h"
#include "runtime/model/model_registry.h"
#include "runtime/tokenizer/byte_tokenizer.h"
#include "tests/support/engine_driver.h"
#include "tests/support/sanitized.h"
#include "tests/support/scripted_engine.h"
#include "tests/support/scripted_model.h"

namespace folio {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

using Tokens = std::vector<TokenId>;
constexpr auto Expected = ScriptedEngine::Expected;
constexpr auto MakeRequest = ScriptedEngine::MakeRequest;
constexpr auto Options = ScriptedEngine::Options;

Tokens Prompt(size_t length, TokenId first) {
  Tokens prompt(length);
  for (size_t i = 0; i < length; ++i) {
    prompt[i] = static_cast<TokenId>((first + 7 * i) % 250);
  }
  return prompt;
}

// Of pages; salts, which come byte by byte, stay apart.
uint64_t ConstantHash(uint64_t before, std::span<const TokenId> tokens) {
  return tokens.size() == 1 ? HashTokens(before, tokens) : 42;
}

// Steps until nothing is live, auditing each step.
void Drain(ScriptedEngine& engine) {
  StepOutput output;
  while (engine->Step(output)) engine->scheduler().CheckInvariants();
  engine->scheduler().CheckInvariants();
}

// 1: clients that go away in the middle.
TEST(Fault01, ClientsThatLeaveGiveTheirPagesBack) {
  EngineOptions options = Options(/*num_pages=*/16);  // About 4 requests.
  options.queue.max_waiting_requests = 200;
  ScriptedEngine engine(options);
  std::vector<RequestId> ids;
  for (int i = 0; i < 120; ++i) {
    ids.push_back(engine.Submit(MakeRequest(Prompt(20, i), 40)));
  }
  StepOutput output;
  std::map<RequestId, int> terminal;
  bool has_work = true;
  for (int step = 0; has_work; ++step) {
    if (step % 5 == 4 && step / 5 * 3 < 120) engine->Abort(ids[step / 5 * 3]);
    has_work = engine->Step(output);
    engine->scheduler().CheckInvariants();
    for (const TokenEvent& event : output.events) {
      if (event.terminal) ++terminal[event.request_id];
    }
  }
  EXPECT_EQ(terminal.size(), 120u);
  for (const auto& [id, count] : terminal) EXPECT_EQ(count, 1);
  EXPECT_EQ(engine.cache().num_available(), 16);
  EXPECT_EQ(engine.RunOne(MakeRequest({1, 2}, 3)).tokens, Expected({1, 2}, 3));
}

// 2: aborted while queued, in the middle of a chunk, preempted, in the last
// step.
TEST(Fault02, AbortsOutsideRunningFreeOnce) {
  for (const std::string where : {"queued", "chunk", "preempted", "last"}) {
    SCOPED_TRACE(where);
    ScriptedEngine engine(Options(20));
    StepOutput output;
    const RequestId other = engine.Submit(MakeRequest(Prompt(20, 1), 30));
    const RequestId id =
        engine.Submit(MakeRequest(Prompt(where == "chunk" ? 90 : 10, 9), 5));
    int num_terminal = 0;
    const auto step = [&] {
      engine->Step(output);
      engine->scheduler().CheckInvariants();
      for (const TokenEvent& event : output.events) {
        num_terminal += event.terminal && event.request_id == id;
      }
    };
    const auto find = [&] { return engine->scheduler().FindRequest(id); };
    if (where == "chunk") {
      step();
      step();
      ASSERT_GT(find()->num_computed, 0);
      ASSERT_GT(find()->num_uncomputed(), 1);
    } else if (where == "preempted") {
      step();
      step();
      engine->scheduler().RequestPreemption(id);
      step();
      ASSERT_FALSE(find()->is_running);
    } else if (where == "last") {
      while (find() == nullptr || find()->num_generated() < 4) step();
    }
    engine->Abort(id);
    engine->Abort(id);
    step();
    EXPECT_EQ(num_terminal, 1);
    EXPECT_EQ(find(), nullptr);
    engine->Abort(other);
    Drain(engine);
    EXPECT_EQ(engine.cache().num_available(), 20);
  }
}

// 4: a prompt larger than the pool, then a small one.
TEST(Fault04, APromptLargerThanThePoolIsRefusedWithTheNumbers) {
  ScriptedEngine engine(Options(/*num_pages=*/5));
  Request request = MakeRequest(Tokens(100, 1), 1);
  const absl::Status status = engine->Prepare(request);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("100"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("80"));
  EXPECT_EQ(engine.RunOne(MakeRequest({1, 2, 3, 4, 5}, 3)).tokens,
            Expected({1, 2, 3, 4, 5}, 3));
}

// 5: two preempted requests, and a head that is larger than what is free.
TEST(Fault05, WhenNothingRunsSomethingIsAdmitted) {
  EngineOptions options = Options(/*num_pages=*/8);
  options.scheduler.watermark_pages = 8;  // More than there ever is.
  ScriptedEngine engine(options);
  StepOutput output;
  // Room for three samples to grow is more than what is left beside its prompt.
  Request head = MakeRequest(Prompt(110, 3), 10);
  head.n = 3;
  const std::vector<RequestId> ids = {
      engine.Submit(MakeRequest(Prompt(60, 1), 30)),
      engine.Submit(MakeRequest(Prompt(60, 2), 30)),
      engine.Submit(std::move(head))};
  bool has_work = true;
  for (int step = 0; has_work; ++step) {
    ASSERT_LT(step, 500) << "no progress";
    if (step == 6 || step == 12) {
      for (const RequestId id : ids) engine->scheduler().RequestPreemption(id);
    }
    has_work = engine->Step(output);
    engine->scheduler().CheckInvariants();
    // (One step without anybody follows a preemption of everybody.)
    if (has_work && !output.stepped) {
      EXPECT_TRUE(engine->Step(output) && output.stepped);
    }
  }
}

// 6: three equal requests in a pool for little more than one.
TEST(Fault06, PreemptionsAreBoundedAndTokensRise) {
  for (const char* policy : {"fcfs", "priority", "fair"}) {
    SCOPED_TRACE(policy);
    EngineOptions options = Options(/*num_pages=*/5);
    options.scheduler.policy = policy;
    options.prefix_cache = false;
    ScriptedEngine engine(options);
    std::vector<Request> requests;
    for (int i = 0; i < 3; ++i) {
      requests.push_back(MakeRequest({9, 9, 9}, 70));
      requests.back().tenant = std::string(1, static_cast<char>('a' + i));
    }
    int64_t steps = 0;
    const std::vector<Generated> results =
        RunToEnd(*engine, std::move(requests),
                 [&](int64_t step, const auto&) { steps = step; });
    for (const Generated& result : results) {
      EXPECT_EQ(result.tokens, Expected({9, 9, 9}, 70));
      EXPECT_LE(result.usage.preemptions, Sequence::kMaxPreemptions);
    }
    // One after the other takes 3 * 70 steps; sharing must not take longer by
    // more than the prefills (of up to 73 tokens, 32 a step) of the preempted.
    EXPECT_LE(steps, 3 * 70 + 3 * Sequence::kMaxPreemptions * 4);
  }
}

// 6, too: one that each of many urgent ones would push out.
TEST(Fault06, ARequestIsNotPreemptedAgainAndAgain) {
  EngineOptions options = Options(/*num_pages=*/8);
  options.scheduler.max_batch_tokens = 128;
  options.scheduler.policy = "priority";
  options.scheduler.priority_ageing = absl::Hours(1);
  options.prefix_cache = false;
  ScriptedEngine engine(options);
  Request patient = MakeRequest(Prompt(17, 1), 40);
  patient.priority = 1;
  const RequestId id = engine.Submit(std::move(patient));
  StepOutput output;
  std::optional<Usage> usage;
  int num_urgent = 0;
  for (int step = 0; !usage.has_value(); ++step) {
    ASSERT_LT(step, 2000) << "no progress";
    const Sequence* sequence = engine->scheduler().FindRequest(id);
    // The next urgent one comes when it has got its pages back.
    if (num_urgent < 10 && sequence != nullptr && sequence->is_running &&
        engine->scheduler().num_running() == 1 &&
        engine->scheduler().num_waiting() == 0) {
      // Fits beside its two pages, and needs one of them after one token.
      engine.Submit(MakeRequest(Prompt(95, 2), 30));
      ++num_urgent;
    }
    engine->Step(output);
    engine->scheduler().CheckInvariants();
    for (const TokenEvent& event : output.events) {
      if (event.terminal && event.request_id == id) usage = event.usage;
    }
  }
  EXPECT_EQ(usage->preemptions, Sequence::kMaxPreemptions);
  EXPECT_EQ(usage->generated_tokens, 40);
}

// 7: prompts fit, outputs do not.
TEST(Fault07, APoolThatRunsDryFailsNobody) {
  ScriptedEngine engine(Options(/*num_pages=*/4));
  const std::vector<Generated> results = engine.Run(
      {MakeRequest(Tokens(15, 1), 45), MakeRequest(Tokens(15, 2), 45)});
  EXPECT_EQ(results[0].tokens, Expected(Tokens(15, 1), 45));
  EXPECT_EQ(results[1].tokens, Expected(Tokens(15, 2), 45));
  EXPECT_EQ(results[0].usage.preemptions, 0);
  EXPECT_GE(results[1].usage.preemptions, 1);
}

// 8: all hashes are equal.
TEST(Fault08, ACollisionServesNobodyElsesTokens) {
  EngineOptions options = Options(40);
  options.prefix_hash = ConstantHash;
  ScriptedEngine engine(options);
  for (int round = 0; round < 2; ++round) {
    for (const TokenId first : {1, 2}) {
      const Tokens prompt = Prompt(50, first);
      EXPECT_EQ(engine.RunOne(MakeRequest(prompt, 10)).tokens,
                Expected(prompt, 10));
    }
  }
}

// 9: a prompt that fills the pool, twice.
TEST(Fault09, APromptNearThePoolsSizeWithItsPrefixCached) {
  for (const size_t length : {79, 78, 65, 64, 63}) {
    ScriptedEngine engine(Options(/*num_pages=*/5));
    const Tokens prompt = Prompt(length, 3);
    const int count = static_cast<int>(80 - length);
    EXPECT_EQ(engine.RunOne(MakeRequest(prompt, count)).tokens,
              Expected(prompt, count));
    const Generated again = engine.RunOne(MakeRequest(prompt, count));
    EXPECT_EQ(again.tokens, Expected(prompt, count));
    EXPECT_GT(again.usage.cached_tokens, 0);
  }
}

// 10: the whole prompt is cached.
TEST(Fault10, TheLastTokenOfACachedPromptIsComputed) {
  for (const size_t length : {31, 32, 33, 48}) {
    ScriptedEngine engine(Options(20));
    Request request = MakeRequest(Prompt(length, 5), 8);
    request.sampling.logprobs = 3;
    const Generated cold = engine.RunOne(request);
    const Generated warm = engine.RunOne(request);
    EXPECT_EQ(cold.tokens, Expected(request.prompt, 8));
    EXPECT_EQ(warm.tokens, cold.tokens);
    EXPECT_EQ(warm.logprobs, cold.logprobs);
    EXPECT_EQ(cold.usage.cached_tokens, 0);
    EXPECT_EQ(warm.usage.cached_tokens,
              static_cast<int32_t>((length - 1) / 16 * 16));
  }
}

// 11: forks beside each other in a partial page.
TEST(Fault11, ForksDoNotWriteIntoEachOthersPage) {
  for (const size_t length : {5, 16, 21, 40}) {
    EngineOptions options = Options(40);
    ScriptedEngine engine(options);
    Request request = MakeRequest(Prompt(length, 5), 30);
    request.n = 4;
    request.sampling.temperature = 1;
    request.sampling.seed = 7;
    const Generated result = engine.RunOne(request);
    ASSERT_EQ(result.others.size(), 3u);
    EXPECT_EQ(result.tokens, Expected(request.prompt, 30));
    for (const Generated& other : result.others) {
      EXPECT_EQ(other.tokens, Expected(request.prompt, 30));
      EXPECT_EQ(other.finish_reason, FinishReason::kLength);
    }
    EXPECT_EQ(result.usage.generated_tokens, 120);
    EXPECT_EQ(engine.cache().num_in_use(), 0);
    EXPECT_EQ(engine.cache().counters().pages_copied, length % 16 == 0 ? 0 : 3);
  }
}

// 13: an idle check after shared prefixes and eviction.
TEST(Fault13, PagesAddUpAfterEveryStep) {
  ScriptedEngine engine(Options(/*num_pages=*/12));
  for (int i = 0; i < 20; ++i) {
    Tokens prompt = Prompt(48, i % 3);
    prompt.push_back(i);
    engine.Submit(MakeRequest(prompt, 20));
  }
  StepOutput output;
  while (engine->Step(output)) {
    const KvCache& cache = engine.cache();
    EXPECT_EQ(cache.num_free() + cache.num_in_use() + cache.num_cached(), 12);
    engine->scheduler().CheckInvariants();
    if (output.stepped) output.report.memory.CheckIdentities();
  }
  EXPECT_EQ(engine.cache().num_in_use(), 0);
  EXPECT_GT(engine.cache().counters().pages_evicted, 0);
  EXPECT_GT(engine.cache().counters().prefix_hit_tokens, 0);
}

// 14: random submissions, cancels and retries on a tiny pool.
TEST(Fault14, CancelAndQuickRetryCorruptNothing) {
  ScriptedEngine engine(Options(/*num_pages=*/8));
  uint64_t draws = 0;
  const auto draw = [&](int most) {
    return static_cast<int>(UniformDouble(14, 0, draws++) * most);
  };
  std::map<RequestId, Tokens> prompts;
  std::map<RequestId, Tokens> received;
  StepOutput output;
  const auto submit = [&](const Tokens& prompt) {
    const RequestId id = engine.Submit(MakeRequest(prompt, 20));
    prompts[id] = prompt;
    received[id] = {};
  };
  for (int step = 0; step < 3000; ++step) {
    if (received.size() < 6) submit(Prompt(1 + draw(60), draw(3)));
    if (draw(10) == 0) {
      auto victim = received.begin();
      std::advance(victim, draw(static_cast<int>(received.size())));
      engine->Abort(victim->first);
      submit(prompts[victim->first]);
    }
    engine->Step(output);
    engine->scheduler().CheckInvariants();
    for (const TokenEvent& event : output.events) {
      Tokens& tokens = received[event.request_id];
      tokens.insert(tokens.end(), event.sampled.tokens.begin(),
                    event.sampled.tokens.end());
      if (!event.terminal) continue;
      const Tokens all = Expected(prompts[event.request_id], 20);
      ASSERT_LE(tokens.size(), all.size());
      EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), all.begin()));
      if (event.finish_reason == FinishReason::kLength) {
        EXPECT_EQ(tokens.size(), all.size());
      }
      received.erase(event.request_id);
    }
  }
  EXPECT_GT(engine.cache().counters().pages_evicted, 0);
}

// 15: several prompts together and alone.
TEST(Fault15, ABatchOfFiveSaysWhatEachSaysAlone) {
  EngineOptions options = Options(60);
  options.scheduler.max_batch_sequences = 5;
  ScriptedEngine engine(options);
  std::vector<Request> requests;
  for (int i = 0; i < 5; ++i) {
    requests.push_back(MakeRequest(Prompt(10 + 9 * i, i), 25));
  }
  const std::vector<Generated> together = engine.Run(requests);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(together[i].tokens, engine.RunOne(requests[i]).tokens);
    EXPECT_EQ(together[i].tokens, Expected(requests[i].prompt, 25));
  }
}

// A real model, small, from random weights.
std::unique_ptr<Engine> RealEngine(EngineOptions options, WantedTypes types,
                                   const Tokenizer& tokenizer,
                                   const Clock& clock, Executor& executor) {
  auto model = OpenModel(
      "random:arch=llama,vocab=256,hidden=64,heads=2,kv_heads=2,layers=2",
      options.model_limits(), &executor, types);
  EXPECT_TRUE(model.ok()) << model.status();
  auto engine =
      Engine::Create(options, *std::move(model), &tokenizer, &clock, &executor);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return *std::move(engine);
}

// 16: one prompt alone; with 7 others; in chunks of 1, a page, all; cold; warm.
TEST(Fault16, OutputIsThatOfTheSoloRunToTheBit) {
  const ManualClock clock(absl::UnixEpoch());
  SerialExecutor executor;
  const ByteTokenizer tokenizer(256);
  Request request = MakeRequest(Prompt(50, 9), 12);
  request.sampling.logprobs = 5;
  std::optional<Generated> alone;
  for (const int32_t chunk : {1, 16, 400}) {
    for (const int others : {0, 7}) {
      EngineOptions options;
      options.scheduler.max_batch_sequences = std::min(8, chunk);
      options.scheduler.max_batch_tokens = chunk;
      const auto engine = RealEngine(options, {}, tokenizer, clock, executor);
      for (const bool warm : {false, true}) {
        std::vector<Request> requests = {request};
        for (int i = 0; i < others; ++i) {
          requests.push_back(MakeRequest(Prompt(20 + i, i), 15));
        }
        const Generated result = RunToEnd(*engine, std::move(requests))[0];
        EXPECT_EQ(result.usage.cached_tokens, warm ? 48 : 0);
        if (!alone.has_value()) alone = result;
        EXPECT_EQ(result.tokens, alone->tokens);
        ASSERT_EQ(result.logprobs.size(), 12u);
        EXPECT_EQ(0, std::memcmp(result.logprobs.data(), alone->logprobs.data(),
                                 12 * sizeof(float)));
      }
    }
  }
}

// 18: four that decode, and one prompt of twenty budgets; then a short one.
TEST(Fault18, ALongPromptFreezesNobody) {
  EngineOptions options = Options(80);
  options.scheduler.max_batch_tokens = 9;
  options.scheduler.max_batch_sequences = 6;
  ScriptedEngine engine(options);
  std::set<RequestId> decoders;
  for (int i = 0; i < 4; ++i) {
    decoders.insert(engine.Submit(MakeRequest({1, i}, 120)));
  }
  StepOutput output;
  for (int step = 0; step < 8; ++step) engine->Step(output);
  const RequestId long_one = engine.Submit(MakeRequest(Prompt(180, 1), 5));
  engine->Step(output);
  const RequestId short_one = engine.Submit(MakeRequest(Prompt(5, 2), 5));
  int steps_to_first_token = 0;
  bool has_token = false;
  while (!has_token) {
    ++steps_to_first_token;
    ASSERT_LT(steps_to_first_token, 100);
    engine->Step(output);
    std::set<RequestId> with_tokens;
    for (const TokenEvent& event : output.events) {
      if (!event.sampled.tokens.empty()) with_tokens.insert(event.request_id);
    }
    for (const RequestId id : decoders) EXPECT_TRUE(with_tokens.contains(id));
    EXPECT_LE(output.report.prefill_tokens + output.report.decode_tokens, 9);
    has_token = with_tokens.contains(short_one);
  }
  // Not behind the 36 steps that the long one takes.
  EXPECT_LE(steps_to_first_token, 4);
  EXPECT_NE(engine->scheduler().FindRequest(long_one), nullptr);
  Drain(engine);
}

// 25: prompts at the context length.
TEST(Fault25, PromptsAtTheContextLength) {
  ScriptedEngine engine(Options(20));
  const Tokens prompt = Prompt(ScriptedEngine::kContext - 1, 3);
  const Generated last = engine.RunOne(MakeRequest(prompt, 10));
  EXPECT_EQ(last.tokens, Expected(prompt, 1));
  EXPECT_EQ(last.finish_reason, FinishReason::kLength);
  for (const int more : {1, 2}) {
    Request request = MakeRequest(Prompt(prompt.size() + more, 3), 10);
    const absl::Status status = engine->Prepare(request);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("200"));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(std::to_string(request.prompt.size())));
  }
}

// 27: a preemption in the middle of a stream, in each place, also of forks.
TEST(Fault27, AStreamIsNotSplicedFromTwoRuns) {
  for (const bool prefix_cache : {false, true}) {
    EngineOptions options = Options(40);
    options.prefix_cache = prefix_cache;
    ScriptedEngine engine(options);
    Request request = MakeRequest(Prompt(37, 4), 20);
    request.sampling = {.temperature = 1.0f, .seed = 3, .logprobs = 2};
    request.n = 2;
    const Generated whole = engine.RunOne(request);
    for (int64_t at = 1; at <= 20; ++at) {
      const Generated cut =
          RunToEnd(*engine, {request}, [&](int64_t step, const auto& so_far) {
            if (step == at) {
              engine->scheduler().RequestPreemption(so_far[0].id);
            }
          })[0];
      EXPECT_EQ(cut.tokens, whole.tokens);
      EXPECT_EQ(cut.logprobs, whole.logprobs);
      EXPECT_EQ(cut.others[0].tokens, whole.others[0].tokens);
      EXPECT_EQ(cut.text, whole.text);
    }
  }
}

// 27, with penalties and a stop string that is found in the end.
TEST(Fault27, PenaltiesAndStopsGoOnWhereTheyWere) {
  ScriptedEngine engine(Options(40));
  Request request = MakeRequest(Prompt(37, 4), 40);
  request.sampling = {.temperature = 1.5f,
                      .repetition_penalty = 1.3f,
                      .presence_penalty = 0.5f,
                      .frequency_penalty = 0.5f,
                      .seed = 3,
                      .logprobs = 2,
                      .processed_logprobs = true};
  request.sampling.bad_words = {{65, 66}, {67}};
  const std::string text = engine.RunOne(request).text;
  ASSERT_GT(text.size(), 25u);
  request.stop_strings = {text.substr(20, 5), "not this"};
  request.min_tokens = 5;
  const Generated whole = engine.RunOne(request);
  ASSERT_EQ(whole.finish_reason, FinishReason::kStop);
  ASSERT_EQ(whole.text, text.substr(0, text.find(request.stop_strings[0])));
  for (int64_t at = 1; at <= whole.usage.generated_tokens; ++at) {
    const Generated cut =
        RunToEnd(*engine, {request}, [&](int64_t step, const auto& so_far) {
          if (step == at) {
            engine->scheduler().RequestPreemption(so_far[0].id);
          }
        })[0];
    EXPECT_EQ(cut.tokens, whole.tokens);
    EXPECT_EQ(cut.logprobs, whole.logprobs);
    EXPECT_EQ(cut.text, whole.text);
    EXPECT_EQ(cut.usage.generated_tokens, whole.usage.generated_tokens);
  }
}

// 38: a steady stream of high priority, and one of low.
TEST(Fault38, LowPriorityFinishesWithinItsBound) {
  EngineOptions options = Options(20);
  options.scheduler.max_batch_sequences = 1;
  options.scheduler.policy = "priority";
  options.scheduler.priority_ageing = absl::Seconds(1);
  ScriptedEngine engine(options);
  const auto urgent = [&] {
    Request request = MakeRequest({1, 2}, 4);
    request.priority = 0;
    return engine.Submit(std::move(request));
  };
  urgent();
  Request low = MakeRequest({3, 4}, 4);
  low.priority = 5;
  const RequestId id = engine.Submit(std::move(low));
  // Each second brings two urgent ones, and takes one: without ageing it would
  // wait for ever. Those that arrive in the first 5 seconds go before it.
  StepOutput output;
  int seconds = 0;
  bool done = false;
  for (; !done && seconds < 100; ++seconds) {
    urgent();
    urgent();
    for (int step = 0; step < 4; ++step) {
      engine->Step(output);
      for (const TokenEvent& event : output.events) {
        done |= event.terminal && event.request_id == id;
      }
    }
    engine.clock().Advance(absl::Seconds(1));
  }
  EXPECT_LE(seconds, 1 + 2 * 5 + 2);
  EXPECT_GT(seconds, 5);
}

// 38, too: whoever is preempted is the next of its class.
TEST(Fault38, ThePreemptedGoToTheFront) {
  for (const char* policy : {"fcfs", "priority", "fair"}) {
    SCOPED_TRACE(policy);
    EngineOptions options = Options(20);
    options.scheduler.max_batch_sequences = 1;
    options.scheduler.policy = policy;
    ScriptedEngine engine(options);
    const RequestId first = engine.Submit(MakeRequest({1, 2}, 10));
    for (int i = 0; i < 5; ++i) engine.Submit(MakeRequest({3, i}, 10));
    StepOutput output;
    engine->Step(output);
    engine->scheduler().RequestPreemption(first);
    engine->Step(output);
    EXPECT_FALSE(engine->scheduler().FindRequest(first)->is_running);
    engine->Step(output);
    EXPECT_TRUE(engine->scheduler().FindRequest(first)->is_running);
    Drain(engine);
  }
}

// 39: the pool's bytes are those of the type that K/V is kept in.
TEST(Fault39, ThePoolIsCountedInTheTypeThatIsKept) {
  const ManualClock clock(absl::UnixEpoch());
  SerialExecutor executor;
  const ByteTokenizer tokenizer(256);
  EngineOptions options;
  options.kv_pool_bytes = 1000001;
  for (const auto& [type, token_bytes] : std::map<ElementType, int64_t>{
           // 2 (K and V) x 2 layers x 2 heads x 32 elements, and for int8 a
           // scale of 4 bytes for each head.
           {ElementType::kF32, 256 * 4},
           {ElementType::kBf16, 256 * 2},
           {ElementType::kInt8, 256 + 8 * 4}}) {
    const auto engine = RealEngine(options, {ElementType::kF32, type},
                                   tokenizer, clock, executor);
    BatchReport report;
    engine->scheduler().Report(report);
    report.memory.CheckIdentities();
    EXPECT_EQ(report.memory.pool_bytes, 1000001);
    EXPECT_EQ(report.memory.page_bytes, 16 * token_bytes);
    EXPECT_EQ(report.memory.pages_total, 1000001 / (16 * token_bytes));
  }
}

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// 39, too: 10,000 requests, each of a tenant and with tokens of its own.
TEST(Fault39, ResidentMemoryIsFlat) {
  if (kSanitized) GTEST_SKIP() << "sanitizers keep what is freed";
  for (const char* policy : {"fcfs", "priority", "fair"}) {
    EngineOptions options = Options(64);
    options.scheduler.policy = policy;
    ScriptedEngine engine(options);
    int64_t warm = 0;
    for (int i = 0; i < 10000; ++i) {
      Request request = MakeRequest(Prompt(20 + i % 30, i), 5);
      request.prompt[0] = i % 250;
      request.prompt[1] = i / 250;
      request.tenant = std::to_string(i);
      request.n = 1 + i % 3;
      engine.RunOne(std::move(request));
      if (i == 2000) warm = ResidentBytes();
    }
    // 64 bytes for each of 8,000 requests; the smallest of them has 200.
    EXPECT_LT(ResidentBytes() - warm, 8000 * 64) << policy;
  }
}

}  // namespace
}  // namespace folio
