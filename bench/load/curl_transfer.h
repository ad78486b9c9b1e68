// One HTTP request as curl knows it.

#ifndef BENCH_LOAD_CURL_TRANSFER_H_
#define BENCH_LOAD_CURL_TRANSFER_H_

#include <curl/curl.h>

#include <array>
#include <memory>

#include "absl/status/status.h"
#include "bench/load/http_streams.h"

namespace folio {

// Sets curl up for a request, and tells what came of it.
class CurlTransfer {
 public:
  // `on_bytes` gets the body, and `context`, which is the handle's
  // CURLINFO_PRIVATE, too. `request` must live as long as the transfer.
  CurlTransfer(const HttpRequest& request, curl_write_callback on_bytes,
               void* context);
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  CURL* easy() const { return easy_.get(); }

  // As far as it came.
  HttpHead Head() const;

  // What it means that curl ended it with `code`: UNAVAILABLE with a reason for
  // people, unless it is OK.
  absl::Status StatusOf(CURLcode code) const;

 private:
  struct EasyDeleter {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };
  struct ListDeleter {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  void AddHeader(const char* header);
  static curl_socket_t OnOpenSocket(void* self, curlsocktype purpose,
                                    curl_sockaddr* address);

  std::unique_ptr<curl_slist, ListDeleter> headers_;
  std::unique_ptr<CURL, EasyDeleter> easy_;
  std::array<char, CURL_ERROR_SIZE> error_ = {};  // Curl's own words.
  int socket_errno_ = 0;  // Why there is no socket, which curl does not tell.
};

}  // namespace folio

#endif  // BENCH_LOAD_CURL_TRANSFER_H_
