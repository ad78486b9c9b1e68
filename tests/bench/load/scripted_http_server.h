// A server that does what a test says, when it says it.

#ifndef TESTS_BENCH_LOAD_SCRIPTED_HTTP_SERVER_H_
#define TESTS_BENCH_LOAD_SCRIPTED_HTTP_SERVER_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace folio {

// A connection of a client. Calls wait at most a minute for it, and then fail
// the program: a test that waits in vain must not hang.
class ScriptedConnection {
 public:
  explicit ScriptedConnection(int fd);
  ScriptedConnection(ScriptedConnection&& other) noexcept;
  ScriptedConnection& operator=(ScriptedConnection&&) = delete;
  ~ScriptedConnection();

  struct Request {
    std::string head;  // Its line and headers.
    std::string body;
  };
  // The next request on this connection.
  Request Read();

  void Send(std::string_view bytes);
  // One chunk of a body with "Transfer-Encoding: chunked".
  void SendChunk(std::string_view bytes);
  // Sends `bytes` again and again, until the client takes no more, or
  // `max_bytes` are on their way. Returns how many are.
  size_t SendUntilFull(std::string_view bytes, size_t max_bytes);

  void Close();
  // Closes with a RST.
  void Reset();
  // Waits until the client has closed.
  void AwaitClosed();

 private:
  int fd_;
};

// Listens on a free port of 127.0.0.1. Nothing happens on its own: the test
// accepts, reads and sends.
class ScriptedHttpServer {
 public:
  ScriptedHttpServer();
  ~ScriptedHttpServer();
  ScriptedHttpServer(const ScriptedHttpServer&) = delete;
  ScriptedHttpServer& operator=(const ScriptedHttpServer&) = delete;

  int port() const { return port_; }
  ScriptedConnection Accept();

 private:
  int fd_;
  int port_;
};

}  // namespace folio

#endif  // TESTS_BENCH_LOAD_SCRIPTED_HTTP_SERVER_H_
