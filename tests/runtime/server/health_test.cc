// grpc.health.v1.Health, as a load balancer uses it.

#include <grpcpp/client_context.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/runtime/server/server_fixture.h"

namespace folio {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

class HealthTest : public ServerFixture {
 protected:
  void Start(absl::Duration stall_timeout = absl::Seconds(30)) {
    StartServer(OptionsFor(/*num_pages=*/512),
                {.stall_timeout = stall_timeout});
    stub_ = Health::NewStub(NewChannel());
  }

  static HealthCheckRequest Ask(const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    return request;
  }

  // The next status of a Watch.
  static HealthCheckResponse::ServingStatus Next(
      grpc::ClientReader<HealthCheckResponse>& reader) {
    HealthCheckResponse response;
    EXPECT_TRUE(reader.Read(&response));
    return response.status();
  }

  std::unique_ptr<Health::Stub> stub_;
};

TEST_F(HealthTest, CheckKnowsEachService) {
  Start();
  for (const char* service :
       {"", "folio.v1.Generation", "folio.v1.Introspection"}) {
    grpc::ClientContext context;
    HealthCheckResponse response;
    EXPECT_TRUE(stub_->Check(&context, Ask(service), &response).ok());
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING) << service;
  }
  EXPECT_TRUE(client_->CheckHealth().ok());
}

TEST_F(HealthTest, OtherServicesAreNotFoundOrUnknown) {
  Start();
  grpc::ClientContext check_context;
  HealthCheckResponse response;
  const grpc::Status status =
      stub_->Check(&check_context, Ask("folio.v2.Generation"), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(),
              testing::AllOf(testing::HasSubstr("'folio.v2.Generation'"),
                             testing::HasSubstr("folio.v1.Generation")));
  grpc::ClientContext long_context;
  const grpc::Status long_status =
      stub_->Check(&long_context, Ask(std::string(100000, 'x')), &response);
  EXPECT_EQ(long_status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(long_status.error_message(), testing::HasSubstr("xx...'"));
  grpc::ClientContext watch_context;
  const auto reader = stub_->Watch(&watch_context, Ask("folio.v2.Generation"));
  EXPECT_EQ(Next(*reader), HealthCheckResponse::SERVICE_UNKNOWN);
  watch_context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(HealthTest, WatchSeesTheShutdown) {
  Start();
  grpc::ClientContext context;
  const auto reader = stub_->Watch(&context, Ask(""));
  EXPECT_EQ(Next(*reader), HealthCheckResponse::SERVING);
  std::thread shutdown([this] { server_->Shutdown(absl::ZeroDuration()); });
  EXPECT_EQ(Next(*reader), HealthCheckResponse::NOT_SERVING);
  HealthCheckResponse response;
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  shutdown.join();
}

// (The number is that of a list of faults; see wire_fault_test.cc.)
TEST_F(HealthTest, Fault03_FollowsProgress) {
  Start(/*stall_timeout=*/absl::Milliseconds(200));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto reader = stub_->Watch(&context, Ask("folio.v1.Generation"));
  EXPECT_EQ(Next(*reader), HealthCheckResponse::SERVING);
  // Idle is healthy, however long.
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_TRUE(client_->CheckHealth().ok());

  gate_.Close();
  Reply reply;
  std::thread generate([&] { reply = Generate(RequestOf({1}, 5)); });
  EXPECT_EQ(Next(*reader), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(client_->CheckHealth().code(), absl::StatusCode::kUnavailable);
  gate_.Open();
  EXPECT_EQ(Next(*reader), HealthCheckResponse::SERVING);
  generate.join();
  EXPECT_TRUE(reply.status.ok()) << reply.status;
  context.TryCancel();
}

}  // namespace
}  // namespace folio
