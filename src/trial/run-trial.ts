import { steadyClock } from '../base/clock.ts';
import type { ModelAccount } from '../gateway/gateway.ts';
import type { PhaseName } from '../record/cause.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { agentUsage } from '../record/usage.ts';
import type { PlannedSource } from '../suite/git/git-source.ts';
import { causeOf } from './failure.ts';
import { GradingSandboxes } from './grading-sandboxes.ts';
import { keeping } from './left/keep-left.ts';
import { openModels, type TrialModels } from './models.ts';
import { PhaseTimer } from './phase-timer.ts';
import type { Found } from './phases/phase.ts';
import { recordOf } from './record-of.ts';
import { missedCause, replayOf } from './replayed.ts';
import { runSteps } from './run-steps.ts';
import type { TrialServices } from './services/trial-services.ts';
import { withServices } from './services/with-services.ts';
import type { TrialSpec } from './spec.ts';
import { sandboxFacts } from './started-sandbox.ts';
import type { TrialParts } from './trial-parts.ts';

/**
 * Runs one trial from its setup to its outcome. If something goes wrong, the result says what and who caused
 * it. The promise rejects only if `signal` aborts. The sandbox is released in every case.
 */
export async function runTrial(
  spec: TrialSpec,
  given: TrialParts,
  signal: AbortSignal,
  onPhase: (phase: PhaseName) => void,
): Promise<TrialRecord> {
  const clock = steadyClock(given.clock);
  const parts = { ...given, clock };
  const { sandboxes } = parts;
  const startedAt = clock.now();
  const begun = given.clock.steady?.();
  const timer = new PhaseTimer(clock, onPhase);
  let found: Found = {};
  let models: TrialModels | undefined;
  let services: TrialServices | undefined;

  await using opened = new AsyncDisposableStack();
  try {
    models = openModels(spec, parts);
    opened.use(models?.session);
    using held = new DisposableStack();
    held.defer(() => sandboxes.forget(spec));
    sandboxes.start(spec, signal);
    const sandbox = await timer.run('sandbox', () => sandboxes.take(spec, signal));
    held.defer(() => sandboxes.giveBack(sandbox));
    services = sandbox.services;
    found = { ...sandboxFacts(sandbox), images: sandbox.images };
    const graders = held.use(new GradingSandboxes({ spec, parts, signal, services }));
    graders.start();
    const kept = keeping(parts.keep);
    const shared = { spec, parts, ...sandbox, sandboxes: graders, models, signal, keeping: kept };
    try {
      await runSteps(
        { ...shared, found },
        {
          runPhase: (step, phase, input) => timer.run(phase.name, () => phase.run(input), step),
          keep(grown) {
            found = grown;
          },
        },
      );
    } finally {
      found = await withServices(found, services, parts.blobs);
    }
  } catch (error) {
    signal.throwIfAborted();
    const cause = causeOf(error, timer.current);
    // If the agent broke its sandbox, the trial is failed, not void.
    found = { ...found, verdict: cause.kind === 'agent' ? 'failed' : 'void', cause };
  }
  const account = await models?.session.account();
  const missed = missedCause(models?.session, timer.current);
  if (missed && found.cause?.kind !== 'replay') found = { ...found, verdict: 'void', cause: missed };
  const ended = given.clock.steady?.();
  return {
    ...recordOf(spec, found, { account, startedAt, finishedAt: clock.now(), phases: timer.timings }),
    ...(sandboxes.engineName !== undefined && { engine: sandboxes.engineName }),
    ...(spec.environment.source && { source: sourceOf(spec.environment.source) }),
    ...(begun && ended && { steady: { of: begun.of, startedAt: begun.at, finishedAt: ended.at } }),
    ...(account && { replay: replayOf(account, spec.replay) }),
    disagreements: account && disagreements(found, account),
  };
}

function sourceOf({ url, ref, commit }: PlannedSource) {
  return { url, commit, ...(ref !== undefined && { ref }) };
}

const compared = ['inputTokens', 'outputTokens'] as const;

/**
 * One line for each count of the harness that differs from ours: its token counts from the gateway's, its
 * command count from the commands in its stream.
 */
function disagreements({ harnessCounts, trajectory }: Partial<TrialRecord>, account: ModelAccount): string[] {
  const usage = agentUsage(account);
  const tokens = compared.flatMap((field) => {
    const said = harnessCounts?.usage?.[field];
    const seen = usage[field];
    return said === undefined || seen === undefined || said === seen
      ? []
      : [`the harness counted ${said} ${words[field]}, the gateway ${seen}`];
  });
  const said = harnessCounts?.commands;
  const seen = trajectory?.length;
  const commands =
    said === undefined || seen === undefined || said === seen
      ? []
      : [`the harness counted ${said} commands, its stream showed ${seen}`];
  return [...tokens, ...commands];
}

const words = { inputTokens: 'input tokens', outputTokens: 'output tokens' } as const;
