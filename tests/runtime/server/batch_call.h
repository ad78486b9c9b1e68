// A client of GenerateBatch.

#ifndef TESTS_RUNTIME_SERVER_BATCH_CALL_H_
#define TESTS_RUNTIME_SERVER_BATCH_CALL_H_

#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "folio/v1/generation.grpc.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/runtime/server/server_fixture.h"

namespace folio {

// What came of one request.
struct BatchReply {
  Reply reply;  // Without its status.
  google::rpc::Status status;
};

class BatchCall {
 public:
  explicit BatchCall(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::Generation::NewStub(channel)),
        stream_(stub_->GenerateBatch(&context_)) {}

  void Submit(const v1::GenerateRequest& request) {
    v1::GenerateBatchRequest message;
    *message.mutable_generate() = request;
    EXPECT_TRUE(stream_->Write(message));
  }

  void Cancel(const std::string& request_id) {
    v1::GenerateBatchRequest message;
    message.set_cancel(request_id);
    EXPECT_TRUE(stream_->Write(message));
  }

  // Sends nothing more, and reads until the server ends the stream. Fails when
  // something comes behind the status of its request.
  std::map<std::string, BatchReply> ReadToEnd() {
    EXPECT_TRUE(stream_->WritesDone());
    std::map<std::string, BatchReply> replies;
    std::map<std::string, bool> has_ended;
    v1::GenerateBatchResponse message;
    while (stream_->Read(&message)) {
      const std::string& name = message.response().request_id();
      EXPECT_FALSE(has_ended[name]) << name;
      has_ended[name] = message.has_status();
      replies[name].reply.Add(message.response());
      replies[name].status = message.status();
    }
    const grpc::Status status = stream_->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    for (const auto& [name, ended] : has_ended) EXPECT_TRUE(ended) << name;
    return replies;
  }

 private:
  grpc::ClientContext context_;
  const std::unique_ptr<v1::Generation::Stub> stub_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::GenerateBatchRequest,
                                                 v1::GenerateBatchResponse>>
      stream_;
};

}  // namespace folio

#endif  // TESTS_RUNTIME_SERVER_BATCH_CALL_H_
