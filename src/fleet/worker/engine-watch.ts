import type { Worker } from '../../agent/worker/worker.ts';
import type { WorkEvent } from '../../agent/worker/worker-parts.ts';
import { messageOf } from '../../base/offsite-error.ts';
import type { Polls } from './polls.ts';
import type { TaskRunner } from './task-runner.ts';

export interface EngineWatchParts {
  worker: Worker;
  tasks: TaskRunner;
  polls: Polls;
  /** Ends the watch. */
  signal: AbortSignal;
}

/** While the engine does not answer, other workers run what this one holds, and it takes nothing more. */
export class EngineWatch {
  readonly #parts: EngineWatchParts;
  #isDown = false;

  constructor(parts: EngineWatchParts) {
    this.#parts = parts;
  }

  observe(event: WorkEvent): void {
    const { worker, tasks, polls, signal } = this.#parts;
    if (event.kind === 'put-back')
      void worker.suspectEngine(messageOf(event.error), signal).catch(() => undefined);
    if (event.kind !== 'waiting' || !worker.isEngineDown || this.#isDown) return;
    this.#isDown = true;
    polls.hold(true);
    void tasks.engineFails(event.reason);
    const works = () => {
      this.#isDown = false;
      tasks.engineWorks();
      polls.hold(false);
    };
    // Trials that were given back cannot notice that the engine works again.
    worker.engineAnswers(signal).then(works, () => undefined);
  }
}
