#include "bench/load/openai_target.h"

#include <algorithm>
#include <cstdint>
#include <future>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/load/http_streams.h"
#include "bench/load/openai_protocol.h"
#include "bench/load/sse_parser.h"
#include "runtime/base/status_macros.h"
#include "runtime/weights/shown.h"

namespace folio {
namespace {

constexpr absl::Duration kDescribeTimeout = absl::Seconds(5);
// Of a body that is no stream.
constexpr size_t kMaxBodyBytes = size_t{4} << 20;

void AppendSome(std::string_view bytes, std::string& body) {
  body.append(bytes.substr(0, kMaxBodyBytes - body.size()));
}

bool IsEventStream(const HttpHead& head) {
  return head.status == 200 &&
         (head.content_type.empty() ||
          absl::StartsWithIgnoreCase(head.content_type, "text/event-stream"));
}

// Makes the calls of a listener out of a stream of completions.
class CompletionReceiver final : public HttpReceiver {
 public:
  // `end_mutex` is held during OnEnd.
  CompletionReceiver(const TargetRequest& request, TargetListener* listener,
                     std::shared_ptr<std::mutex> end_mutex)
      : num_samples_(request.n),
        read_delay_(request.read_delay),
        listener_(listener),
        end_mutex_(std::move(end_mutex)) {}

  absl::StatusOr<absl::Time> OnBody(const HttpHead& head,
                                    std::string_view bytes) override {
    if (!IsEventStream(head)) {
      AppendSome(bytes, body_);
      return absl::InfinitePast();
    }
    parser_.Append(bytes);
    absl::Status status = TakeMessages();
    if (!status.ok()) {
      has_failed_ = true;
      return status;
    }
    return message_.has_value() ? next_read_ : absl::InfinitePast();
  }

  void OnEnd(const HttpHead& head, absl::Status status) override {
    TargetEnd end = {.status = HowItEnded(head, std::move(status)),
                     .prompt_tokens = usage_.prompt_tokens(),
                     .output_tokens = usage_.completion_tokens()};
    const std::lock_guard lock(*end_mutex_);
    listener_->OnEnd(std::move(end));
  }

 private:
  // Leaves the next one in `message_` when its time has not come.
  absl::Status TakeMessages() {
    while (message_.has_value() || (message_ = parser_.Next()).has_value()) {
      if (read_delay_ > absl::ZeroDuration()) {
        const absl::Time now = absl::Now();
        if (now < next_read_) return absl::OkStatus();
        next_read_ = now + read_delay_;
      }
      FOLIO_RETURN_IF_ERROR(Take(*message_));
      message_.reset();
    }
    return absl::OkStatus();
  }

  absl::Status Take(const SseMessage& message) {
    if (message.data == "[DONE]") {
      is_done_ = true;
      return absl::OkStatus();
    }
    FOLIO_ASSIGN_OR_RETURN(const CompletionChunk chunk,
                           ParseCompletionChunk(message.data));
    if (message.type == "error") {
      return absl::InternalError(
          absl::StrCat("the server broke off: ", Shown(message.data)));
    }
    for (const CompletionChunk::Choice& choice : chunk.choices) {
      if (choice.sample >= num_samples_) {
        return absl::InternalError(
            absl::StrCat("the server sent sample ", choice.sample, " of ",
                         num_samples_, " (counted from 0)"));
      }
      if (choice.is_last) ++num_finished_;
      if (!choice.HasToken()) continue;
      ++num_tokens_;
      listener_->OnOutput(
          {.sample = choice.sample, .num_tokens = 1, .text = choice.text});
    }
    usage_.Add(chunk);
    return absl::OkStatus();
  }

  absl::Status HowItEnded(const HttpHead& head, absl::Status status) const {
    if (has_failed_) return status;
    if (is_done_ || num_finished_ >= num_samples_) return absl::OkStatus();
    if (!status.ok() && !absl::IsUnavailable(status)) return status;
    if (head.status == 0) {
      return absl::UnavailableError(
          absl::StrCat("no answer came: ", status.message()));
    }
    if (head.status != 200) return StatusOfHttp(head.status, body_);
    if (!IsEventStream(head)) {
      return absl::InternalError(
          absl::StrCat("the server answered with ", Shown(head.content_type),
                       ", not with text/event-stream: ", Shown(body_)));
    }
    return absl::UnavailableError(absl::StrCat(
        "the stream ended after ", num_tokens_, " tokens, before [DONE]",
        status.ok() ? "" : ": ", status.message()));
  }

  const int32_t num_samples_;
  const absl::Duration read_delay_;
  TargetListener* const listener_;
  const std::shared_ptr<std::mutex> end_mutex_;

  SseParser parser_;
  std::optional<SseMessage> message_;  // Is to be taken next.
  absl::Time next_read_ = absl::InfinitePast();
  std::string body_;  // Of an answer that is no stream.

  UsageCount usage_;
  int64_t num_tokens_ = 0;
  int32_t num_finished_ = 0;  // Samples.
  bool is_done_ = false;
  bool has_failed_ = false;  // By what the stream held.
};

struct HttpAnswer {
  HttpHead head;
  absl::Status status;
  std::string body;
};

// Collects an answer.
class AnswerReceiver final : public HttpReceiver {
 public:
  std::future<HttpAnswer> answer() { return promise_.get_future(); }

  absl::StatusOr<absl::Time> OnBody(const HttpHead&,
                                    std::string_view bytes) override {
    AppendSome(bytes, body_);
    return absl::InfinitePast();
  }

  void OnEnd(const HttpHead& head, absl::Status status) override {
    promise_.set_value(
        {.head = head, .status = std::move(status), .body = std::move(body_)});
  }

 private:
  std::string body_;
  std::promise<HttpAnswer> promise_;
};

class OpenAiCall final : public TargetCall {
 public:
  OpenAiCall(HttpStreams* streams, uint64_t id,
             std::shared_ptr<std::mutex> end_mutex)
      : streams_(streams), id_(id), end_mutex_(std::move(end_mutex)) {}

  ~OpenAiCall() override {
    // A listener may destroy its call in OnEnd; all others wait for it.
    if (!streams_->IsOwnThread()) const std::lock_guard lock(*end_mutex_);
  }

  void Cancel() override { streams_->Cancel(id_); }

 private:
  HttpStreams* const streams_;
  const uint64_t id_;
  const std::shared_ptr<std::mutex> end_mutex_;
};

class OpenAiTarget final : public Target {
 public:
  OpenAiTarget(std::string url, const OpenAiTargetOptions& options)
      : url_(std::move(url)),
        options_(options),
        model_(options.model),
        streams_(HttpStreams::Create()) {}

  absl::StatusOr<TargetInfo> Describe() override {
    const std::string url = absl::StrCat(url_, "/models");
    auto receiver = std::make_unique<AnswerReceiver>();
    std::future<HttpAnswer> awaited = receiver->answer();
    streams_->Start({.url = url,
                     .headers = Headers(),
                     .deadline = absl::Now() + kDescribeTimeout},
                    std::move(receiver));
    const HttpAnswer answer = awaited.get();
    if (!answer.status.ok()) {
      return absl::UnavailableError(absl::StrCat(
          "no answer from ", url, ": ", answer.status.message(),
          "; check that a server runs there, and its address and port"));
    }
    if (answer.head.status != 200) {
      const absl::Status status = StatusOfHttp(answer.head.status, answer.body);
      return absl::Status(
          status.code(),
          absl::StrCat(url, ": ", status.message(),
                       "; check the address's path, which is /v1 for most "
                       "servers, and the token"));
    }
    absl::StatusOr<TargetInfo> info =
        ParseModels(answer.body, options_.model, answer.head.server);
    if (!info.ok()) {
      return absl::UnavailableError(absl::StrCat(
          url, " is not of a server with OpenAI's interface: ",
          info.status().message(), "; check the address and its path"));
    }
    const std::lock_guard lock(mutex_);
    model_ = info->model;
    return info;
  }

  std::unique_ptr<TargetCall> Start(TargetRequest request,
                                    TargetListener* listener) override {
    std::vector<std::string> headers = Headers();
    headers.push_back("Content-Type: application/json");
    headers.push_back("Accept: text/event-stream");
    auto end_mutex = std::make_shared<std::mutex>();
    const uint64_t id = streams_->Start(
        {.url = absl::StrCat(url_, "/completions"),
         .headers = std::move(headers),
         .body = CompletionBody(request, model()),
         .deadline = request.deadline},
        std::make_unique<CompletionReceiver>(request, listener, end_mutex));
    return std::make_unique<OpenAiCall>(streams_.get(), id,
                                        std::move(end_mutex));
  }

 private:
  std::vector<std::string> Headers() const {
    if (options_.token.empty()) return {};
    return {absl::StrCat("Authorization: Bearer ", options_.token)};
  }

  std::string model() const {
    const std::lock_guard lock(mutex_);
    return model_;
  }

  const std::string url_;  // Without a slash at its end.
  const OpenAiTargetOptions options_;
  mutable std::mutex mutex_;
  std::string model_;  // Is asked for. Guarded by the mutex.
  const std::unique_ptr<HttpStreams> streams_;
};

// Of "openai://HOST:PORT/PREFIX", with http:// in front and no slash behind.
absl::StatusOr<std::string> UrlOf(std::string_view address) {
  std::string_view rest = address;
  constexpr std::string_view kScheme = "openai://";
  if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
  const std::string_view authority = rest.substr(0, rest.find('/'));
  const size_t colon = authority.rfind(':');
  const std::string_view host = authority.substr(0, colon);
  // An IPv6 address has colons of its own, and so brackets around it.
  const bool has_host = host.starts_with('[')
                            ? host.ends_with(']')
                            : !host.empty() && host.find(':') == host.npos;
  int port = 0;
  const bool has_port =
      colon != authority.npos &&
      absl::SimpleAtoi(std::string(authority.substr(colon + 1)), &port) &&
      port > 0 && port < 65536;
  const bool has_stranger = std::ranges::any_of(rest, [](char c) {
    return !absl::ascii_isgraph(c) || c == '@' || c == '?' || c == '#';
  });
  if (!has_host || !has_port || has_stranger) {
    return absl::InvalidArgumentError(absl::StrCat(
        Shown(address),
        " is no address of a server with OpenAI's interface; write "
        "openai://HOST:PORT/v1, with a port from 1 to 65535"));
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  return absl::StrCat("http://", std::string(rest));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Target>> OpenOpenAiTarget(
    std::string_view address, const OpenAiTargetOptions& options) {
  FOLIO_ASSIGN_OR_RETURN(std::string url, UrlOf(address));
  if (!std::ranges::all_of(options.token, absl::ascii_isgraph)) {
    return absl::InvalidArgumentError(
        "the bearer token has a space, a line end or another character that "
        "can't travel in a header; only printable ASCII can");
  }
  return std::make_unique<OpenAiTarget>(std::move(url), options);
}

}  // namespace folio
