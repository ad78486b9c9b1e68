// A server with a scripted model, and a client of it, in this process.

#ifndef TESTS_RUNTIME_SERVER_SERVER_FIXTURE_H_
#define TESTS_RUNTIME_SERVER_SERVER_FIXTURE_H_

#include <gmock/gmock.h>
#include <grpcpp/channel.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "folio/v1/generation.pb.h"
#include "folio/v1/introspection.pb.h"
#include "runtime/base/clock.h"
#include "runtime/base/executor.h"
#include "runtime/client/client.h"
#include "runtime/engine/engine.h"
#include "runtime/model/model.h"
#include "runtime/server/server.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/runtime/server/gated_model.h"

namespace folio {

// What a client has of one call.
struct Reply {
  absl::Status status;
  std::vector<TokenId> tokens;
  std::string text;
  std::vector<v1::GenerateResponse> responses;

  void Add(const v1::GenerateResponse& response);
};

class ServerFixture : public testing::Test {
 protected:
  static constexpr int32_t kContext = 4096;
  // What never takes that long, even on a busy machine.
  static constexpr std::chrono::seconds kPatience{60};

  ~ServerFixture() override;

  // A pool of `num_pages` pages of 16 tokens.
  static EngineOptions OptionsFor(int32_t num_pages);

  // What is served: a ScriptedModel, unless a test has another one.
  virtual std::unique_ptr<Model> MakeModel(const ModelLimits& limits) const;

  void StartServer(const EngineOptions& options, ServerOptions server = {});

  // A channel that nobody shares, with small receive windows, so that a client
  // that doesn't read is noticed early.
  std::shared_ptr<grpc::Channel> NewChannel() const;

  Reply Generate(const v1::GenerateRequest& request,
                 absl::Time deadline = absl::InfiniteFuture());

  static v1::GenerateRequest RequestOf(const std::vector<TokenId>& prompt,
                                       int32_t max_tokens);

  // What the scripted model makes of `prompt`, an EOS included.
  static std::vector<TokenId> Expected(std::vector<TokenId> prompt,
                                       int32_t max_tokens);
  std::string TextOf(const std::vector<TokenId>& tokens) const;

  v1::BatchReport Report();

  // Waits until every page is free or cached; fails when that takes long.
  void ExpectNoPagesInUse();

  // Returns whether something came into the engine's inbox before patience
  // ended. REQUIRES: the engine's thread stands at the gate, so that the inbox
  // is nobody else's to wait for.
  bool WaitForNewsToTheEngine();

  // A request that goes on after EOS tokens, and so has all its tokens.
  static v1::GenerateRequest EndlessRequest(int32_t max_tokens = kContext);
  static std::vector<TokenId> ExpectedEndless(int32_t num_tokens);

  Gate gate_;
  SystemClock clock_;
  SerialExecutor executor_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

}  // namespace folio

#endif  // TESTS_RUNTIME_SERVER_SERVER_FIXTURE_H_
