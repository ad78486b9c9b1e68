// What operators ask of a server: what it is, how busy, whether it serves; and
// what they tell it.

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "folio/v1/admin.grpc.pb.h"
#include "folio/v1/generation.grpc.pb.h"
#include "folio/v1/introspection.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "runtime/server/duration_conversion.h"
#include "tests/runtime/server/server_fixture.h"
#include "tests/support/scripted_model.h"
#include "tests/support/temp_dir.h"

namespace folio {
namespace {

using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{60};

class OperationsTest : public ServerFixture {
 protected:
  // With Admin on a unix socket.
  void StartWithAdmin(const EngineOptions& options,
                      AdminService::Drainer on_drain = nullptr) {
    ServerOptions server;
    server.admin_listen = "unix:" + temp_dir_.path() + "/admin";
    server.on_drain = std::move(on_drain);
    StartServer(options, server);
    admin_ = v1::Admin::NewStub(grpc::CreateChannel(
        server_->admin_address(), grpc::InsecureChannelCredentials()));
    introspection_ = v1::Introspection::NewStub(NewChannel());
  }

  v1::Load Load() {
    grpc::ClientContext context;
    v1::Load load;
    EXPECT_TRUE(introspection_->GetLoad(&context, {}, &load).ok());
    return load;
  }

  int32_t Flush() {
    grpc::ClientContext context;
    v1::FlushPrefixCacheResponse response;
    EXPECT_TRUE(admin_->FlushPrefixCache(&context, {}, &response).ok());
    return response.pages_freed();
  }

  TempDir temp_dir_;
  std::unique_ptr<v1::Admin::Stub> admin_;
  std::unique_ptr<v1::Introspection::Stub> introspection_;
};

TEST_F(OperationsTest, InfosSayWhatIsServed) {
  EngineOptions options = OptionsFor(/*num_pages=*/64);
  options.caps.max_samples = 3;
  options.caps.max_logprobs = 1000;
  options.queue.max_tenant_requests = 9;
  StartWithAdmin(options);
  grpc::ClientContext model_context;
  v1::ModelInfo model;
  ASSERT_TRUE(introspection_->GetModelInfo(&model_context, {}, &model).ok());
  EXPECT_EQ(model.name(), "scripted");
  EXPECT_EQ(model.vocab_size(), ScriptedModel::kVocabSize);
  EXPECT_EQ(model.context_length(), kContext);
  EXPECT_THAT(model.eos_token_ids(), testing::ElementsAre(ScriptedModel::kEos));
  EXPECT_FALSE(model.has_bos_token_id());

  grpc::ClientContext server_context;
  v1::ServerInfo info;
  ASSERT_TRUE(introspection_->GetServerInfo(&server_context, {}, &info).ok());
  EXPECT_FALSE(info.version().empty());
  EXPECT_EQ(info.pages_total(), 64);
  EXPECT_EQ(info.page_size(), 16);
  EXPECT_EQ(info.max_samples(), 3);
  EXPECT_EQ(info.max_logprobs(), 1000);
  EXPECT_EQ(info.max_tenant_requests(), 9);
  EXPECT_EQ(info.max_prompt_tokens(), 64 * 16 - 1);  // Less than the context.
  EXPECT_EQ(info.policy(), "fcfs");
  const absl::Time start = absl::UnixEpoch() + ToDuration(info.start());
  EXPECT_LT(absl::Now() - start, absl::Minutes(5));
  EXPECT_GE(absl::Now(), start);
}

TEST_F(OperationsTest, LoadIsThatOfNow) {
  EngineOptions options = OptionsFor(/*num_pages=*/64);
  options.scheduler.max_batch_sequences = 1;
  StartWithAdmin(options);
  const v1::Load idle = Load();
  EXPECT_EQ(idle.requests_live(), 0);
  EXPECT_EQ(idle.pages_total(), 64);
  EXPECT_EQ(idle.pages_free(), 64);
  EXPECT_EQ(idle.generated_tokens_per_second(), 0);

  gate_.Close();
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back([this] { Generate(EndlessRequest(50)); });
  }
  ASSERT_TRUE(gate_.WaitForArrivals(1, kPatience));
  // The answer is given between two steps.
  std::future<v1::Load> busy =
      std::async(std::launch::async, [this] { return Load(); });
  while (busy.wait_for(std::chrono::milliseconds(1)) !=
         std::future_status::ready) {
    gate_.LetOneThrough();
  }
  const v1::Load load = busy.get();
  EXPECT_GE(load.requests_live(), 1);
  EXPECT_LE(load.sequences_running(), 1);
  EXPECT_EQ(load.pages_free() + load.pages_in_use() + load.pages_cached(), 64);
  gate_.Open();
  for (std::thread& client : clients) client.join();
  ExpectNoPagesInUse();
  // 150 tokens in ten seconds, if it did not take longer.
  EXPECT_GT(Load().generated_tokens_per_second(), 0);
  EXPECT_LE(Load().generated_tokens_per_second(), 15);
}

TEST_F(OperationsTest, FlushingFreesCachedPages) {
  StartWithAdmin(OptionsFor(/*num_pages=*/64));
  EXPECT_EQ(Flush(), 0);
  EXPECT_TRUE(Generate(RequestOf(std::vector<TokenId>(64, 1), 2)).status.ok());
  ExpectNoPagesInUse();
  EXPECT_GE(Load().pages_cached(), 4);
  const int32_t cached = Load().pages_cached();
  EXPECT_EQ(Flush(), cached);
  EXPECT_EQ(Load().pages_cached(), 0);
  EXPECT_EQ(Load().pages_free(), 64);
}

TEST_F(OperationsTest, DrainRefusesNewRequestsAndLetsLiveOnesFinish) {
  std::promise<std::optional<absl::Duration>> drained;
  StartWithAdmin(OptionsFor(/*num_pages=*/512),
                 [&](std::optional<absl::Duration> timeout) {
                   drained.set_value(timeout);
                 });
  gate_.SetDelay(std::chrono::milliseconds(2));
  const auto stub = v1::Generation::NewStub(NewChannel());
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, EndlessRequest(300));
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));

  grpc::ClientContext bad_context;
  v1::DrainRequest request;
  request.mutable_timeout()->set_seconds(-1);
  v1::DrainResponse drain;
  EXPECT_EQ(admin_->Drain(&bad_context, request, &drain).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(client_->CheckHealth().ok());

  grpc::ClientContext drain_context;
  request.mutable_timeout()->set_seconds(50);
  EXPECT_TRUE(admin_->Drain(&drain_context, request, &drain).ok());
  EXPECT_EQ(drain.requests_live(), 1);
  EXPECT_EQ(drained.get_future().get(), absl::Seconds(50));
  EXPECT_FALSE(client_->CheckHealth().ok());
  EXPECT_EQ(Generate(RequestOf({1}, 1)).status.code(),
            absl::StatusCode::kUnavailable);
  Reply reply;
  do {
    reply.Add(response);
  } while (reader->Read(&response));
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(reply.tokens, ExpectedEndless(300));
  server_->Shutdown(absl::Seconds(50));
}

TEST_F(OperationsTest, AdminIsNotOnTheClientsPort) {
  StartWithAdmin(OptionsFor(/*num_pages=*/32));
  const auto admin = v1::Admin::NewStub(NewChannel());
  grpc::ClientContext context;
  v1::DrainResponse response;
  EXPECT_EQ(admin->Drain(&context, {}, &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(OperationsTest, AdminIsOnlyForThisMachine) {
  for (const char* address :
       {"0.0.0.0:0", "192.0.2.1:50052", "unix:relative", "nonsense"}) {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.admin_listen = address;
    const auto server = Server::Listen(options);
    EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument)
        << address;
    EXPECT_THAT(std::string(server.status().message()), HasSubstr(address));
  }
}

TEST_F(OperationsTest, AnAdminSocketIsNotTakenFromAServer) {
  StartWithAdmin(OptionsFor(/*num_pages=*/32));
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.admin_listen = server_->admin_address();
  const auto second = Server::Listen(options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(options.admin_listen));
  EXPECT_EQ(Flush(), 0);
}

// They would be unpacked before anybody knows how large they are.
TEST_F(OperationsTest, CompressedMessagesAreRefused) {
  StartServer(OptionsFor(/*num_pages=*/32));
  const auto stub = v1::Generation::NewStub(NewChannel());
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  v1::TokenizeRequest request;
  request.set_text(std::string(100000, 'x'));
  v1::TokenizeResponse response;
  EXPECT_EQ(stub->Tokenize(&context, request, &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(OperationsTest, ATextThatCannotFitIsRefusedUnread) {
  StartServer(OptionsFor(/*num_pages=*/512));
  v1::GenerateRequest request;
  // (A byte that this tokenizer can't encode would be told otherwise.)
  request.set_text(std::string(8 * kContext, '\x07'));
  const Reply reply = Generate(request);
  EXPECT_EQ(reply.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(reply.status.message()),
              HasSubstr("text has 32768 bytes"));
}

TEST_F(OperationsTest, AServerThatLoadsItsModelSaysSo) {
  auto server = Server::Listen({.listen = "127.0.0.1:0"});
  ASSERT_TRUE(server.ok()) << server.status();
  auto client = Client::Connect((*server)->address(), absl::Seconds(30));
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_FALSE((*client)->CheckHealth().ok());
  const absl::Status refused = (*client)->Generate(
      RequestOf({1}, 1), [](const v1::GenerateResponse&) { return true; });
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("loading its model"));
  EXPECT_EQ((*client)->GetMemoryReport().status().code(),
            absl::StatusCode::kUnavailable);
  (*server)->Shutdown(absl::ZeroDuration());
}

TEST_F(OperationsTest, AFullServerSaysWhenToTryAgain) {
  EngineOptions options = OptionsFor(/*num_pages=*/512);
  options.scheduler.max_batch_sequences = 1;
  options.queue.max_waiting_requests = 0;
  StartWithAdmin(options);
  gate_.Close();
  std::thread first([this] { Generate(RequestOf({1}, 1)); });
  ASSERT_TRUE(gate_.WaitForArrivals(1, kPatience));
  const auto stub = v1::Generation::NewStub(NewChannel());
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, RequestOf({2}, 1));
  v1::GenerateResponse response;
  EXPECT_FALSE(reader->Read(&response));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), status.error_code());
  EXPECT_EQ(details.message(), status.error_message());
  google::rpc::RetryInfo retry;
  ASSERT_EQ(details.details_size(), 1);
  ASSERT_TRUE(details.details(0).UnpackTo(&retry));
  EXPECT_GT(ToDuration(retry.retry_delay()), absl::ZeroDuration());
  gate_.Open();
  first.join();
}

TEST_F(OperationsTest, TheTenantMayBeInTheMetadata) {
  EngineOptions options = OptionsFor(/*num_pages=*/512);
  options.queue.max_tenant_requests = 1;
  StartWithAdmin(options);
  gate_.Close();
  const auto stub = v1::Generation::NewStub(NewChannel());
  const auto generate = [&](const char* tenant, const char* field) {
    grpc::ClientContext context;
    if (tenant != nullptr) context.AddMetadata("folio-tenant", tenant);
    v1::GenerateRequest request = RequestOf({2}, 1);
    request.set_tenant(field);
    const auto reader = stub->Generate(&context, request);
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
    }
    return reader->Finish();
  };
  std::thread first([&] { EXPECT_TRUE(generate("alice", "").ok()); });
  ASSERT_TRUE(gate_.WaitForArrivals(1, kPatience));
  const grpc::Status full = generate(nullptr, "alice");
  EXPECT_EQ(full.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(full.error_message(), HasSubstr("tenant"));
  EXPECT_EQ(generate("alice", "bob").error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  gate_.Open();
  EXPECT_TRUE(generate("bob", "bob").ok());
  first.join();
}

TEST_F(OperationsTest, EchoGivesThePromptFirst) {
  StartServer(OptionsFor(/*num_pages=*/32));
  v1::GenerateRequest request = RequestOf({'h', 'i'}, 3);
  request.set_echo(true);
  request.set_n(2);
  const Reply reply = Generate(request);
  ASSERT_TRUE(reply.status.ok()) << reply.status;
  EXPECT_EQ(reply.responses[0].prompt_text(), "hi");
  EXPECT_THAT(reply.responses[0].prompt_token_ids(),
              testing::ElementsAre('h', 'i'));
  EXPECT_TRUE(reply.responses[0].has_seed());
  for (size_t i = 1; i < reply.responses.size(); ++i) {
    EXPECT_EQ(reply.responses[i].prompt_token_ids_size(), 0);
  }
}

TEST_F(OperationsTest, ALongEchoComesInPieces) {
  EngineOptions options = OptionsFor(/*num_pages=*/512);
  StartServer(options);
  v1::GenerateRequest request =
      RequestOf(std::vector<TokenId>(kContext - 1, 'x'), 1);
  request.set_echo(true);
  const Reply reply = Generate(request);
  ASSERT_TRUE(reply.status.ok()) << reply.status;
  std::string text;
  for (const auto& response : reply.responses) text += response.prompt_text();
  EXPECT_EQ(text, std::string(kContext - 1, 'x'));
}

}  // namespace
}  // namespace folio
