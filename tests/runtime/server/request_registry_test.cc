#include "runtime/server/request_registry.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace folio {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class NoSink final : public EventSink {
 public:
  void Deliver(RequestId /*request*/,
               std::span<const TokenEvent> /*events*/) override {}
};

TEST(RequestRegistryTest, NamesAreUniqueForATenant) {
  RequestRegistry registry;
  EXPECT_EQ(*registry.Add(RequestId{1}, {.name = "a", .tenant = "x"}), "a");
  const auto again = registry.Add(RequestId{2}, {.name = "a", .tenant = "x"});
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(again.status().message()), HasSubstr("'a'"));
  EXPECT_TRUE(registry.Add(RequestId{3}, {.name = "a", .tenant = "y"}).ok());
  EXPECT_EQ(registry.NoteAbort("x", "a"), RequestId{1});
  EXPECT_EQ(registry.NoteAbort("y", "a"), RequestId{3});
  EXPECT_EQ(registry.NoteAbort("z", "a"), std::nullopt);
  EXPECT_TRUE(registry.IsAborted(RequestId{1}));
  EXPECT_FALSE(registry.IsAborted(RequestId{2}));
  EXPECT_EQ(registry.Remove(RequestId{1}).facts.tenant, "x");
  EXPECT_EQ(registry.NoteAbort("x", "a"), std::nullopt);
  EXPECT_TRUE(registry.Add(RequestId{4}, {.name = "a", .tenant = "x"}).ok());
  EXPECT_EQ(registry.size(), 2u);
}

TEST(RequestRegistryTest, MadeNamesEvadeThoseOfClients) {
  RequestRegistry registry;
  EXPECT_TRUE(registry.Add(RequestId{1}, {.name = "request-7"}).ok());
  const auto made = registry.Add(RequestId{7}, {});
  ASSERT_TRUE(made.ok());
  EXPECT_NE(*made, "request-7");
  EXPECT_EQ(registry.NoteAbort("", *made), RequestId{7});
  const std::vector<SequenceMemory> sequences = {{.request = RequestId{7}},
                                                 {.request = RequestId{1}},
                                                 {.request = RequestId{99}}};
  EXPECT_THAT(registry.NamesOf(sequences),
              ElementsAre(*made, "request-7", "99"));
}

TEST(RequestRegistryTest, AfterStopAcceptingThereAreNoNewOnes) {
  RequestRegistry registry;
  NoSink sink;
  ASSERT_TRUE(registry.Add(RequestId{1}, {}).ok());
  registry.SetSink(RequestId{1}, &sink);
  registry.StopAccepting();
  EXPECT_EQ(registry.Add(RequestId{2}, {}).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(registry.Find(RequestId{1}), &sink);
  registry.WaitUntilEmpty(absl::Milliseconds(1));
  EXPECT_FALSE(registry.empty());
  std::thread remover([&] { registry.Remove(RequestId{1}); });
  registry.WaitUntilEmpty(absl::Minutes(1));
  EXPECT_TRUE(registry.empty());
  remover.join();
}

// For ThreadSanitizer: callers come and go while others look.
TEST(RequestRegistryTest, AnyThreadMayCall) {
  constexpr int kThreads = 4;
  constexpr int kRequests = 300;
  RequestRegistry registry;
  NoSink sink;
  std::atomic<bool> done = false;
  std::thread looker([&] {
    const std::vector<SequenceMemory> sequences = {{.request = RequestId{1}}};
    while (!done) {
      registry.NamesOf(sequences);
      registry.NoteAbort("", "request-1");
      registry.WaitUntilEmpty(absl::ZeroDuration());
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRequests; ++i) {
        const RequestId id{static_cast<uint64_t>(1 + t * kRequests + i)};
        ASSERT_TRUE(
            registry.Add(id, {.name = absl::StrCat(t, "/", i % 7)}).ok());
        registry.SetSink(id, &sink);
        EXPECT_EQ(registry.Find(id), &sink);
        EXPECT_EQ(registry.Remove(id).sink, &sink);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  looker.join();
  EXPECT_TRUE(registry.empty());
}

}  // namespace
}  // namespace folio
