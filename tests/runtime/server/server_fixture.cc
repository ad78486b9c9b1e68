#include "tests/runtime/server/server_fixture.h"

#include <glog/logging.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <future>
#include <utility>

#include "absl/time/clock.h"
#include "runtime/tokenizer/byte_tokenizer.h"
#include "runtime/tokenizer/detokenizer.h"
#include "tests/support/scripted_model.h"

namespace folio {
namespace {

const std::vector<TokenId> kEndlessPrompt = {1, 2, 3};

}  // namespace

void Reply::Add(const v1::GenerateResponse& response) {
  tokens.insert(tokens.end(), response.token_ids().begin(),
                response.token_ids().end());
  text += response.text();
  responses.push_back(response);
}

ServerFixture::~ServerFixture() {
  gate_.Open();
  gate_.SetDelay(std::chrono::milliseconds(0));
  client_.reset();
  server_.reset();
}

EngineOptions ServerFixture::OptionsFor(int32_t num_pages) {
  constexpr int32_t kPageSize = 16;
  // One layer, one head of one float.
  constexpr int64_t kPageBytes = kPageSize * 2 * sizeof(float);
  EngineOptions options;
  options.page_size = kPageSize;
  options.kv_pool_bytes = num_pages * kPageBytes;
  options.seed_source = 1;
  return options;
}

std::unique_ptr<Model> ServerFixture::MakeModel(
    const ModelLimits& limits) const {
  return std::make_unique<ScriptedModel>(kContext, limits);
}

void ServerFixture::StartServer(const EngineOptions& options,
                                ServerOptions server_options) {
  auto model =
      std::make_unique<GatedModel>(MakeModel(options.model_limits()), &gate_);
  tokenizer_ = std::make_unique<ByteTokenizer>(
      ScriptedModel::kVocabSize, std::vector<TokenId>{ScriptedModel::kEos});
  auto engine = Engine::Create(options, std::move(model), tokenizer_.get(),
                               &clock_, &executor_);
  CHECK(engine.ok()) << engine.status();
  engine_ = *std::move(engine);
  server_options.listen = "127.0.0.1:0";
  auto server =
      Server::Start(server_options, engine_.get(), tokenizer_.get(), &clock_);
  CHECK(server.ok()) << server.status();
  server_ = *std::move(server);
  auto client = Client::Connect(server_->address(), absl::Seconds(30));
  CHECK(client.ok()) << client.status();
  client_ = *std::move(client);
}

std::shared_ptr<grpc::Channel> ServerFixture::NewChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 16);
  return grpc::CreateCustomChannel(
      server_->address(), grpc::InsecureChannelCredentials(), arguments);
}

Reply ServerFixture::Generate(const v1::GenerateRequest& request,
                              absl::Time deadline) {
  Reply reply;
  reply.status = client_->Generate(
      request,
      [&](const v1::GenerateResponse& response) {
        reply.Add(response);
        return true;
      },
      deadline);
  return reply;
}

v1::GenerateRequest ServerFixture::RequestOf(const std::vector<TokenId>& prompt,
                                             int32_t max_tokens) {
  v1::GenerateRequest request;
  request.mutable_token_ids()->mutable_ids()->Assign(prompt.begin(),
                                                     prompt.end());
  request.set_max_tokens(max_tokens);
  return request;
}

std::vector<TokenId> ServerFixture::Expected(std::vector<TokenId> prompt,
                                             int32_t max_tokens) {
  const size_t prompt_size = prompt.size();
  for (int32_t i = 0; i < max_tokens; ++i) {
    prompt.push_back(ScriptedModel::NextToken(prompt));
    if (prompt.back() == ScriptedModel::kEos) break;
  }
  return {prompt.begin() + prompt_size, prompt.end()};
}

std::string ServerFixture::TextOf(const std::vector<TokenId>& tokens) const {
  std::string text;
  Detokenizer detokenizer(tokenizer_.get(), TextStart::kContinuation);
  for (TokenId token : tokens) detokenizer.Append(token, text);
  detokenizer.Finish(text);
  return text;
}

v1::BatchReport ServerFixture::Report() {
  const absl::StatusOr<v1::BatchReport> report = client_->GetMemoryReport();
  CHECK(report.ok()) << report.status();
  return *report;
}

void ServerFixture::ExpectNoPagesInUse() {
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  v1::BatchReport report = Report();
  while (report.memory().pages_in_use() > 0 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(1));
    report = Report();
  }
  EXPECT_EQ(report.memory().pages_free() + report.memory().pages_cached(),
            report.memory().pages_total());
  EXPECT_EQ(report.memory().tokens_held(), 0);
  EXPECT_EQ(report.sequences_running(), 0);
  EXPECT_EQ(report.sequences_waiting(), 0);
}

bool ServerFixture::WaitForNewsToTheEngine() {
  std::future<void> news =
      std::async(std::launch::async, [this] { engine_->WaitForInbox(); });
  const bool came = news.wait_for(kPatience) == std::future_status::ready;
  if (!came) {
    engine_->Close();  // Ends the waiting,
    gate_.Open();      // and that of requests.
  }
  return came;
}

v1::GenerateRequest ServerFixture::EndlessRequest(int32_t max_tokens) {
  v1::GenerateRequest request = RequestOf(kEndlessPrompt, max_tokens);
  request.set_ignore_eos(true);
  return request;
}

std::vector<TokenId> ServerFixture::ExpectedEndless(int32_t num_tokens) {
  std::vector<TokenId> tokens = kEndlessPrompt;
  const size_t prompt_size = tokens.size();
  for (int32_t i = 0; i < num_tokens; ++i) {
    tokens.push_back(ScriptedModel::NextToken(tokens));
  }
  return {tokens.begin() + prompt_size, tokens.end()};
}

}  // namespace folio
