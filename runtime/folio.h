// Folio inside a program of your own: all that an embedder includes.
//
// With CMake, after `cmake --install`:
//
//   find_package(Folio REQUIRED)
//   target_link_libraries(mine PRIVATE Folio::folio)
//
// The life of an embedded engine (runtime/examples/embed.cc is a whole one):
//
//   1. OpenEngine reads a model and makes an Engine for it, together with the
//      tokenizer, the threads and the clock that it works with. OpenOptions
//      says which model, in which types, with how much memory.
//   2. Make a Request: its prompt in tokens (opened->tokenizer->Encode with
//      add_special, for a text), SamplingParams, limits, a deadline.
//   3. Engine::Prepare checks and completes it; request.id is then what its
//      events will have. Engine::Submit hands it over. A step computes all
//      requests that were submitted before it together.
//   4. Engine::Step computes one batch, and leaves its news in a StepOutput.
//      Call it while it returns true, and read output.events after each call,
//      the last one too. Engine::WaitForInbox sleeps until there is something
//      to do.
//   5. A TokenEvent brings tokens and text of one sample. Each request that was
//      submitted gets exactly one event with `terminal` set, as its last, with
//      the usage, and with the reason if it was ended early.
//   6. Engine::Abort ends a request within a step, Engine::Close all of them at
//      the next one; after that, Submit refuses.
//
// In place of step 4, an EngineThread drives the engine, and Outbox::Pop waits
// for each StepOutput on a thread of yours:
//
//   Outbox outbox;
//   EngineThread thread(opened->engine.get(), &outbox);
//   ... Submit from anywhere; while (outbox.Pop(output)) ... output.events ...
//
// Destroying the EngineThread closes the engine and the outbox.
//
// Threads. Any thread may call Prepare, Submit, Abort, AskForReport,
// FlushPrefixCache, Close and the tokenizer. Step, WaitForInbox and what else
// engine.h lists under "the loop" belong to one thread at a time. A step
// computes on OpenOptions::threads threads of a oneTBB pool, the caller among
// them. Several engines may live in one process.
//
// Ownership. OpenedEngine owns everything, and must outlive an EngineThread on
// it. An Outbox must outlive its EngineThread. Requests move in. Events belong
// to their StepOutput, whose memory the next Step or Pop uses again.
//
// Errors. What can be wrong from outside comes back as an absl::Status, whose
// message names what was found and what is allowed: INVALID_ARGUMENT for
// options, files and requests; RESOURCE_EXHAUSTED from Submit when QueueLimits
// are reached, UNAVAILABLE after Close. Running out of pages is no error:
// requests wait, or are preempted and computed again, with the same result. A
// broken invariant ends the process. Folio throws no exceptions; the standard
// library may (std::bad_alloc). glog's flags decide what is logged.

#ifndef RUNTIME_FOLIO_H_
#define RUNTIME_FOLIO_H_

// IWYU pragma: begin_exports
#include "runtime/base/status_macros.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/engine_thread.h"
#include "runtime/engine/open_engine.h"
#include "runtime/engine/outbox.h"
#include "scheduler/request.h"
#include "scheduler/token_event.h"
// IWYU pragma: end_exports

#endif  // RUNTIME_FOLIO_H_
