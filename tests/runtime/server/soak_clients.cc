#include "tests/runtime/server/soak_clients.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <deque>
#include <mutex>
#include <utility>

#include "absl/time/clock.h"

namespace folio {
namespace {

constexpr int kNumPrompts = 32;
constexpr int kNumFaults = 5;

// What a client that never reads asks for: with these alternatives, a token
// takes about 200 bytes, so that all of them fill every buffer on the way.
constexpr int32_t kUnreadTokens = 400;
constexpr int32_t kUnreadLogprobs = 20;

void MakeInvalid(int fault, v1::GenerateRequest& request) {
  switch (fault) {
    case 0:
      request.mutable_token_ids()->add_ids(1 << 20);
      return;
    case 1:
      request.mutable_sampling()->set_temperature(-1);
      return;
    case 2:
      request.set_n(0);
      return;
    case 3:
      request.set_max_tokens(-1);
      return;
    default:
      request.mutable_sampling()->set_top_p(2);
  }
}

v1::GenerateRequest RequestOf(const SoakPlan& plan) {
  v1::GenerateRequest request;
  request.set_request_id(plan.name);
  const std::vector<TokenId>& prompt = SoakPrompts()[plan.prompt];
  request.mutable_token_ids()->mutable_ids()->Assign(prompt.begin(),
                                                     prompt.end());
  request.set_max_tokens(plan.max_tokens);
  request.set_n(plan.n);
  request.set_ignore_eos(true);
  if (plan.behaviour == Behaviour::kNeverReads) {
    request.mutable_sampling()->set_logprobs(kUnreadLogprobs);
  }
  if (plan.behaviour == Behaviour::kSendsInvalid) {
    MakeInvalid(plan.fault, request);
  }
  return request;
}

void AddTokens(const v1::GenerateResponse& response, SoakOutcome& outcome) {
  std::vector<TokenId>& tokens = outcome.tokens.at(response.sample_index());
  tokens.insert(tokens.end(), response.token_ids().begin(),
                response.token_ids().end());
}

SoakOutcome NothingYet(SoakPlan plan, bool is_batched) {
  const int32_t n = plan.n;
  return {.plan = std::move(plan),
          .is_batched = is_batched,
          .status = std::nullopt,
          .tokens = std::vector<std::vector<TokenId>>(n)};
}

void SetDeadline(const SoakPlan& plan, grpc::ClientContext& context) {
  if (plan.behaviour != Behaviour::kHasDeadline) return;
  context.set_deadline(absl::ToChronoTime(absl::Now() + *plan.time_left));
}

std::optional<absl::Duration> CancelTimeOf(const SoakPlan& plan) {
  if (plan.behaviour != Behaviour::kCancels) return std::nullopt;
  return plan.time_left;
}

class SingleCall final : public SoakCall,
                         private grpc::ClientReadReactor<v1::GenerateResponse> {
 public:
  explicit SingleCall(SoakPlan plan) : request_(RequestOf(plan)) {
    outcomes_.push_back(NothingYet(std::move(plan), /*is_batched=*/false));
  }

  void Start(v1::Generation::Stub& stub) override {
    SetDeadline(plan(), context_);
    stub.async()->Generate(&context_, &request_, this);
    if (plan().behaviour != Behaviour::kNeverReads) StartRead(&response_);
    StartCall();
    if (plan().messages_left == 0) Cancel();
  }
  void Cancel() override { context_.TryCancel(); }
  std::optional<absl::Duration> cancel_time() const override {
    return CancelTimeOf(plan());
  }

 private:
  const SoakPlan& plan() const { return outcomes_[0].plan; }

  void OnReadInitialMetadataDone(bool /*ok*/) override { answered_ = true; }
  void OnReadDone(bool ok) override {
    if (!ok) return;
    AddTokens(response_, outcomes_[0]);
    if (++num_messages_ == plan().messages_left) Cancel();
    StartRead(&response_);
  }
  void OnDone(const grpc::Status& status) override {
    outcomes_[0].status = static_cast<absl::StatusCode>(status.error_code());
    done_ = true;  // From here on, the object may go.
  }

  const v1::GenerateRequest request_;
  grpc::ClientContext context_;
  v1::GenerateResponse response_;
  int num_messages_ = 0;
};

class BatchCall final
    : public SoakCall,
      private grpc::ClientBidiReactor<v1::GenerateBatchRequest,
                                      v1::GenerateBatchResponse> {
 public:
  explicit BatchCall(std::vector<SoakPlan> plans)
      : num_open_(plans.size()), num_messages_(plans.size(), 0) {
    for (SoakPlan& plan : plans) {
      v1::GenerateBatchRequest& message = to_write_.emplace_back();
      *message.mutable_generate() = RequestOf(plan);
      if (plan.messages_left == 0) AddCancel(plan.name);
      outcomes_.push_back(NothingYet(std::move(plan), /*is_batched=*/true));
    }
  }

  void Start(v1::Generation::Stub& stub) override {
    SetDeadline(first_plan(), context_);
    stub.async()->GenerateBatch(&context_, this);
    if (first_plan().behaviour != Behaviour::kNeverReads) StartRead(&response_);
    WriteNext();
    StartCall();
  }
  void Cancel() override { context_.TryCancel(); }
  // That of the first, for all.
  std::optional<absl::Duration> cancel_time() const override {
    return CancelTimeOf(first_plan());
  }

 private:
  enum class Due { kNothing, kWrite, kHalfClose };

  const SoakPlan& first_plan() const { return outcomes_[0].plan; }

  void AddCancel(const std::string& name) {
    to_write_.emplace_back().set_cancel(name);
  }

  // Needs mutex_.
  Due NextDue() {
    if (is_writing_ || is_half_closed_) return Due::kNothing;
    if (!to_write_.empty()) {
      in_flight_ = std::move(to_write_.front());
      to_write_.pop_front();
      is_writing_ = true;
      return Due::kWrite;
    }
    if (num_open_ > 0) return Due::kNothing;
    is_half_closed_ = true;
    return Due::kHalfClose;
  }

  // Without mutex_: gRPC may call back at once.
  void WriteNext() {
    Due due;
    {
      std::lock_guard lock(mutex_);
      due = NextDue();
    }
    if (due == Due::kWrite) StartWrite(&in_flight_);
    if (due == Due::kHalfClose) StartWritesDone();
  }

  void OnReadInitialMetadataDone(bool /*ok*/) override { answered_ = true; }

  void OnWriteDone(bool ok) override {
    if (!ok) return;  // The call has ended.
    {
      std::lock_guard lock(mutex_);
      is_writing_ = false;
    }
    WriteNext();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    {
      std::lock_guard lock(mutex_);
      Take(response_);
    }
    WriteNext();
    StartRead(&response_);
  }

  // Needs mutex_.
  void Take(const v1::GenerateBatchResponse& message) {
    size_t i = 0;
    while (outcomes_.at(i).plan.name != message.response().request_id()) ++i;
    SoakOutcome& outcome = outcomes_[i];
    AddTokens(message.response(), outcome);
    if (message.has_status()) {
      outcome.status = static_cast<absl::StatusCode>(message.status().code());
      --num_open_;
    } else if (++num_messages_[i] == outcome.plan.messages_left) {
      AddCancel(outcome.plan.name);
    }
  }

  void OnDone(const grpc::Status& /*status*/) override {
    done_ = true;  // From here on, the object may go.
  }

  grpc::ClientContext context_;
  v1::GenerateBatchResponse response_;
  v1::GenerateBatchRequest in_flight_;

  std::mutex mutex_;
  // Guarded by mutex_, as outcomes_ is until the call is done.
  std::deque<v1::GenerateBatchRequest> to_write_;
  bool is_writing_ = false;
  bool is_half_closed_ = false;
  size_t num_open_;  // Requests that have no status yet.
  std::vector<int> num_messages_;
};

}  // namespace

const std::vector<std::vector<TokenId>>& SoakPrompts() {
  static const auto* const prompts = [] {
    auto* const made = new std::vector<std::vector<TokenId>>;
    for (int i = 0; i < kNumPrompts; ++i) {
      // Four beginnings, and lengths on both sides of a page's.
      std::vector<TokenId>& prompt = made->emplace_back(1 + 3 * i);
      for (size_t j = 0; j < prompt.size(); ++j) {
        prompt[j] = static_cast<TokenId>((i % 4 + 17 * j) % 200);
      }
    }
    return made;
  }();
  return *prompts;
}

SoakPlan MakeSoakPlan(std::string name, Behaviour behaviour,
                      std::mt19937_64& random) {
  const auto draw = [&random](int first, int last) {
    return std::uniform_int_distribution<int>(first, last)(random);
  };
  SoakPlan plan = {.name = std::move(name),
                   .behaviour = behaviour,
                   .prompt = draw(0, kNumPrompts - 1),
                   .max_tokens = draw(1, 150),
                   .n = draw(0, 3) == 0 ? 2 : 1,
                   .fault = draw(0, kNumFaults - 1)};
  switch (behaviour) {
    case Behaviour::kCancels:
      if (draw(0, 1) == 0) {
        plan.messages_left = draw(0, 20);
      } else {
        plan.time_left = absl::Milliseconds(draw(0, 300));
      }
      break;
    case Behaviour::kHasDeadline:
      plan.time_left = absl::Milliseconds(draw(1, 500));
      break;
    case Behaviour::kNeverReads:
      plan.max_tokens = kUnreadTokens;
      break;
    case Behaviour::kStreams:
    case Behaviour::kSendsInvalid:
      break;
  }
  return plan;
}

std::unique_ptr<SoakCall> MakeSingleCall(SoakPlan plan) {
  return std::make_unique<SingleCall>(std::move(plan));
}

std::unique_ptr<SoakCall> MakeBatchCall(std::vector<SoakPlan> plans) {
  return std::make_unique<BatchCall>(std::move(plans));
}

}  // namespace folio
