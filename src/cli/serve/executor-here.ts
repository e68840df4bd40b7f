import type { Logger } from 'pino';
import { ConfigRevisions } from '../../agent/config-revision.ts';
import type { SomeEngines } from '../../agent/engines/check.ts';
import { Executor, type ExecutorState } from '../../agent/executor/executor.ts';
import type { Workplace } from '../../agent/executor/workplace.ts';
import type { WorkEvent } from '../../agent/worker/worker-parts.ts';
import { lines, type Printable, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import type { CommandContext } from '../context.ts';

interface ExecutorOptions {
  /** Trials at a time. If not given, from the configuration, else from cores and memory. */
  concurrency: number | undefined;
  log: Logger;
  observe(event: WorkEvent): void;
}

/** The executor of this process's service. Prints each change of its state. */
export function executorHere(
  context: CommandContext,
  { concurrency, log, observe }: ExecutorOptions,
): Executor {
  let engines: SomeEngines | undefined;
  return new Executor({
    config: context.config,
    host: context.host,
    runners: context.runners,
    ledger: context.ledger(),
    clock: context.clock,
    monotonic: () => performance.now(),
    random: Math.random,
    ...{ log, observe },
    async open(signal): Promise<Workplace> {
      engines ??= await context.enginesForTrials(signal);
      const revisions = new ConfigRevisions(await context.revision(engines, { concurrency }));
      context.noteLimits();
      context.closeWith(revisions);
      return { ...engines, revisions, extraCertificates: await context.certificates() };
    },
    changed: (state) => context.out.print(stateText(state)),
  });
}

function stateText(state: ExecutorState): Printable {
  switch (state.kind) {
    case 'working':
      return text`platform batches run here, ${plural(state.concurrency, 'trial')} at a time, on ${state.engine}`;
    case 'standby':
      return text`platform batches run in another process of this data folder; this one continues if that one ends`;
    case 'unable':
      return text`platform batches cannot run here yet: ${lines(state.reason)}`;
  }
}
