#include "tests/bench/load/scripted_http_server.h"

#include <arpa/inet.h>
#include <glog/logging.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace folio {
namespace {

constexpr int kPatienceMs = 60'000;

bool IsReady(int fd, short events, int timeout_ms) {
  pollfd poll_fd = {.fd = fd, .events = events, .revents = 0};
  const int count = poll(&poll_fd, 1, timeout_ms);
  PCHECK(count >= 0) << "poll";
  return count > 0;
}

void Await(int fd, short events) {
  CHECK(IsReady(fd, events, kPatienceMs)) << "the client does nothing";
}

}  // namespace

ScriptedConnection::ScriptedConnection(int fd) : fd_(fd) {
  const int on = 1;
  PCHECK(setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
}

ScriptedConnection::ScriptedConnection(ScriptedConnection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

ScriptedConnection::~ScriptedConnection() { Close(); }

ScriptedConnection::Request ScriptedConnection::Read() {
  std::string bytes;
  size_t size = std::string::npos;  // Of the whole request.
  while (bytes.size() < size) {
    Await(fd_, POLLIN);
    char buffer[4096];
    const ssize_t count = recv(fd_, buffer, sizeof(buffer), 0);
    PCHECK(count > 0) << "recv, after " << bytes;
    bytes.append(buffer, count);
    const size_t end = bytes.find("\r\n\r\n");
    if (end == std::string::npos) continue;
    const std::string head = absl::AsciiStrToLower(bytes.substr(0, end + 2));
    size_t length = 0;
    constexpr std::string_view kLength = "\r\ncontent-length: ";
    if (const size_t at = head.find(kLength); at != std::string::npos) {
      const size_t start = at + kLength.size();
      CHECK(absl::SimpleAtoi(head.substr(start, head.find('\r', start) - start),
                             &length));
    }
    size = end + 4 + length;
  }
  CHECK_EQ(bytes.size(), size) << "more than one request: " << bytes;
  const size_t end = bytes.find("\r\n\r\n") + 4;
  return {.head = bytes.substr(0, end), .body = bytes.substr(end)};
}

void ScriptedConnection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    Await(fd_, POLLOUT);
    const ssize_t count = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    PCHECK(count > 0) << "send";
    bytes.remove_prefix(count);
  }
}

void ScriptedConnection::SendChunk(std::string_view bytes) {
  Send(absl::StrCat(absl::Hex(bytes.size()), "\r\n", std::string(bytes),
                    "\r\n"));
}

size_t ScriptedConnection::SendUntilFull(std::string_view bytes,
                                         size_t max_bytes) {
  // A client that reads makes room at once; it gets this long.
  constexpr int kNoRoomMs = 1'000;
  size_t sent = 0;
  while (sent < max_bytes && IsReady(fd_, POLLOUT, kNoRoomMs)) {
    const std::string_view rest = bytes.substr(sent % bytes.size());
    const ssize_t count =
        send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    PCHECK(count > 0 || errno == EAGAIN) << "send";
    if (count > 0) sent += count;
  }
  return sent;
}

void ScriptedConnection::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void ScriptedConnection::Reset() {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  PCHECK(setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) ==
         0);
  Close();
}

void ScriptedConnection::AwaitClosed() {
  char byte;
  Await(fd_, POLLIN);
  // Unread bytes at the client's end turn its close into a RST.
  CHECK_LE(recv(fd_, &byte, 1, 0), 0);
}

ScriptedHttpServer::ScriptedHttpServer()
    : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
  PCHECK(fd_ >= 0) << "socket";
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  PCHECK(bind(fd_, any, size) == 0) << "bind";
  PCHECK(listen(fd_, SOMAXCONN) == 0) << "listen";
  PCHECK(getsockname(fd_, any, &size) == 0);
  port_ = ntohs(address.sin_port);
}

ScriptedHttpServer::~ScriptedHttpServer() { close(fd_); }

ScriptedConnection ScriptedHttpServer::Accept() {
  Await(fd_, POLLIN);
  const int fd = accept(fd_, nullptr, nullptr);
  PCHECK(fd >= 0) << "accept";
  return ScriptedConnection(fd);
}

}  // namespace folio
