#include "bench/load/curl_transfer.h"

#include <glog/logging.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"

namespace folio {
namespace {

constexpr long kConnectTimeoutMs = 10'000;

}  // namespace

CurlTransfer::CurlTransfer(const HttpRequest& request,
                           curl_write_callback on_bytes, void* context)
    : easy_(curl_easy_init()) {
  CHECK(easy_ != nullptr);
  for (const std::string& header : request.headers) AddHeader(header.c_str());
  // Else long bodies would wait for the server to ask for them.
  AddHeader("Expect:");
  const auto set = [this](CURLoption option, auto value) {
    CHECK_EQ(curl_easy_setopt(easy_.get(), option, value), CURLE_OK);
  };
  set(CURLOPT_PRIVATE, context);
  set(CURLOPT_ERRORBUFFER, error_.data());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PROTOCOLS_STR, "http");
  set(CURLOPT_PROXY, "");
  set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  set(CURLOPT_OPENSOCKETFUNCTION, &OnOpenSocket);
  set(CURLOPT_OPENSOCKETDATA, this);
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_HTTPHEADER, headers_.get());
  if (request.body.has_value()) {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDS, request.body->data());
    set(CURLOPT_POSTFIELDSIZE_LARGE,
        static_cast<curl_off_t>(request.body->size()));
  }
  set(CURLOPT_WRITEFUNCTION, on_bytes);
  set(CURLOPT_WRITEDATA, context);
}

void CurlTransfer::AddHeader(const char* header) {
  curl_slist* const list = curl_slist_append(headers_.get(), header);
  CHECK(list != nullptr);
  (void)headers_.release();  // It is `list`, or was empty.
  headers_.reset(list);
}

HttpHead CurlTransfer::Head() const {
  HttpHead head;
  long status = 0;
  curl_easy_getinfo(easy(), CURLINFO_RESPONSE_CODE, &status);
  head.status = static_cast<int>(status);
  const char* type = nullptr;
  curl_easy_getinfo(easy(), CURLINFO_CONTENT_TYPE, &type);
  if (type != nullptr) head.content_type = type;
  curl_header* server = nullptr;
  if (curl_easy_header(easy(), "Server", 0, CURLH_HEADER, -1, &server) ==
      CURLHE_OK) {
    head.server = server->value;
  }
  return head;
}

absl::Status CurlTransfer::StatusOf(CURLcode code) const {
  if (code == CURLE_OK) return absl::OkStatus();
  if (socket_errno_ != 0) {
    return absl::UnavailableError(absl::StrCat(
        absl::ErrnoToStatus(socket_errno_, "can't open a socket").message(),
        socket_errno_ == EMFILE
            ? "; each open request takes one: raise the limit, ulimit -n"
            : ""));
  }
  const char* const reason =
      error_[0] != '\0' ? error_.data() : curl_easy_strerror(code);
  long error = 0;
  curl_easy_getinfo(easy(), CURLINFO_OS_ERRNO, &error);
  // The words for other codes have it.
  if (code != CURLE_COULDNT_CONNECT || error == 0) {
    return absl::UnavailableError(reason);
  }
  return absl::UnavailableError(
      absl::ErrnoToStatus(static_cast<int>(error), reason).message());
}

curl_socket_t CurlTransfer::OnOpenSocket(void* self, curlsocktype,
                                         curl_sockaddr* address) {
  const int fd = socket(address->family, address->socktype | SOCK_CLOEXEC,
                        address->protocol);
  static_cast<CurlTransfer*>(self)->socket_errno_ = fd < 0 ? errno : 0;
  return fd;
}

}  // namespace folio
