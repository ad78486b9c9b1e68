#include "bench/load/http_streams.h"

#include <curl/curl.h>
#include <glog/logging.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "bench/load/curl_transfer.h"

namespace folio {
namespace {

// Idle connections that are kept; more than any run has streams.
constexpr long kMaxConnections = 10'000;

struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
using Multi = std::unique_ptr<CURLM, MultiDeleter>;

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { close(fd_); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }

 private:
  const int fd_;
};

class Loop;

// A request on its way.
struct Stream {
  uint64_t id;
  HttpRequest request;
  std::unique_ptr<HttpReceiver> receiver;

  Loop* loop = nullptr;
  std::unique_ptr<CurlTransfer> transfer;
  HttpHead head;

  absl::Time resume = absl::InfinitePast();  // What the receiver said last.
  bool is_paused = false;  // Bytes came that the receiver did not want yet.
  bool is_done = false;    // Nothing more comes; `status` is how it went.
  absl::Status status;     // Before that: the receiver's error.
  std::optional<absl::Time> timer;  // Its entry among those of the loop.
};

struct StartCommand {
  std::unique_ptr<Stream> stream;
};
struct CancelCommand {
  uint64_t id;
};
struct StopCommand {};
using Command = std::variant<StartCommand, CancelCommand, StopCommand>;

// Owns the connections, and runs on one thread; only Push is for others. It
// drives curl by its sockets, so that a message on one of 1,000 streams costs
// what that stream needs.
class Loop {
 public:
  Loop(int epoll, int wakeup)
      : epoll_(epoll), wakeup_(wakeup), multi_(curl_multi_init()) {
    CHECK(multi_ != nullptr);
    curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETFUNCTION, &OnSocket);
    curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_.get(), CURLMOPT_TIMERFUNCTION, &OnCurlTimer);
    curl_multi_setopt(multi_.get(), CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, kMaxConnections);
    epoll_event event = {.events = EPOLLIN, .data = {.fd = wakeup_.get()}};
    PCHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wakeup_.get(), &event) == 0);
  }

  ~Loop() {
    for (auto& [id, stream] : streams_) Release(*stream);
  }

  void Push(Command command) {
    {
      const std::lock_guard lock(mutex_);
      commands_.push_back(std::move(command));
    }
    PCHECK(eventfd_write(wakeup_.get(), 1) == 0);
  }

  void Run() {
    while (RunCommands()) {
      FireTimers();
      TakeDone();
      Wait();
    }
  }

 private:
  // False: stop.
  bool RunCommands() {
    std::vector<Command> commands;
    {
      const std::lock_guard lock(mutex_);
      commands.swap(commands_);
    }
    for (Command& command : commands) {
      if (std::holds_alternative<StopCommand>(command)) return false;
      if (auto* const start = std::get_if<StartCommand>(&command)) {
        StartStream(std::move(start->stream));
      } else if (const auto found =
                     streams_.find(std::get<CancelCommand>(command).id);
                 found != streams_.end()) {
        Finish(*found->second, absl::CancelledError("cancelled by the client"));
      }
    }
    return true;
  }

  void StartStream(std::unique_ptr<Stream> owned) {
    Stream& stream = *owned;
    streams_.emplace(stream.id, std::move(owned));
    stream.loop = this;
    stream.transfer =
        std::make_unique<CurlTransfer>(stream.request, &OnBytes, &stream);
    SetTimer(stream);
    CHECK_EQ(curl_multi_add_handle(multi_.get(), stream.transfer->easy()),
             CURLM_OK);
  }

  static size_t OnBytes(char* bytes, size_t, size_t size, void* data) {
    Stream& stream = *static_cast<Stream*>(data);
    if (stream.resume != absl::InfinitePast()) {
      stream.is_paused = true;
      return CURL_WRITEFUNC_PAUSE;
    }
    stream.loop->Deliver(stream, {bytes, size});
    return stream.status.ok() ? size : CURL_WRITEFUNC_ERROR;
  }

  void Deliver(Stream& stream, std::string_view bytes) {
    if (stream.head.status == 0) stream.head = stream.transfer->Head();
    const absl::StatusOr<absl::Time> resume =
        stream.receiver->OnBody(stream.head, bytes);
    stream.resume = resume.ok() ? *resume : absl::InfinitePast();
    if (stream.status.ok()) stream.status = resume.status();
    SetTimer(stream);
  }

  void SetTimer(Stream& stream) {
    absl::Time timer = stream.request.deadline;
    if (stream.resume != absl::InfinitePast()) {
      timer = std::min(timer, stream.resume);
    }
    if (stream.timer == timer) return;
    ClearTimer(stream);
    stream.timer = timer;
    timers_.emplace(timer, &stream);
  }

  void ClearTimer(Stream& stream) {
    if (stream.timer.has_value()) timers_.erase({*stream.timer, &stream});
    stream.timer.reset();
  }

  void FireTimers() {
    while (!timers_.empty() && timers_.begin()->first <= absl::Now()) {
      Stream& stream = *timers_.begin()->second;
      ClearTimer(stream);
      if (stream.request.deadline <= absl::Now()) {
        Finish(stream, absl::DeadlineExceededError(
                           "the deadline passed before the end"));
      } else {
        Resume(stream);
      }
    }
  }

  void Resume(Stream& stream) {
    Deliver(stream, "");
    if (stream.resume == absl::InfinitePast() && stream.is_paused) {
      // This calls OnBytes, which may pause it again.
      stream.is_paused = false;
      curl_easy_pause(stream.transfer->easy(), CURLPAUSE_CONT);
    }
    const bool is_over =
        stream.is_done && stream.resume == absl::InfinitePast();
    if (is_over || !stream.status.ok()) {
      Finish(stream, std::move(stream.status));
    }
  }

  // Of the transfers that curl is done with.
  void TakeDone() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      Stream* stream = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &stream);
      stream->is_done = true;
      if (stream->status.ok()) {
        stream->status = stream->transfer->StatusOf(message->data.result);
      }
      if (stream->resume == absl::InfinitePast()) {
        Finish(*stream, std::move(stream->status));
      }
    }
  }

  // Destroys the stream.
  void Finish(Stream& stream, absl::Status status) {
    if (stream.head.status == 0) stream.head = stream.transfer->Head();
    Release(stream);
    const std::unique_ptr<Stream> owned =
        std::move(streams_.extract(stream.id).mapped());
    stream.receiver->OnEnd(stream.head, std::move(status));
  }

  // Gives its connection back, or closes it.
  void Release(Stream& stream) {
    ClearTimer(stream);
    curl_multi_remove_handle(multi_.get(), stream.transfer->easy());
    stream.transfer.reset();
  }

  void Wait() {
    std::array<epoll_event, 256> events;
    const int count = epoll_wait(epoll_.get(), events.data(),
                                 static_cast<int>(events.size()), TimeoutMs());
    PCHECK(count >= 0 || errno == EINTR) << "epoll_wait";
    int running = 0;
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == wakeup_.get()) {
        eventfd_t number = 0;
        eventfd_read(fd, &number);
        continue;
      }
      int what = 0;
      // Reading tells of an end or an error.
      if ((events[i].events & ~EPOLLOUT) != 0) what |= CURL_CSELECT_IN;
      if ((events[i].events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
      curl_multi_socket_action(multi_.get(), fd, what, &running);
    }
    if (curl_timer_ <= absl::Now()) {
      curl_timer_ = absl::InfiniteFuture();
      curl_multi_socket_action(multi_.get(), CURL_SOCKET_TIMEOUT, 0, &running);
    }
  }

  // Until the next timer; -1: there is none.
  int TimeoutMs() const {
    absl::Time due = curl_timer_;
    if (!timers_.empty()) due = std::min(due, timers_.begin()->first);
    if (due == absl::InfiniteFuture()) return -1;
    constexpr absl::Duration kLongest = absl::Hours(1);
    const absl::Duration left = std::min(due - absl::Now(), kLongest);
    if (left <= absl::ZeroDuration()) return 0;
    return static_cast<int>(
        absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
  }

  static int OnSocket(CURL*, curl_socket_t fd, int what, void* self,
                      void* known) {
    Loop& loop = *static_cast<Loop*>(self);
    const int epoll = loop.epoll_.get();
    if (what == CURL_POLL_REMOVE) {
      epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr);
      return 0;
    }
    epoll_event event = {.data = {.fd = fd}};
    if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
    if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
    const int operation = known == nullptr ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    PCHECK(epoll_ctl(epoll, operation, fd, &event) == 0);
    curl_multi_assign(loop.multi_.get(), fd, self);
    return 0;
  }

  static int OnCurlTimer(CURLM*, long timeout_ms, void* self) {
    static_cast<Loop*>(self)->curl_timer_ =
        timeout_ms < 0 ? absl::InfiniteFuture()
                       : absl::Now() + absl::Milliseconds(timeout_ms);
    return 0;
  }

  // In this order, because curl calls back also when it is destroyed.
  const FileDescriptor epoll_;
  const FileDescriptor wakeup_;
  std::set<std::pair<absl::Time, Stream*>> timers_;
  absl::Time curl_timer_ = absl::InfiniteFuture();
  const Multi multi_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Stream>> streams_;

  std::mutex mutex_;
  std::vector<Command> commands_;  // Guarded by it.
};

class HttpStreamsImpl final : public HttpStreams {
 public:
  HttpStreamsImpl(int epoll, int wakeup)
      : loop_(epoll, wakeup), thread_([this] { loop_.Run(); }) {}

  ~HttpStreamsImpl() override {
    loop_.Push(StopCommand());
    thread_.join();
  }

  uint64_t Start(HttpRequest request,
                 std::unique_ptr<HttpReceiver> receiver) override {
    const uint64_t id = next_id_.fetch_add(1, std::memory_order_relaxed);
    loop_.Push(StartCommand{
        std::make_unique<Stream>(Stream{.id = id,
                                        .request = std::move(request),
                                        .receiver = std::move(receiver)})});
    return id;
  }

  void Cancel(uint64_t request) override { loop_.Push(CancelCommand{request}); }

  bool IsOwnThread() const override {
    return std::this_thread::get_id() == thread_.get_id();
  }

 private:
  std::atomic<uint64_t> next_id_ = 0;
  Loop loop_;
  std::thread thread_;
};

void AllowManyFiles() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    PLOG(WARNING) << "could not raise the limit of open files";
  }
}

}  // namespace

std::unique_ptr<HttpStreams> HttpStreams::Create() {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK_EQ(initialized, CURLE_OK);
  AllowManyFiles();
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  PCHECK(epoll >= 0) << "epoll_create1";
  const int wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  PCHECK(wakeup >= 0) << "eventfd";
  return std::make_unique<HttpStreamsImpl>(epoll, wakeup);
}

}  // namespace folio
