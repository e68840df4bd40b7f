import type { StartRequest } from '../../src/contract/definition.ts';
import type { FaultFront } from '../../test/faults/fault-front.ts';

export const suiteId = 'soak';
const casesOfABatch = 10;
const mostTrials = 10;

/** A trial of a started batch, with the service's names. */
export interface FedRun {
  batch: string;
  run: string;
  caseId: string;
  trials: number;
}

/** Starts batches for the daemon to run: no-op trials of the command harness, one verify step each. */
export class Feeder {
  readonly runs: FedRun[] = [];
  readonly #front: FaultFront;

  constructor(front: FaultFront) {
    this.#front = front;
  }

  get trials(): number {
    return this.runs.reduce((sum, { trials }) => sum + trials, 0);
  }

  /** Queues this many runs, in batches of a few cases each. */
  async queueRuns(count: number): Promise<void> {
    for (let left = count; left > 0; left -= casesOfABatch) {
      await this.#start(Math.min(left, casesOfABatch), 1);
    }
  }

  /** Queues at least this many trials. */
  async queueTrials(count: number): Promise<void> {
    await this.#start(casesOfABatch, Math.min(mostTrials, Math.ceil(count / casesOfABatch)));
  }

  async #start(cases: number, trials: number): Promise<void> {
    const request: StartRequest = {
      suite: { id: suiteId, name: 'Soak', prompt: 'nothing' },
      cases: Array.from({ length: cases }, (_, index) => ({
        id: `soak-${index}`,
        name: `Soak ${index}`,
        verify: 'true',
      })),
      variants: [
        { model: 'none', credentials: { harnessConnectionId: 'command', sandboxConnectionId: 'local' } },
      ],
      trials,
      local: true,
    };
    const started = (await this.#front.ask('evals.start', request)) as {
      id: string;
      runs: { id: string; caseId: string }[];
    };
    for (const { id, caseId } of started.runs) this.runs.push({ batch: started.id, run: id, caseId, trials });
  }
}
