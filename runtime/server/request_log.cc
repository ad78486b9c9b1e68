#include "runtime/server/request_log.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/server/finish_reason_name.h"
#include "runtime/server/quoted.h"
#include "runtime/server/response_conversion.h"

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
  const int descriptor =
      options.path == "-"
          ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)
          : open(options.path.c_str(),
                 O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kMode);
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
  const std::string text =
      line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (WriteAll(descriptor_, text) || std::exchange(failed_, true)) return;
  LOG(ERROR) << "can't write to the request log " << options_.path << ": "
             << std::strerror(errno)
             << "; requests are served without it where that goes on";
}

}  // namespace folio
