import { ledgerCassette, recordedModel } from '../agent/ledger-cassette.ts';
import { withoutVolatile } from '../gateway/replay/canonical-request.ts';
import { isCount } from '../gateway/replay/cassette.ts';
import type { FileChange } from '../record/files.ts';
import { commandsOf } from '../record/timeline.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { plural } from '../text/quantities.ts';
import { runTrial } from '../trial/run-trial.ts';
import type { TrialSpec } from '../trial/spec.ts';
import type { LookAgain } from './audit-batch.ts';
import { Checks, notReached } from './checks.ts';
import { definitionOf } from './evidence-of-trial.ts';
import { trialHere } from './foreign-trial.ts';
import { broughtImage, noVerdict, type RegradedParts } from './regraded.ts';

/**
 * Runs the harness of a trial again, against the recorded answers of its models, and compares its requests,
 * its commands and what it left. Stores nothing.
 */
export function replayedLevel(parts: Omit<RegradedParts, 'askJudges'>): LookAgain {
  const { ledger, batch } = parts;
  // The evidence of somebody else has a plan that is safe to run, beside the definition.
  const specOf = definitionOf(batch, parts);
  return async ({ trial, record, spec: asked }, signal) => {
    const { spec } = await specOf(trial);
    if (typeof asked === 'string' || typeof spec === 'string')
      return notReached('replayed', String(typeof spec === 'string' ? spec : asked));
    const leftOut: string[] = [];
    const cassette = ledgerCassette({ ledger, leftOut: (why) => leftOut.push(why) }, batch, trial.key);
    const obstacle = replayObstacle(record, spec);
    if (obstacle !== undefined) return notReached('replayed', obstacle);
    const recorded = cassette.trials.flatMap((one) => one.exchanges()).length;
    const [why] = leftOut;
    if (recorded === 0)
      return notReached('replayed', why ?? 'it asked no model, so there is nothing to replay');
    const here = await trialHere(spec, record, parts);
    if (here.obstacle !== undefined) return notReached('replayed', here.obstacle);
    const replay = { batch: batch.key, name: batch.id, live: 'never' as const };
    const given = { ...parts, keep: undefined, cassette: () => cassette };
    const modelConfig = asked.modelConfig && recordedModel(asked.modelConfig, batch.id);
    const safe = { ...here.spec, modelConfig, replay };
    const now = await runTrial(safe, given, signal, () => undefined);
    const checks = new Checks();
    if (here.isBrought) checks.missed(broughtImage);
    if (
      now.cause &&
      ['infrastructure', 'harness', 'task', 'unknown'].includes(now.cause.kind) &&
      now.cause.kind !== record.cause?.kind
    ) {
      checks.missed(`it did not run here: ${now.cause.message}`);
      return checks.level('replayed', 'machine');
    }
    // Whoever lost an engine is no forger; but a failure can be called that.
    if (record.verdict === 'void' && now.verdict !== 'void') {
      checks.missed(`${noVerdict}; here, it ${now.verdict}`);
      return checks.level('replayed', 'evidence');
    }
    compare(record, now, checks);
    return checks.level('replayed');
  };
}

/** Why a trial cannot be run again with nothing but its recorded answers; undefined if it can. */
function replayObstacle(
  { notRun, fromService, replay }: TrialRecord,
  { sandbox, steps }: TrialSpec,
): string | undefined {
  if (notRun || fromService) return 'it was not run here';
  if (replay) return 'it is a replay itself';
  const networks = [sandbox.network, ...(steps?.list ?? []).map(({ reach }) => reach?.network)];
  const open = networks.find((network) => network === 'open' || network === 'allowlist');
  return open === undefined
    ? undefined
    : `its harness could reach more than its model (network: ${open}), and those answers were not recorded`;
}

function compare(record: TrialRecord, now: TrialRecord, checks: Checks): void {
  const says = 'the harness asks what it asked';
  if (now.cause?.kind === 'replay')
    checks.contradicted('models.exchanges', says, 'a recorded request', now.cause.message);
  else checks.same('models.exchanges', 'the harness asks as often', countOf(now), countOf(record));
  const changed = now.replay?.changed ?? 0;
  if (changed > 0)
    checks.missed(`the harness’s own texts, tools or options: they differ in ${changed} requests`);
  const [ran, did] = [commands(now), commands(record)];
  checks.same('trajectory', 'the same commands end with the same exit codes', ran, did);
  const printed = commandsOf(now) ?? [];
  const others = printed.filter(({ output = '' }, index) => {
    return withoutVolatile(output) !== withoutVolatile(commandsOf(record)?.[index]?.output ?? '');
  });
  // It may depend on the machine or on the time.
  if (others.length > 0)
    checks.missed(`what commands print: ${plural(others.length, 'command')} printed something else here`);
  for (const part of ['finalMessage', 'turns', 'filesChanged'] as const)
    checks.same(part, 'the harness says and leaves the same', now[part], record[part]);
  const [here, there] = [now.harness, record.harness];
  if (here?.ended === 'exited' && there?.ended === 'exited')
    checks.same('harness.exitCode', 'the harness exits with the same code', here.exitCode, there.exitCode);
  checks.same('changes', 'the same files are left', changes(now), changes(record));
  checks.same('verdict', 'the verdict is the same', now.verdict, record.verdict);
}

function countOf({ models }: Pick<TrialRecord, 'models'>): string {
  const asked = (models?.exchanges ?? []).filter((one) => one.responseBytes > 0 && !isCount(one));
  return `${asked.filter(({ role }) => role === 'agent').length} requests`;
}

function commands(record: TrialRecord): { command: string; exitCode?: number | undefined }[] {
  return (commandsOf(record) ?? []).map(({ command, exitCode }) => ({
    command: withoutVolatile(command),
    exitCode,
  }));
}

/** What the agent left, by path. Modes may depend on the machine, and times are not recorded. */
function changes({ changes = [] }: TrialRecord): Record<string, unknown> {
  const left = (change: FileChange) => {
    const { type, byteSize, content, linkTarget } = change.after ?? {};
    return { kind: change.kind, type, byteSize, content, linkTarget };
  };
  return Object.fromEntries(changes.map((change) => [change.path, left(change)]));
}
