import type { HarnessEnding } from '../../harness/runner.ts';
import { harnessEnvironment } from '../environment.ts';
import { TrialFailure } from '../failure.ts';
import { places } from '../places.ts';
import type { Cause, TrialResult } from '../result.ts';
import type { Phase, PhaseInput } from './phase.ts';

/** Lets the harness work, and leaves none of its processes. */
export const harness: Phase = { name: 'harness', run };

async function run({ spec, parts, container, signal }: PhaseInput): Promise<Partial<TrialResult>> {
  const runner = parts.runners.find(({ name }) => name === spec.harness);
  if (!runner) {
    throw new TrialFailure({
      kind: 'infrastructure',
      phase: 'harness',
      message: `there is no harness "${spec.harness}"`,
    });
  }
  const session = runner.open({
    container,
    profile: spec.profile,
    env: harnessEnvironment(spec.prompt, spec.variables, spec.profile.env),
    workspace: places.workspace,
    home: places.harness,
    model: undefined,
    clock: parts.clock,
  });
  const { ending, trajectory, events } = await session.turn(spec.prompt, {
    timeoutMs: spec.sandbox.timeouts.harness,
    signal,
    stop: new AbortController().signal,
  });
  signal.throwIfAborted();
  // Whatever the harness left behind must not touch what is graded.
  await container.killAll(signal);
  return { harness: ending, trajectory, events, cause: causeOf(ending) };
}

function causeOf(ending: HarnessEnding): Cause | undefined {
  switch (ending.ended) {
    case 'exited':
      return undefined;
    case 'timed-out':
      return agentCause(`the harness was stopped after ${ending.afterMs / 1000} s`);
    case 'out-of-disk':
      return agentCause('the harness was stopped for writing more than the sandbox may');
    case 'out-of-memory':
      return agentCause('the harness was killed for using more memory than the sandbox has');
    case 'agent-failed':
    case 'stopped':
      return agentCause(ending.message);
    case 'model-failed':
      return { kind: 'model', phase: 'harness', message: ending.message };
    case 'runner-broke':
      return { kind: 'infrastructure', phase: 'harness', message: ending.message };
  }
}

function agentCause(message: string): Cause {
  return { kind: 'agent', phase: 'harness', message };
}
