#include "runtime/server/delivery.h"

#include <atomic>
#include <cstdint>
#include <latch>
#include <random>
#include <span>
#include <vector>

#include "gtest/gtest.h"

namespace folio {
namespace {

// Notes the samples of the events, which are numbers here.
class NotingSink final : public EventSink {
 public:
  void Deliver(RequestId request, std::span<const TokenEvent> events) override {
    EXPECT_FALSE(is_in_use_.exchange(true)) << "two threads at once";
    for (const TokenEvent& event : events) {
      EXPECT_EQ(event.request_id, request);
      numbers.push_back(event.sample_index);
    }
    is_in_use_ = false;
  }

  std::vector<int32_t> numbers;

 private:
  std::atomic<bool> is_in_use_ = false;
};

TEST(Delivery, KeepsTheOrderOfEachRequest) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    constexpr int kNumRequests = 40;
    std::vector<NotingSink> sinks(kNumRequests);
    std::vector<std::vector<int32_t>> expected(kNumRequests);
    Delivery delivery;
    for (int32_t step = 0; step < 50; ++step) {
      std::vector<TokenEvent> events(random() % 200);
      for (size_t i = 0; i < events.size(); ++i) {
        events[i].request_id = RequestId{random() % kNumRequests};
        events[i].sample_index = static_cast<int32_t>(step * 200 + i);
      }
      for (const TokenEvent& event : events) {
        const auto request = static_cast<size_t>(event.request_id);
        expected[request].push_back(event.sample_index);
        delivery.Add(&sinks[request], event.request_id, {&event, 1});
      }
      delivery.Run();
      // All of them are there as soon as it returns.
      for (int i = 0; i < kNumRequests; ++i) {
        ASSERT_EQ(sinks[i].numbers, expected[i]) << i;
      }
    }
  }
}

// Goes with its terminal event.
class PassingSink final : public EventSink {
 public:
  explicit PassingSink(std::atomic<int>* num_gone) : num_gone_(num_gone) {}

  void Deliver(RequestId /*request*/,
               std::span<const TokenEvent> events) override {
    if (!events.back().terminal) return;
    ++*num_gone_;
    delete this;
  }

 private:
  std::atomic<int>* const num_gone_;
};

TEST(Delivery, LeavesSinksAloneAfterTheirEnds) {
  constexpr int kNumRequests = 500;
  std::atomic<int> num_gone = 0;
  TokenEvent token;
  TokenEvent end;
  end.terminal = true;
  Delivery delivery;
  for (uint64_t id = 0; id < kNumRequests; ++id) {
    auto* const sink = new PassingSink(&num_gone);
    delivery.Add(sink, RequestId{id}, {&token, 1});
    delivery.Add(sink, RequestId{id}, {&end, 1});
  }
  delivery.Run();
  EXPECT_EQ(num_gone, kNumRequests);
}

// Waits in its first event until another sink is in its own.
class MeetingSink final : public EventSink {
 public:
  explicit MeetingSink(std::latch* both) : both_(both) {}

  void Deliver(RequestId /*request*/,
               std::span<const TokenEvent> /*events*/) override {
    both_->arrive_and_wait();
  }

 private:
  std::latch* const both_;
};

TEST(Delivery, UsesTwoThreads) {
  // With one thread alone, this would not end.
  std::latch both(2);
  MeetingSink first(&both);
  MeetingSink second(&both);
  NotingSink others;
  TokenEvent event;
  Delivery delivery;
  delivery.Add(&first, RequestId{0}, {&event, 1});
  delivery.Add(&second, RequestId{1}, {&event, 1});
  // More of them, which a helper is worth while for.
  for (int i = 0; i < 10; ++i) {
    delivery.Add(&others, RequestId{}, {&event, 1});
  }
  delivery.Run();
  EXPECT_EQ(others.numbers.size(), 10);
}

TEST(Delivery, DoesNothingForNothing) {
  Delivery delivery;
  delivery.Run();
  delivery.Run();
}

}  // namespace
}  // namespace folio
