#include "runtime/engine/inbox.h"

#include <memory>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace folio {
namespace {

std::shared_ptr<const Request> MakeRequest(uint64_t id,
                                           size_t prompt_tokens = 1,
                                           std::string tenant = "") {
  auto request = std::make_shared<Request>();
  request->id = RequestId{id};
  request->prompt.resize(prompt_tokens);
  request->tenant = tenant;
  return request;
}

TEST(InboxTest, TakeEmptiesItAndKeepsOrder) {
  Inbox inbox(QueueLimits(), 10);
  ASSERT_TRUE(inbox.Submit(MakeRequest(1)).ok());
  ASSERT_TRUE(inbox.Submit(MakeRequest(2)).ok());
  inbox.Abort({RequestId{1}, FinishReason::kCancelled});
  InboxContents contents;
  inbox.Take(contents);
  ASSERT_EQ(contents.requests.size(), 2u);
  EXPECT_EQ(contents.requests[0]->id, RequestId{1});
  EXPECT_EQ(contents.requests[1]->id, RequestId{2});
  ASSERT_EQ(contents.aborts.size(), 1u);
  EXPECT_FALSE(contents.closed);
  inbox.Take(contents);
  EXPECT_TRUE(contents.requests.empty());
  EXPECT_TRUE(contents.aborts.empty());
}

TEST(InboxTest, BoundedByLiveRequests) {
  Inbox inbox({.max_waiting_requests = 1}, 1);
  ASSERT_TRUE(inbox.Submit(MakeRequest(1)).ok());
  ASSERT_TRUE(inbox.Submit(MakeRequest(2)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(inbox.Submit(MakeRequest(3))));
  InboxContents contents;
  inbox.Take(contents);  // Taken, but live still.
  EXPECT_TRUE(absl::IsResourceExhausted(inbox.Submit(MakeRequest(3))));
  inbox.NoteEnded(RequestId{1});
  EXPECT_TRUE(inbox.Submit(MakeRequest(3)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(inbox.Submit(MakeRequest(4))));
}

TEST(InboxTest, BoundedByTokensThatWait) {
  Inbox inbox({.max_waiting_tokens = 10}, 1);
  // Nobody waits, so that it is taken whatever its length.
  ASSERT_TRUE(inbox.Submit(MakeRequest(1, 12)).ok());
  const absl::Status status = inbox.Submit(MakeRequest(2, 1));
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_NE(status.message().find("prompts of 12 tokens are waiting"),
            std::string::npos)
      << status;
  inbox.NoteLeftQueue(12);
  EXPECT_TRUE(inbox.Submit(MakeRequest(2, 4)).ok());
  EXPECT_TRUE(inbox.Submit(MakeRequest(3, 6)).ok());
  EXPECT_FALSE(inbox.Submit(MakeRequest(4, 1)).ok());
}

TEST(InboxTest, BoundedByRequestsOfATenant) {
  Inbox inbox({.max_tenant_requests = 1}, 1);
  ASSERT_TRUE(inbox.Submit(MakeRequest(1, 1, "a")).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(inbox.Submit(MakeRequest(2, 1, "a"))));
  EXPECT_TRUE(inbox.Submit(MakeRequest(3, 1, "b")).ok());
  inbox.NoteEnded(RequestId{1});
  EXPECT_TRUE(inbox.Submit(MakeRequest(4, 1, "a")).ok());
}

TEST(InboxTest, ClosedTakesNothingButGivesWhatItHas) {
  Inbox inbox(QueueLimits(), 10);
  ASSERT_TRUE(inbox.Submit(MakeRequest(1)).ok());
  inbox.Close();
  EXPECT_TRUE(absl::IsUnavailable(inbox.Submit(MakeRequest(2))));
  EXPECT_FALSE(inbox.AskForReport([](const BatchReport&) {}));
  InboxContents contents;
  inbox.Take(contents);
  EXPECT_EQ(contents.requests.size(), 1u);
  EXPECT_TRUE(contents.closed);
  inbox.Wait();  // Returns at once, however often.
  inbox.Take(contents);
  EXPECT_TRUE(contents.closed);
}

TEST(InboxTest, WaitWakesForEachKind) {
  Inbox inbox(QueueLimits(), 10);
  InboxContents contents;
  const auto wakes = [&](auto act) {
    std::thread waiter([&] { inbox.Wait(); });
    act();
    waiter.join();  // Hangs if the wake-up is lost.
    inbox.Take(contents);
  };
  wakes([&] { EXPECT_TRUE(inbox.Submit(MakeRequest(1)).ok()); });
  EXPECT_EQ(contents.requests.size(), 1u);
  wakes([&] { inbox.Abort({RequestId{1}, FinishReason::kCancelled}); });
  EXPECT_EQ(contents.aborts.size(), 1u);
  wakes([&] { EXPECT_TRUE(inbox.AskForReport([](const BatchReport&) {})); });
  EXPECT_EQ(contents.reports.size(), 1u);
  wakes([&] { inbox.Close(); });
  EXPECT_TRUE(contents.closed);
}

}  // namespace
}  // namespace folio
