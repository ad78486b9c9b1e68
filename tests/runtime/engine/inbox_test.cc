#include "runtime/engine/inbox.h"

#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace folio {
namespace {

std::shared_ptr<const Request> MakeRequest(uint64_t id) {
  auto request = std::make_shared<Request>();
  request->id = RequestId{id};
  return request;
}

TEST(InboxTest, TakeEmptiesItAndKeepsOrder) {
  Inbox inbox(10);
  ASSERT_TRUE(inbox.Submit(MakeRequest(1)).ok());
  ASSERT_TRUE(inbox.Submit(MakeRequest(2)).ok());
  inbox.Abort(RequestId{1});
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
  Inbox inbox(2);
  ASSERT_TRUE(inbox.Submit(MakeRequest(1)).ok());
  ASSERT_TRUE(inbox.Submit(MakeRequest(2)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(inbox.Submit(MakeRequest(3))));
  InboxContents contents;
  inbox.Take(contents);  // Taken, but live still.
  EXPECT_TRUE(absl::IsResourceExhausted(inbox.Submit(MakeRequest(3))));
  inbox.NoteEnded(1);
  EXPECT_TRUE(inbox.Submit(MakeRequest(3)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(inbox.Submit(MakeRequest(4))));
}

TEST(InboxTest, ClosedTakesNothingButGivesWhatItHas) {
  Inbox inbox(10);
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
  Inbox inbox(10);
  InboxContents contents;
  const auto wakes = [&](auto act) {
    std::thread waiter([&] { inbox.Wait(); });
    act();
    waiter.join();  // Hangs if the wake-up is lost.
    inbox.Take(contents);
  };
  wakes([&] { EXPECT_TRUE(inbox.Submit(MakeRequest(1)).ok()); });
  EXPECT_EQ(contents.requests.size(), 1u);
  wakes([&] { inbox.Abort(RequestId{1}); });
  EXPECT_EQ(contents.aborts.size(), 1u);
  wakes([&] { EXPECT_TRUE(inbox.AskForReport([](const BatchReport&) {})); });
  EXPECT_EQ(contents.reports.size(), 1u);
  wakes([&] { inbox.Close(); });
  EXPECT_TRUE(contents.closed);
}

}  // namespace
}  // namespace folio
