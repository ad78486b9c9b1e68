// A model whose steps the test lets through.

#ifndef TESTS_RUNTIME_SERVER_GATED_MODEL_H_
#define TESTS_RUNTIME_SERVER_GATED_MODEL_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/model/model.h"

namespace folio {

// Forward passes wait here. Open at first. Thread-safe.
class Gate {
 public:
  void Close() { Set(false); }
  void Open() { Set(true); }
  void LetOneThrough() {
    {
      std::lock_guard lock(mutex_);
      ++permits_;
    }
    changed_.notify_all();
  }

  // An open gate takes so long for each.
  void SetDelay(std::chrono::milliseconds delay) {
    std::lock_guard lock(mutex_);
    delay_ = delay;
  }

  void Pass() {
    std::unique_lock lock(mutex_);
    ++num_arrived_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_ || permits_ > 0; });
    if (!open_) --permits_;
    const std::chrono::milliseconds delay = open_ ? delay_ : kNoDelay;
    lock.unlock();
    std::this_thread::sleep_for(delay);
  }

  // Returns whether so many have arrived, those that went on included; waits
  // for them up to `timeout`.
  bool WaitForArrivals(int64_t count, std::chrono::seconds timeout) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, timeout,
                             [&] { return num_arrived_ >= count; });
  }

  int64_t num_arrived() {
    std::lock_guard lock(mutex_);
    return num_arrived_;
  }

 private:
  static constexpr std::chrono::milliseconds kNoDelay{0};

  void Set(bool open) {
    {
      std::lock_guard lock(mutex_);
      open_ = open;
      permits_ = 0;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int permits_ = 0;
  int64_t num_arrived_ = 0;
  std::chrono::milliseconds delay_{0};
};

// `model`, with a gate before each forward pass. The gate must outlive it.
class GatedModel final : public Model {
 public:
  GatedModel(std::unique_ptr<Model> model, Gate* gate)
      : model_(std::move(model)), gate_(gate) {}

  const ModelInfo& info() const override { return model_->info(); }
  void Forward(const StepInput& input, KvStorage& storage) override {
    gate_->Pass();
    model_->Forward(input, storage);
  }
  const ColumnBlocks& Logits(int32_t first, int32_t count) override {
    return model_->Logits(first, count);
  }

 private:
  const std::unique_ptr<Model> model_;
  Gate* const gate_;
};

}  // namespace folio

#endif  // TESTS_RUNTIME_SERVER_GATED_MODEL_H_
