// One GenerateBatch call: many requests, one stream.

#ifndef RUNTIME_SERVER_GENERATE_BATCH_REACTOR_H_
#define RUNTIME_SERVER_GENERATE_BATCH_REACTOR_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "folio/v1/generation.pb.h"
#include "runtime/base/types.h"
#include "runtime/server/admission.h"
#include "runtime/server/caller.h"
#include "runtime/server/event_sink.h"
#include "runtime/server/response_queue.h"
#include "scheduler/token_event.h"

namespace folio {

// One read and one write are in flight at a time. Requests take turns in
// writing. What a client does not read is bounded: beside kMaxOpen requests
// that it has not read to their ends, others are refused, and with as many
// refusals that it has not read, no more of its messages are.
//
// Invariant: the call is finished only after the terminal events of all its
// requests, also when it was cancelled; see GenerateReactor.
//
// gRPC would tell the end of the client's messages and one that can't be parsed
// by the same callback, so messages are parsed here.
class GenerateBatchReactor final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
      public EventSink {
 public:
  static constexpr size_t kMaxOpen = 1024;

  // `admission` must outlive the reactor, and `context` is the call's.
  // `on_done` is called when gRPC is done with the reactor.
  GenerateBatchReactor(Admission* admission, Caller caller,
                       const grpc::ServerContextBase* context,
                       std::function<void(GenerateBatchReactor*)> on_done)
      : admission_(admission),
        caller_(std::move(caller)),
        context_(context),
        on_done_(std::move(on_done)) {}

  // Reads the first message.
  void Start() { StartRead(&read_); }

  // The server ends: ends the call as soon as its requests have ended.
  void Close();

  void Deliver(RequestId request, std::span<const TokenEvent> events) override;

  // gRPC's callbacks.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { on_done_(this); }

 private:
  struct Open {
    Engine* engine;
    ResponseQueue responses;
    bool is_ready = false;  // In ready_.
  };
  // What is due. It is done without the lock, because gRPC may call back at
  // once.
  struct Due {
    bool read = false;
    bool write = false;
    bool finish = false;
  };

  // Does what a message asks for, or says why not.
  void Handle(grpc::ByteBuffer& bytes);
  absl::Status Do(const v1::GenerateBatchRequest& message);
  absl::Status Submit(const v1::GenerateRequest& request);
  // Whether the stream has a place for it.
  absl::Status CheckRoom(const v1::GenerateRequest& request);
  void Cancel(const std::string& name);

  // These need mutex_.
  void CloseRequest(RequestId request);
  bool HasWork() const { return !open_.empty() || !refused_.empty(); }
  v1::GenerateBatchResponse PopResponse();
  Due NextDue();

  void Act(const Due& due);

  Admission* const admission_;
  const Caller caller_;
  const grpc::ServerContextBase* const context_;
  const std::function<void(GenerateBatchReactor*)> on_done_;

  std::mutex mutex_;
  // Guarded by mutex_.
  absl::node_hash_map<RequestId, Open> open_;
  absl::flat_hash_map<std::string, RequestId> by_name_;
  std::deque<RequestId> ready_;  // Of open_, those with something to write.
  std::deque<v1::GenerateBatchResponse> refused_;
  bool is_reading_ = true;
  bool is_writing_ = false;
  bool is_handling_ = false;  // A message that was read.
  bool reads_ended_ = false;
  bool is_cancelled_ = false;
  bool is_closed_ = false;
  bool is_finished_ = false;

  // gRPC's, while it reads and writes.
  grpc::ByteBuffer read_;
  grpc::ByteBuffer in_flight_;
};

}  // namespace folio

#endif  // RUNTIME_SERVER_GENERATE_BATCH_REACTOR_H_
