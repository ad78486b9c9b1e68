#include "runtime/engine/outbox.h"

#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace folio {
namespace {

TEST(OutboxTest, NothingIsLostOrReorderedBetweenThreads) {
  constexpr uint64_t kNumOutputs = 10000;
  Outbox outbox;
  std::thread producer([&] {
    StepOutput output;
    for (uint64_t i = 0; i < kNumOutputs; ++i) {
      EXPECT_TRUE(output.events.empty());
      output.events.Append().request_id = RequestId{i};
      output.events.back().sampled.tokens.assign(3, static_cast<TokenId>(i));
      outbox.Push(output);
    }
    outbox.Close();
  });
  StepOutput output;
  uint64_t next = 0;
  while (outbox.Pop(output)) {
    ASSERT_EQ(output.events.size(), 1u);
    EXPECT_EQ(output.events[0].request_id, RequestId{next});
    EXPECT_EQ(output.events[0].sampled.tokens,
              std::vector<TokenId>(3, static_cast<TokenId>(next)));
    ++next;
  }
  producer.join();
  EXPECT_EQ(next, kNumOutputs);
}

TEST(OutboxTest, ClosedGivesTheRestFirst) {
  Outbox outbox;
  StepOutput output;
  output.stepped = true;
  outbox.Push(output);
  EXPECT_FALSE(output.stepped);
  outbox.Close();
  EXPECT_TRUE(outbox.Pop(output));
  EXPECT_TRUE(output.stepped);
  EXPECT_FALSE(outbox.Pop(output));
}

// Each output holds on to `counted` for as long as the outbox has it.
TEST(OutboxTest, LongQueueIsGivenBack) {
  constexpr int kNumOutputs = 1000;
  const auto counted = std::make_shared<int>();
  Outbox outbox;
  StepOutput output;
  for (int i = 0; i < kNumOutputs; ++i) {
    output.flush_callbacks.push_back([counted](int32_t) {});
    outbox.Push(output);
  }
  EXPECT_EQ(counted.use_count(), 1 + kNumOutputs);
  for (int i = 0; i < kNumOutputs; ++i) ASSERT_TRUE(outbox.Pop(output));
  EXPECT_LT(counted.use_count(), 20);
}

}  // namespace
}  // namespace folio
