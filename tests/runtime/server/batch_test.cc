// GenerateBatch and Abort: many requests, ended one by one.

#include <grpcpp/client_context.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "folio/v1/generation.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "tests/runtime/server/server_fixture.h"
#include "tests/support/scripted_model.h"

namespace folio {
namespace {

using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{60};

class BatchTest : public ServerFixture {
 protected:
  // What one request of a stream was told.
  struct End {
    Reply reply;  // Its status is in `status`.
    google::rpc::Status status;
    int num_ends = 0;
  };

  // A stream of many requests.
  class Stream {
   public:
    explicit Stream(const std::shared_ptr<grpc::Channel>& channel)
        : stub_(v1::Generation::NewStub(channel)),
          stream_(stub_->GenerateBatch(&context_)) {}

    void Send(v1::GenerateRequest request, const std::string& name) {
      request.set_request_id(name);
      v1::GenerateBatchRequest message;
      *message.mutable_generate() = std::move(request);
      EXPECT_TRUE(stream_->Write(message));
    }

    void SendRaw(const v1::GenerateBatchRequest& message) {
      EXPECT_TRUE(stream_->Write(message));
    }

    void Cancel(const std::string& name) {
      v1::GenerateBatchRequest message;
      message.set_cancel(name);
      EXPECT_TRUE(stream_->Write(message));
    }

    // Reads one message into `ends`; false at the stream's end.
    bool ReadOne() {
      v1::GenerateBatchResponse message;
      if (!stream_->Read(&message)) return false;
      End& end = ends[message.response().request_id()];
      EXPECT_EQ(end.num_ends, 0) << "a message after the last one";
      end.reply.Add(message.response());
      if (message.has_status()) {
        end.status = message.status();
        ++end.num_ends;
      }
      return true;
    }

    // Reads until `name` has ended.
    const End& ReadToTheEndOf(const std::string& name) {
      while (ends[name].num_ends == 0 && ReadOne()) {
      }
      EXPECT_EQ(ends[name].num_ends, 1) << name;
      return ends[name];
    }

    grpc::Status Finish() {
      EXPECT_TRUE(stream_->WritesDone());
      while (ReadOne()) {
      }
      return stream_->Finish();
    }

    // REQUIRES: there is nothing more to read.
    grpc::Status Status() { return stream_->Finish(); }

    grpc::Status Break() {
      context_.TryCancel();
      return stream_->Finish();
    }

    std::map<std::string, End> ends;

   private:
    grpc::ClientContext context_;
    const std::unique_ptr<v1::Generation::Stub> stub_;
    const std::unique_ptr<grpc::ClientReaderWriter<v1::GenerateBatchRequest,
                                                   v1::GenerateBatchResponse>>
        stream_;
  };
};

TEST_F(BatchTest, EachRequestIsWhatItWouldBeOnAStreamOfItsOwn) {
  StartServer(OptionsFor(/*num_pages=*/64));
  gate_.SetDelay(std::chrono::milliseconds(1));
  Stream stream(NewChannel());
  for (int i = 0; i < 40; ++i) {
    stream.Send(RequestOf({i, 2 * i}, 5 + i), absl::StrCat("r", i));
  }
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(stream.ends.size(), 40u);
  for (int i = 0; i < 40; ++i) {
    const End& end = stream.ends[absl::StrCat("r", i)];
    EXPECT_EQ(end.num_ends, 1);
    EXPECT_EQ(end.status.code(), 0) << end.status.message();
    EXPECT_EQ(end.reply.tokens, Expected({i, 2 * i}, 5 + i));
    EXPECT_TRUE(end.reply.responses.back().has_usage());
  }
  ExpectNoPagesInUse();
}

TEST_F(BatchTest, ARefusedRequestLeavesTheOthersAlone) {
  StartServer(OptionsFor(/*num_pages=*/64));
  Stream stream(NewChannel());
  v1::GenerateRequest bad = RequestOf({1}, 3);
  bad.mutable_sampling()->set_top_p(-1);
  stream.Send(bad, "bad");
  stream.SendRaw({});  // Its refusal has no name to come by.
  stream.Send(RequestOf({1, ScriptedModel::kPoison}, 3), "poisoned");
  stream.Send(RequestOf({7, 7}, 9), "good");
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(stream.ends["bad"].status.code(),
            static_cast<int>(absl::StatusCode::kInvalidArgument));
  google::rpc::BadRequest details;
  ASSERT_EQ(stream.ends["bad"].status.details_size(), 1);
  ASSERT_TRUE(stream.ends["bad"].status.details(0).UnpackTo(&details));
  EXPECT_EQ(details.field_violations(0).field(), "sampling.top_p");
  EXPECT_EQ(stream.ends[""].status.code(),
            static_cast<int>(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(stream.ends[""].status.message(), HasSubstr("action is not set"));
  EXPECT_EQ(stream.ends["poisoned"].status.code(),
            static_cast<int>(absl::StatusCode::kInternal));
  EXPECT_EQ(stream.ends["good"].status.code(), 0);
  EXPECT_EQ(stream.ends["good"].reply.tokens, Expected({7, 7}, 9));
}

TEST_F(BatchTest, EachRequestNeedsAName) {
  StartServer(OptionsFor(/*num_pages=*/64));
  Stream stream(NewChannel());
  stream.Send(RequestOf({1}, 3), "");
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_THAT(stream.ends[""].status.message(),
              HasSubstr("request_id is empty"));
}

TEST_F(BatchTest, CancelEndsOneRequestOfTheStream) {
  StartServer(OptionsFor(/*num_pages=*/512));
  gate_.SetDelay(std::chrono::milliseconds(2));  // 8 seconds for all.
  Stream stream(NewChannel());
  stream.Send(EndlessRequest(), "long");
  stream.Send(EndlessRequest(100), "short");
  ASSERT_TRUE(stream.ReadOne());
  stream.Cancel("nobody");
  stream.Cancel("long");
  EXPECT_EQ(stream.ReadToTheEndOf("long").status.code(),
            static_cast<int>(absl::StatusCode::kCancelled));
  EXPECT_EQ(stream.ReadToTheEndOf("short").status.code(), 0);
  EXPECT_EQ(stream.ends["short"].reply.tokens, ExpectedEndless(100));
  // Its name is free again.
  stream.Send(RequestOf({1}, 2), "long2");
  EXPECT_TRUE(stream.Finish().ok());
  ExpectNoPagesInUse();
  EXPECT_LT(Report().step(), kContext / 2);
}

TEST_F(BatchTest, ABrokenStreamEndsAllOfItsRequests) {
  StartServer(OptionsFor(/*num_pages=*/512));
  gate_.SetDelay(std::chrono::milliseconds(2));
  Stream stream(NewChannel());
  for (int i = 0; i < 8; ++i) {
    stream.Send(EndlessRequest(), absl::StrCat("r", i));
  }
  ASSERT_TRUE(stream.ReadOne());
  EXPECT_EQ(stream.Break().error_code(), grpc::StatusCode::CANCELLED);
  ExpectNoPagesInUse();
  EXPECT_LT(Report().step(), kContext / 2);
}

TEST_F(BatchTest, AClientThatDoesNotReadCostsItsOwnTextOnly) {
  StartServer(OptionsFor(/*num_pages=*/512));
  Stream stream(NewChannel());
  v1::GenerateRequest request = EndlessRequest(3000);
  request.mutable_sampling()->set_logprobs(20);
  for (int i = 0; i < 2; ++i) stream.Send(request, absl::StrCat("r", i));
  while (Report().step() == 0) std::this_thread::yield();
  EXPECT_EQ(Generate(RequestOf({3}, 20)).tokens, Expected({3}, 20));
  ExpectNoPagesInUse();
  EXPECT_TRUE(stream.Finish().ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(stream.ends[absl::StrCat("r", i)].reply.tokens,
              ExpectedEndless(3000));
  }
}

TEST_F(BatchTest, AFullStreamStillTakesCancels) {
  EngineOptions options = OptionsFor(/*num_pages=*/512);
  options.queue.max_waiting_requests = 2000;
  StartServer(options);
  gate_.SetDelay(std::chrono::milliseconds(1));
  Stream stream(NewChannel());
  constexpr int kMost = static_cast<int>(GenerateBatchReactor::kMaxOpen);
  for (int i = 0; i < kMost; ++i) {
    stream.Send(EndlessRequest(1000), absl::StrCat("r", i));
  }
  stream.Send(EndlessRequest(1), "too many");
  stream.Cancel("r1000");
  EXPECT_EQ(stream.ReadToTheEndOf("too many").status.code(),
            static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(stream.ReadToTheEndOf("r1000").status.code(),
            static_cast<int>(absl::StatusCode::kCancelled));
  stream.Break();
  ExpectNoPagesInUse();
}

TEST_F(BatchTest, OneStreamHasANameOnceWhateverTheTenants) {
  StartServer(OptionsFor(/*num_pages=*/512));
  gate_.SetDelay(std::chrono::milliseconds(2));
  Stream stream(NewChannel());
  v1::GenerateRequest request = EndlessRequest();
  request.set_tenant("alice");
  stream.Send(request, "a");
  request.set_tenant("bob");
  stream.Send(request, "a");
  EXPECT_EQ(stream.ReadToTheEndOf("a").status.code(),
            static_cast<int>(absl::StatusCode::kAlreadyExists));
  stream.Break();
  ExpectNoPagesInUse();
}

TEST_F(BatchTest, ShutdownEndsTheStreamWithUnavailable) {
  StartServer(OptionsFor(/*num_pages=*/512));
  gate_.SetDelay(std::chrono::milliseconds(2));
  Stream stream(NewChannel());
  stream.Send(EndlessRequest(), "live");
  ASSERT_TRUE(stream.ReadOne());
  server_->Shutdown(absl::ZeroDuration());
  while (stream.ReadOne()) {
  }
  EXPECT_EQ(stream.ends["live"].status.code(),
            static_cast<int>(absl::StatusCode::kUnavailable));
  const grpc::Status status = stream.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("shutting down"));
}

TEST_F(BatchTest, NamesAreUniqueAmongTheLiveRequestsOfATenant) {
  StartServer(OptionsFor(/*num_pages=*/512));
  gate_.SetDelay(std::chrono::milliseconds(2));
  Stream stream(NewChannel());
  stream.Send(EndlessRequest(), "mine");
  ASSERT_TRUE(stream.ReadOne());
  v1::GenerateRequest request = RequestOf({1}, 2);
  request.set_request_id("mine");
  const Reply refused = Generate(request);
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.status.message()), HasSubstr("'mine'"));
  request.set_tenant("another");
  EXPECT_TRUE(Generate(request).status.ok());
  request.clear_tenant();
  stream.Cancel("mine");
  stream.ReadToTheEndOf("mine");
  EXPECT_TRUE(Generate(request).status.ok());
}

TEST_F(BatchTest, AbortEndsARequestOfTheCallersTenant) {
  StartServer(OptionsFor(/*num_pages=*/512));
  gate_.SetDelay(std::chrono::milliseconds(2));
  const auto stub = v1::Generation::NewStub(NewChannel());
  v1::GenerateRequest request = EndlessRequest();
  request.set_request_id("mine");
  request.set_tenant("alice");
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, request);
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));

  const auto abort = [&](const std::string& tenant, const std::string& name) {
    grpc::ClientContext abort_context;
    v1::AbortRequest abort_request;
    abort_request.set_request_id(name);
    abort_request.set_tenant(tenant);
    v1::AbortResponse abort_response;
    return stub->Abort(&abort_context, abort_request, &abort_response);
  };
  EXPECT_EQ(abort("bob", "mine").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(abort("alice", "yours").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(abort("alice", "mine").ok());
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::ABORTED);
  EXPECT_TRUE(response.has_usage());
  EXPECT_EQ(abort("alice", "mine").error_code(), grpc::StatusCode::NOT_FOUND);
  ExpectNoPagesInUse();
}

}  // namespace
}  // namespace folio
