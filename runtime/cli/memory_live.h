// A terminal that shows the last batch of a server.

#ifndef RUNTIME_CLI_MEMORY_LIVE_H_
#define RUNTIME_CLI_MEMORY_LIVE_H_

#include <signal.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "folio/v1/introspection.pb.h"
#include "runtime/cli/live_table.h"

namespace folio {

// Draws LiveTable on stdout, in place, on the terminal's other screen, at most
// ten times a second; from the first report to the end of its life, when the
// terminal is as before and the last table stands on it. A signal that ends or
// stops the process first gives the terminal back.
//
// A thread of its own draws and waits for these signals; every other thread
// must have them blocked, and inherits that when it is started after this.
// While one lives, std::cout is its own.
class MemoryLive {
 public:
  explicit MemoryLive(const std::string& server);
  ~MemoryLive();

  MemoryLive(const MemoryLive&) = delete;
  MemoryLive& operator=(const MemoryLive&) = delete;

  // Takes in the next report; it will be drawn unless another one comes soon.
  // Returns whether drawing still works.
  bool Show(const v1::BatchReport& report);

 private:
  // These run on the thread that draws.
  void Run();
  void OnSignal(int signal);
  // Makes the table anew; false when it would be the one that is drawn.
  bool TakeNews();
  void Draw();
  void LeaveScreen();
  void PrintLastTable() const;

  const sigset_t signals_;
  sigset_t blocked_before_;
  std::atomic<bool> ending_ = false;
  std::atomic<bool> can_write_ = true;

  std::mutex mutex_;
  // Guarded by mutex_.
  LiveState state_;
  std::optional<absl::Time> last_shown_;
  bool has_news_ = false;

  // Of the thread that draws.
  bool on_screen_ = false;
  TerminalSize size_;
  std::vector<std::string> table_;

  std::thread thread_;  // Starts when all the others are there.
};

}  // namespace folio

#endif  // RUNTIME_CLI_MEMORY_LIVE_H_
