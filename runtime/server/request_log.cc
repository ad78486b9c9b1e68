#include "runtime/server/request_log.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/server/finish_reason_name.h"
#include "runtime/server/finish_status.h"
#include "runtime/server/quoted.h"

namespace folio {
namespace {

using Json = nlohmann::ordered_json;

constexpr mode_t kMode = 0640;

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

Json ToJson(const RequestFacts& request, const TokenEvent& terminal,
            const std::string& model_name, absl::Time end) {
  const Usage& usage = terminal.usage;
  const absl::Duration first_token =
      usage.queue_duration + usage.prefill_duration;
  const auto ms = absl::ToDoubleMilliseconds;
  Json line = {{"time", TimeText(end)},
               {"request_id", request.name},
               {"tenant", request.tenant},
               {"model", model_name},
               {"n", request.n},
               {"finish_reason", NameOf(terminal.finish_reason)},
               {"status", absl::StatusCodeToString(
                              StatusOfFinish(terminal.finish_reason).code())},
               {"prompt_tokens", usage.prompt_tokens},
               {"cached_tokens", usage.cached_tokens},
               {"generated_tokens", usage.generated_tokens},
               {"preemptions", usage.preemptions},
               {"peak_pages", usage.peak_pages},
               {"queue_ms", ms(usage.queue_duration)},
               {"prefill_ms", ms(usage.prefill_duration)},
               {"decode_ms", ms(usage.decode_duration)},
               {"e2e_ms", ms(first_token + usage.decode_duration)},
               {"ttft_ms", nullptr}};
  if (usage.generated_tokens > 0) line["ttft_ms"] = ms(first_token);
  return line;
}

// A pipe whose reader is gone is a failed write then, and not the end of the
// process.
void BlockPipeSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  CHECK_EQ(pthread_sigmask(SIG_BLOCK, &signals, nullptr), 0);
}

// With a file description of our own, which never blocks: the thread that
// writes has clients to serve. (stderr's may be shared with other processes, so
// it is opened anew where that is possible.)
int OpenLog(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK;
  if (path != "-") return open(path.c_str(), kFlags | O_CREAT, kMode);
  const int reopened = open("/proc/self/fd/2", kFlags);
  return reopened >= 0 ? reopened : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
}

// Returns whether everything was written; errno says why not.
bool WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(written);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RequestLog>> RequestLog::Open(
    const RequestLogOptions& options, std::string model_name) {
  const int descriptor = OpenLog(options.path);
  if (descriptor < 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("can't open the request log ", Quoted(options.path),
                            ", which must be a file that can be written, or - "
                            "for stderr"));
  }
  return std::unique_ptr<RequestLog>(
      new RequestLog(options, std::move(model_name), descriptor));
}

RequestLog::RequestLog(const RequestLogOptions& options, std::string model_name,
                       int descriptor)
    : options_(options),
      model_name_(std::move(model_name)),
      descriptor_(descriptor) {}

RequestLog::~RequestLog() { close(descriptor_); }

void RequestLog::Write(const RequestFacts& request, const TokenEvent& terminal,
                       absl::Time end) {
  Json line = ToJson(request, terminal, model_name_, end);
  if (options_.prompts && request.prompt.has_value()) {
    line["prompt"] = *request.prompt;
  }
  // What clients call things may be no UTF-8, which JSON has to be.
  // What failed may have left a part of its line.
  const std::string text = absl::StrCat(
      last_failed_ ? "\n" : "",
      line.dump(-1, ' ', false, Json::error_handler_t::replace), "\n");
  BlockPipeSignal();
  last_failed_ = !WriteAll(descriptor_, text);
  if (!last_failed_ || std::exchange(failed_, true)) return;
  LOG(ERROR) << "can't write to the request log " << options_.path << ": "
             << std::strerror(errno)
             << "; requests are served without it where that goes on";
}

}  // namespace folio
