#include "runtime/engine/engine_thread.h"

namespace folio {

EngineThread::EngineThread(Engine* engine, Outbox* outbox)
    : engine_(engine), outbox_(outbox), thread_([this] { Run(); }) {}

EngineThread::~EngineThread() {
  engine_->Close();
  thread_.join();
}

void EngineThread::Run() {
  StepOutput output;
  while (!engine_->closed()) {
    const bool has_work = engine_->Step(output);
    if (!output.empty()) outbox_->Push(output);
    if (!has_work && !engine_->closed()) engine_->WaitForInbox();
  }
  outbox_->Close();
}

}  // namespace folio
