// Protos from and to the engine's types, field by field.

#include <gmock/gmock.h>

#include <map>
#include <vector>

#include "runtime/server/finish_status.h"
#include "runtime/server/report_conversion.h"
#include "runtime/server/request_conversion.h"
#include "runtime/server/response_conversion.h"
#include "runtime/tokenizer/byte_tokenizer.h"

namespace folio {
namespace {

using testing::ElementsAre;

ModelInfo AModel() {
  ModelInfo model;
  model.name = "a model";
  model.vocab_size = 300;
  return model;
}

TEST(RequestFromProto, CarriesEveryField) {
  v1::GenerateRequest proto;
  proto.set_model("a model");
  proto.set_text("hi");
  proto.mutable_sampling()->set_temperature(0.5f);
  proto.mutable_sampling()->set_top_k(40);
  proto.mutable_sampling()->set_top_p(0.75f);
  proto.mutable_sampling()->set_seed(7);
  proto.mutable_sampling()->set_logprobs(3);
  proto.mutable_sampling()->set_prompt_logprobs(true);
  proto.set_max_tokens(9);
  proto.add_stop_token_ids(11);
  proto.add_stop_token_ids(12);
  proto.set_ignore_eos(true);
  proto.set_n(4);
  proto.set_priority(-6);
  proto.set_tenant("somebody");
  proto.add_stop("end");
  proto.set_include_stop(true);
  proto.set_min_tokens(2);
  v1::SamplingParams& params = *proto.mutable_sampling();
  params.set_min_p(0.125f);
  params.add_allowed_token_ids(8);
  params.add_bad_words("ab");
  (*params.mutable_logit_bias())[70] = 2.5f;
  (*params.mutable_logit_bias())[7] = -1.5f;
  params.set_repetition_penalty(1.5f);
  params.set_presence_penalty(0.25f);
  params.set_frequency_penalty(-0.25f);
  params.set_processed_logprobs(true);
  const auto request = RequestFromProto(proto, AModel(), ByteTokenizer(300));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->prompt, ElementsAre('h', 'i'));
  EXPECT_EQ(request->sampling.temperature, 0.5f);
  EXPECT_EQ(request->sampling.top_k, 40);
  EXPECT_EQ(request->sampling.top_p, 0.75f);
  EXPECT_EQ(request->sampling.seed, 7);
  EXPECT_EQ(request->sampling.logprobs, 3);
  EXPECT_TRUE(request->sampling.prompt_logprobs);
  EXPECT_EQ(request->max_tokens, 9);
  EXPECT_THAT(request->stop_tokens, ElementsAre(11, 12));
  EXPECT_TRUE(request->ignore_eos);
  EXPECT_EQ(request->n, 4);
  EXPECT_EQ(request->priority, -6);
  EXPECT_EQ(request->tenant, "somebody");
  EXPECT_THAT(request->stop_strings, ElementsAre("end"));
  EXPECT_TRUE(request->include_stop);
  EXPECT_EQ(request->min_tokens, 2);
  const SamplingParams& sampling = request->sampling;
  EXPECT_EQ(sampling.min_p, 0.125f);
  EXPECT_THAT(sampling.allowed_tokens, ElementsAre(8));
  EXPECT_THAT(sampling.bad_words,
              ElementsAre(ElementsAre('a', 'b'), ElementsAre(' ', 'a', 'b')));
  EXPECT_THAT(sampling.logit_bias,
              ElementsAre(testing::Pair(7, -1.5f), testing::Pair(70, 2.5f)));
  EXPECT_EQ(sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(sampling.presence_penalty, 0.25f);
  EXPECT_EQ(sampling.frequency_penalty, -0.25f);
  EXPECT_TRUE(sampling.processed_logprobs);
}

TEST(RequestFromProto, AbsentIsNotZero) {
  v1::GenerateRequest proto;
  proto.mutable_token_ids()->add_ids(5);
  auto request = RequestFromProto(proto, AModel(), ByteTokenizer(300));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->prompt, ElementsAre(5));
  EXPECT_EQ(request->sampling.temperature, 0);
  EXPECT_EQ(request->sampling.top_k, 0);
  EXPECT_EQ(request->sampling.top_p, 1);
  EXPECT_EQ(request->sampling.seed, std::nullopt);
  EXPECT_EQ(request->sampling.logprobs, std::nullopt);
  EXPECT_EQ(request->max_tokens, std::nullopt);
  EXPECT_EQ(request->n, 1);
  EXPECT_EQ(request->priority, 0);
  EXPECT_EQ(request->tenant, "");

  proto.mutable_sampling()->set_seed(0);
  proto.mutable_sampling()->set_top_p(0);  // Not allowed, but not absent.
  proto.mutable_sampling()->set_logprobs(0);
  proto.set_max_tokens(0);
  proto.set_n(0);
  request = RequestFromProto(proto, AModel(), ByteTokenizer(300));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->sampling.top_p, 0);
  EXPECT_EQ(request->sampling.seed, 0);
  EXPECT_EQ(request->sampling.logprobs, 0);
  EXPECT_EQ(request->max_tokens, 0);
  EXPECT_EQ(request->n, 0);
}

TEST(AppendToProto, AddsEventsToOneResponse) {
  TokenEvent first;
  first.prompt.tokens = {4};
  first.prompt.logprobs = {-3.0f};
  first.prompt.top_count = 1;
  first.prompt.top = {{5, -0.5f}};
  first.sampled.tokens = {10};
  first.sampled.logprobs = {-1.0f};
  first.sampled.top_count = 2;
  first.sampled.top = {{10, -1.0f}, {11, -2.0f}};
  first.text = "a";
  TokenEvent second;
  second.sampled.tokens = {12};
  second.sampled.logprobs = {-4.0f};
  second.sampled.top_count = 2;
  second.sampled.top = {{13, -0.25f}, {12, -4.0f}};
  second.text = "b";
  second.finish_reason = FinishReason::kStop;
  TokenEvent terminal;
  terminal.terminal = true;
  terminal.finish_reason = FinishReason::kStop;
  terminal.usage = {.prompt_tokens = 2,
                    .generated_tokens = 2,
                    .cached_tokens = 3,
                    .preemptions = 1,
                    .peak_pages = 4,
                    .queue_duration = absl::Nanoseconds(5'000'000'006),
                    .prefill_duration = absl::Nanoseconds(7),
                    .decode_duration = absl::Seconds(8)};

  v1::GenerateResponse response;
  AppendToProto(first, response);
  EXPECT_EQ(response.finish_reason(), v1::FINISH_REASON_UNSPECIFIED);
  EXPECT_FALSE(response.has_usage());
  AppendToProto(second, response);
  AppendToProto(terminal, response);

  EXPECT_THAT(response.token_ids(), ElementsAre(10, 12));
  EXPECT_EQ(response.text(), "ab");
  ASSERT_EQ(response.logprobs_size(), 2);
  EXPECT_EQ(response.logprobs(1).token_id(), 12);
  EXPECT_EQ(response.logprobs(1).logprob(), -4.0f);
  ASSERT_EQ(response.logprobs(1).top_size(), 2);
  EXPECT_EQ(response.logprobs(1).top(0).token_id(), 13);
  EXPECT_EQ(response.logprobs(1).top(0).logprob(), -0.25f);
  ASSERT_EQ(response.prompt_logprobs_size(), 1);
  EXPECT_EQ(response.prompt_logprobs(0).token_id(), 4);
  EXPECT_EQ(response.prompt_logprobs(0).top(0).token_id(), 5);
  EXPECT_EQ(response.finish_reason(), v1::FINISH_REASON_STOP);
  EXPECT_EQ(response.usage().prompt_tokens(), 2);
  EXPECT_EQ(response.usage().generated_tokens(), 2);
  EXPECT_EQ(response.usage().preemptions(), 1);
  EXPECT_EQ(response.usage().cached_tokens(), 3);
  EXPECT_EQ(response.usage().peak_pages(), 4);
  EXPECT_EQ(response.usage().queue_duration().seconds(), 5);
  EXPECT_EQ(response.usage().queue_duration().nanos(), 6);
  EXPECT_EQ(response.usage().prefill_duration().nanos(), 7);
  EXPECT_EQ(response.usage().decode_duration().seconds(), 8);
}

TEST(StatusOfFinish, HasACodeForEachReason) {
  EXPECT_TRUE(StatusOfFinish(FinishReason::kStop).ok());
  EXPECT_TRUE(StatusOfFinish(FinishReason::kLength).ok());
  EXPECT_EQ(StatusOfFinish(FinishReason::kCancelled).code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(StatusOfFinish(FinishReason::kDeadline).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(StatusOfFinish(FinishReason::kShutdown).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(StatusOfFinish(FinishReason::kError).code(),
            absl::StatusCode::kInternal);
}

TEST(ReportToProto, KeepsTimesToTheNanosecond) {
  BatchReport report;
  report.step = 3;
  report.start = absl::FromUnixNanos(1'700'000'000'123'456'789);
  report.duration = absl::Nanoseconds(2'000'000'001);
  report.forward_duration = absl::Nanoseconds(999'999'999);
  const v1::BatchReport proto = ToProto(report, RequestRegistry());
  EXPECT_EQ(proto.step(), 3);
  EXPECT_EQ(proto.start().seconds(), 1'700'000'000);
  EXPECT_EQ(proto.start().nanos(), 123'456'789);
  EXPECT_EQ(proto.duration().seconds(), 2);
  EXPECT_EQ(proto.duration().nanos(), 1);
  EXPECT_EQ(proto.forward_duration().seconds(), 0);
  EXPECT_EQ(proto.forward_duration().nanos(), 999'999'999);
}

TEST(ReportToProto, CarriesTheBatch) {
  BatchReport report;
  report.prefill_tokens = 1;
  report.decode_tokens = 2;
  report.sequences_running = 3;
  report.sequences_waiting = 4;
  report.sequences_preempted = 5;
  report.prefix_query_tokens = 6;
  report.prefix_hit_tokens = 7;
  report.pages_evicted = 8;
  report.pages_copied = 9;
  v1::BatchReport proto = ToProto(report, RequestRegistry());
  EXPECT_EQ(proto.prefill_tokens(), 1);
  EXPECT_EQ(proto.decode_tokens(), 2);
  EXPECT_EQ(proto.sequences_running(), 3);
  EXPECT_EQ(proto.sequences_waiting(), 4);
  EXPECT_EQ(proto.sequences_preempted(), 5);
  EXPECT_EQ(proto.prefix_query_tokens(), 6);
  EXPECT_EQ(proto.prefix_hit_tokens(), 7);
  EXPECT_EQ(proto.pages_evicted(), 8);
  EXPECT_EQ(proto.pages_copied(), 9);
  // Zero is not known.
  EXPECT_FALSE(proto.has_predicted_duration());
  EXPECT_FALSE(proto.has_commit_interval());

  report.predicted_duration = absl::Milliseconds(10);
  report.commit_interval = absl::Milliseconds(11);
  proto = ToProto(report, RequestRegistry());
  EXPECT_EQ(proto.predicted_duration().nanos(), 10'000'000);
  EXPECT_EQ(proto.commit_interval().nanos(), 11'000'000);
}

TEST(ReportToProto, HasAWordForEveryReasonToWait) {
  const std::map<WaitReason, v1::WaitReason> words = {
      {WaitReason::kNone, v1::WAIT_REASON_UNSPECIFIED},
      {WaitReason::kTokens, v1::WAIT_REASON_TOKENS},
      {WaitReason::kSequences, v1::WAIT_REASON_SEQUENCES},
      {WaitReason::kPages, v1::WAIT_REASON_PAGES},
      {WaitReason::kWatermark, v1::WAIT_REASON_WATERMARK},
      {WaitReason::kPolicy, v1::WAIT_REASON_POLICY}};
  EXPECT_EQ(words.size(), v1::WaitReason_ARRAYSIZE);
  for (const auto& [reason, word] : words) {
    BatchReport report;
    report.wait_reason = reason;
    EXPECT_EQ(ToProto(report, RequestRegistry()).wait_reason(), word);
  }
}

TEST(ReportToProto, CarriesTheMemory) {
  BatchReport report;
  report.memory = {.kv_shape = {.num_layers = 1,
                                .num_kv_heads = 1,
                                .head_dim = 1,
                                .bytes_per_element = 4},
                   .page_size = 16,
                   .page_bytes = 192,
                   .page_scale_bytes = 24,
                   .page_padding_bytes = 40,
                   .pool_bytes = 2000,
                   .remainder_bytes = 80,
                   .context_length = 100,
                   .pages_total = 10,
                   .pages_free = 5,
                   .pages_in_use = 3,
                   .pages_cached = 2,
                   .duplicate_pages_saved = 4,
                   .pages_shared = 1,
                   .tokens_held = 40,
                   .sequences = {{.request = RequestId{5},
                                  .pages = 4,
                                  .shared_pages = 1,
                                  .tokens = 50}}};
  const v1::MemoryReport memory = ToProto(report, RequestRegistry()).memory();
  EXPECT_EQ(memory.page_size(), 16);
  EXPECT_EQ(memory.page_bytes(), 192);
  EXPECT_EQ(memory.page_scale_bytes(), 24);
  EXPECT_EQ(memory.page_padding_bytes(), 40);
  EXPECT_EQ(memory.bytes_per_token(), 8);
  EXPECT_EQ(memory.pool_bytes(), 2000);
  EXPECT_EQ(memory.remainder_bytes(), 80);
  EXPECT_EQ(memory.context_length(), 100);
  EXPECT_EQ(memory.pages_total(), 10);
  EXPECT_EQ(memory.pages_free(), 5);
  EXPECT_EQ(memory.pages_in_use(), 3);
  EXPECT_EQ(memory.pages_cached(), 2);
  EXPECT_EQ(memory.duplicate_pages_saved(), 4);
  EXPECT_EQ(memory.pages_shared(), 1);
  EXPECT_EQ(memory.shared_saved_bytes(), 4 * 192);
  EXPECT_EQ(memory.tokens_held(), 40);
  EXPECT_EQ(memory.reserved_bytes(), 3 * 192);
  EXPECT_EQ(memory.holding_bytes(), 40 * 8);
  EXPECT_EQ(memory.waste_bytes(), 3 * 192 - 40 * 8);
  EXPECT_DOUBLE_EQ(memory.waste_share(), (3 * 192 - 40 * 8) / (3 * 192.0));
  EXPECT_EQ(memory.contiguous_bytes(), 1 * 100 * 8);
  ASSERT_EQ(memory.sequences_size(), 1);
  EXPECT_EQ(memory.sequences(0).request_id(), "5");  // Not a client's.
  EXPECT_EQ(memory.sequences(0).pages(), 4);
  EXPECT_EQ(memory.sequences(0).shared_pages(), 1);
  EXPECT_EQ(memory.sequences(0).tokens(), 50);
}

}  // namespace
}  // namespace folio
