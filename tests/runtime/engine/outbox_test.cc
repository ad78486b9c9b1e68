#include "runtime/engine/outbox.h"

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

}  // namespace
}  // namespace folio
