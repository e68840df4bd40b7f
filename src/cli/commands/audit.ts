import { statSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from '@commander-js/extra-typings';
import { readPlan } from '../../agent/batch-run.ts';
import { concurrencyOn, enginesOf } from '../../agent/engines/check.ts';
import { recordedModels } from '../../agent/ledger-cassette.ts';
import { type AuditEvent, auditBatch } from '../../audit/audit-batch.ts';
import { type AuditedFile, openAuditedFile, readTrusted } from '../../audit/audited-file.ts';
import { type Committed, committedBy } from '../../audit/intact.ts';
import { type RegradedParts, regradedLevel } from '../../audit/regraded.ts';
import { replayedLevel } from '../../audit/replayed.ts';
import { inputError, messageOf, type OffsiteError } from '../../base/offsite-error.ts';
import { printedText } from '../../bounds/anyone.ts';
import { type LoadedImages, loadImages } from '../../evidence/load-images.ts';
import { unpackCommit } from '../../evidence/statement.ts';
import { openBudget } from '../../gateway/budget.ts';
import { keepAudit } from '../../ledger/audits.ts';
import { BlobStore } from '../../ledger/blobs.ts';
import type { Target } from '../../ledger/find-target.ts';
import { refuseLog } from '../../ledger/foreign-batches.ts';
import type { StoredTrial } from '../../ledger/trial-rows.ts';
import {
  type AuditedLevel,
  type AuditLevel,
  auditLevels,
  auditStanding,
  type TrialAudit,
} from '../../record/audit.ts';
import { requirePrices } from '../../suite/require-prices.ts';
import { SandboxConfig } from '../../suite/sandbox-config.ts';
import { table } from '../../text/fit.ts';
import { ours, type Printable, stack, text } from '../../text/printable.ts';
import { plural } from '../../text/quantities.ts';
import { noHostEnvironment } from '../../trial/prepare/environment.ts';
import { Sandboxes } from '../../trial/prepare/sandboxes.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { type OptionsOf, withConfigAndData } from '../options.ts';
import type { Progress } from '../output/progress.ts';
import { endedBy } from '../results/incomplete.ts';
import { trialName } from '../show/layout.ts';
import { announcedTarget } from '../show/open-trial.ts';

export function auditCommand() {
  return withConfigAndData(new Command('audit'))
    .description(
      'check that results are what they are said to be: what follows from what, and what comes out again here',
    )
    .argument(
      '[what]',
      'a file of evidence; or a batch, a run or a trial, as `offsite show` takes it (default: the last batch)',
    )
    .addOption(
      new Option(
        '--level <level>',
        'how far to go. intact: contents and hashes. consistent: what follows from the record. regraded: the work ' +
          'is graded again here. replayed: the harness runs again with the recorded answers',
      )
        .choices(auditLevels)
        .default('consistent' as const),
    )
    .option(
      '--signed-by <who...>',
      'who must have signed a file of evidence: files of public keys, in PEM or of OpenSSH, or IDENTITY=ISSUER ' +
        'for an account of Sigstore, with a trusted_root.json unless it is the public one',
    )
    .option('--ask-judges', 'ask the judges again when the work is graded again, with your keys')
    .option('--json', 'print one JSON document on stdout')
    .action(async (what, options) => {
      process.exitCode = await audit(what, options);
    });
}

type AuditOptions = OptionsOf<typeof auditCommand>;

async function audit(what: string | undefined, options: AuditOptions): Promise<number> {
  await using context = CommandContext.open(options);
  const { clock, out, config, runners } = context;
  using progress = await context.progress({ json: options.json, words: auditWords });
  const { signal } = context.interruption({ doing: () => 'ending the audit' });
  await using scratch = await mkdtempDisposable(join(tmpdir(), 'offsite-audit-'));
  const { level } = options;
  const { target, ...audited } = await progress.step('reading the evidence', () =>
    openAudited(what, options, { context, folder: join(scratch.path, 'data'), signal }),
  );
  const { ledger, batch, isForeign, signature } = audited;
  refuseLog(batch, 'audited');
  const wants = (one: typeof level) => auditLevels.indexOf(level) >= auditLevels.indexOf(one);
  const blobs = () => new BlobStore(join(scratch.path, 'found'));
  if (wants('regraded')) audited.problems.push(...(await unpackCommits(audited, context, signal)));
  await using again = wants('regraded')
    ? await openAgain({ ...audited, blobs: blobs() }, options, context, signal)
    : undefined;
  const observe = (event: AuditEvent) => {
    if (again) showOn(progress, event, again.concurrency);
    // What is said of somebody else's file ends with the command.
    if (event.kind === 'audited' && again && !isForeign)
      keepAudit(ledger.records, event.trial.key, event.audit);
  };
  const { whole, trials, left } = await auditBatch(
    batch,
    {
      ledger,
      config,
      harnesses: runners,
      now: clock.now(),
      definition: audited.definition,
      problems: audited.problems,
      isLeftOut: audited.isLeftOut,
      concurrency: again?.concurrency ?? readAtATime,
      ...(again && { regraded: regradedLevel(again.parts) }),
      ...(again && wants('replayed') && { replayed: replayedLevel(again.parts) }),
      observe,
    },
    signal,
    (trial) => isWanted(trial, target),
  );
  // Without an engine, a wait for the disk after each trial would take longer than to look at it.
  if (!isForeign && !again)
    ledger.records.transaction(() => {
      for (const { trial, audit } of trials) keepAudit(ledger.records, trial.key, audit);
    });
  progress[Symbol.dispose]();
  const { level: _, ...ofBatch } = whole.level('consistent');
  const stopped = left > 0 ? { why: endedBy(signal.reason).why, left } : undefined;
  const shown = { batchId: batch.id, level, signature, whole: ofBatch, trials, stopped };
  if (options.json) out.json(auditDocument(shown, committedBy(ledger, batch)));
  else out.print(auditText(shown));
  if (stopped) signal.throwIfAborted();
  if (contradictedCount(shown) > 0) return exitCodes.belowThreshold;
  // Nothing was found only because nothing could be looked at.
  return reachedCount(shown) > 0 ? exitCodes.done : exitCodes.infrastructure;
}

/** How the trials of an audit are counted while it runs. */
const auditWords = { passed: 'held', failed: 'contradicted', void: 'not reached' };

/** Shows what an audit that needs an engine does. */
function showOn(progress: Progress, event: AuditEvent, concurrency: number): void {
  if (event.kind === 'planned') {
    const { trials } = event;
    progress.note(
      text`auditing ${plural(trials, 'trial')}, ${plural(Math.min(concurrency, trials), 'trial')} at a time`,
    );
    progress.update({ kind: 'planned', trials });
    return;
  }
  const { key, caseId, variant, ordinal } = event.trial;
  const trial = { key: String(key), case: caseId, which: `${variant} #${ordinal}` };
  if (event.kind === 'level') {
    progress.update({ kind: 'phase', trial, phase: event.level === 'replayed' ? 'harness' : 'verify' });
    return;
  }
  const standing = auditStanding(event.audit);
  const isHeld = event.audit.levels.every(({ state }) => state === 'held');
  const verdict = standing === 'contradicted' ? 'failed' : isHeld ? 'passed' : 'void';
  progress.update({ kind: 'finished', trial, verdict, ms: event.ms });
}

/** Trials whose contents are read at the same time. */
const readAtATime = 4;

interface Audited extends Omit<AuditedFile, 'signature'> {
  signature: string | undefined;
  isForeign: boolean;
  target: Target | undefined;
}

/** A batch of the data folder, or of a file of evidence, which is opened in a folder of its own. */
async function openAudited(
  what: string | undefined,
  { signedBy }: AuditOptions,
  { context, folder, signal }: { context: CommandContext; folder: string; signal: AbortSignal },
): Promise<Audited> {
  const { clock, redactor } = context;
  if (what !== undefined && statSync(what, { throwIfNoEntry: false })?.isFile()) {
    const trusted = signedBy && readTrusted(signedBy);
    const file = await openAuditedFile(what, { folder, trusted, clock, redactor, signal });
    context.closeWith(file.ledger);
    return { ...file, isForeign: true, target: undefined };
  }
  if (signedBy) {
    const named = what === undefined ? 'none is named' : `there is no file ${what}`;
    throw inputError('OPTION_CONFLICT', `--signed-by is about a file of evidence, and ${named}`, {
      hint: 'Name the file that `offsite export --evidence` wrote, or remove --signed-by.',
    });
  }
  const target = auditedTarget(context, what);
  const ledger = context.ledger();
  const none = { definition: undefined, problems: [], commits: [], images: [], signature: undefined };
  return { ledger, batch: target.batch, ...none, isLeftOut: () => false, isForeign: false, target };
}

/** What the data folder has of a name that is no file. */
function auditedTarget(context: CommandContext, what: string | undefined): Target {
  try {
    return announcedTarget(context, what);
  } catch (error) {
    const { code, message } = error as OffsiteError;
    if (what === undefined || !['NO_DATA_FOLDER', 'BATCH_UNKNOWN', 'REFERENCE_UNKNOWN'].includes(code))
      throw error;
    throw inputError(
      'EVIDENCE_MISSING',
      code === 'NO_DATA_FOLDER' ? `there is no file ${what}` : `there is no file ${what}; ${message}`,
      {
        hint: 'Name the file that `offsite export --evidence` wrote, or a batch: `offsite data batches` lists them.',
        cause: error,
      },
    );
  }
}

/** Makes the repositories of the evidence's commits. One that cannot be made may be the fault of git here. */
async function unpackCommits(
  { commits }: Pick<Audited, 'commits'>,
  { env }: CommandContext,
  signal: AbortSignal,
): Promise<string[]> {
  const problems: string[] = [];
  for (const { commit, ...places } of commits) {
    try {
      await unpackCommit(commit, places, { env, signal });
    } catch (error) {
      signal.throwIfAborted();
      problems.push(`the commit ${commit} cannot be taken from the evidence: ${messageOf(error)}`);
    }
  }
  return problems;
}

function isWanted({ key, run }: StoredTrial, target: Target | undefined): boolean {
  if (!target) return true;
  return (
    (target.kind === 'batch' || run === target.run.key) &&
    (target.kind !== 'trial' || key === target.trial.key)
  );
}

/** What grading and replaying need. Nothing that they find is stored in the data folder. */
async function openAgain(
  audited: Omit<Audited, 'target'> & { blobs: BlobStore },
  { askJudges }: AuditOptions,
  context: CommandContext,
  signal: AbortSignal,
): Promise<{ parts: RegradedParts; concurrency: number } & AsyncDisposable> {
  const { ledger, batch, definition = batch.plan, isForeign, images, blobs } = audited;
  const { config, runners, clock } = context;
  await using opened = new AsyncDisposableStack();
  const engines = await context.enginesForTrials(signal);
  let loading: Promise<LoadedImages> | undefined;
  const brought = () => (loading ??= loadImages(images, engines.engine, signal));
  // After all else is removed that uses them.
  opened.defer(async () => (await loading)?.[Symbol.asyncDispose]());
  const plan = definition === undefined ? undefined : readPlan(ledger.blobs.readJson(definition));
  const unknown = askJudges && plan?.judges.find((judge) => !Object.hasOwn(config.models, judge));
  if (unknown)
    throw inputError(
      'JUDGE_UNKNOWN',
      `--ask-judges asks ${unknown}, which is no model of the configuration`,
      { hint: 'Name the offsite.yaml that has it: --config FILE.' },
    );
  if (askJudges && plan) requirePrices(plan.judges, config);
  const models = { ...(plan && recordedModels(plan, batch.id)), ...(askJudges && config.models) };
  const gateway = opened.use(await context.models.gateway(models));
  const certificates = await context.certificates();
  // Somebody else's sandboxes see no variable of this machine.
  const host = isForeign ? noHostEnvironment : context.host;
  // And their record chooses no other engine of it.
  const used = isForeign ? [engines.engine] : enginesOf(engines);
  const [sandboxes, ...elsewhere] = used.map((engine) =>
    opened.use(new Sandboxes(engine, certificates, { runners, host, clock })),
  );
  if (!sandboxes) throw new Error('there is no engine');
  const possible = plan?.variants.map(({ sandbox }) => sandbox) ?? [SandboxConfig.parse({})];
  const concurrency = config.concurrency ?? concurrencyOn(engines, possible);
  const budgets = { ...config.budgets, batch: openBudget(config.budgets.batch, clock.now()) };
  const own = { ledger, config, harnesses: runners, runners, clock, batch, blobs, isForeign, budgets };
  const parts = { ...own, sandboxes, elsewhere, gateway, brought, askJudges: askJudges === true };
  const kept = opened.move();
  return { parts, concurrency, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** What an audit of a batch found. */
interface ShownAudit {
  batchId: string;
  /** The last level that was asked for. */
  level: AuditLevel;
  /** Who signed the file, and how far that can be trusted; undefined for a batch of the data folder. */
  signature: string | undefined;
  whole: Omit<AuditedLevel, 'level'>;
  trials: { trial: StoredTrial; audit: TrialAudit }[];
  /** What ended the command before all trials were audited, and how many were not. */
  stopped?: { why: string; left: number } | undefined;
}

/** The JSON document. */
export type AuditDocument = ReturnType<typeof auditDocument>;
function auditDocument({ trials, ...about }: ShownAudit, committed: (trial: StoredTrial) => Committed) {
  return {
    ...about,
    contradicted: contradictedCount({ trials, ...about }),
    trials: trials.map(({ trial, audit: { levels } }) => {
      const { runId, caseId, variant, ordinal, verdict } = trial;
      const standing = auditStanding({ levels });
      return { runId, caseId, variant, ordinal, verdict, standing, committed: committed(trial), levels };
    }),
  };
}

/** How many trials something contradicts; the batch as a whole counts as one more. */
function contradictedCount({ whole, trials }: Pick<ShownAudit, 'whole' | 'trials'>): number {
  const own = trials.filter(({ audit }) => auditStanding(audit) === 'contradicted').length;
  return own + (whole.state === 'contradicted' ? 1 : 0);
}

/** How many trials reached the level that was asked for. */
function reachedCount({ trials, level }: Pick<ShownAudit, 'trials' | 'level'>): number {
  const isHeld = (one: AuditedLevel) => one.level === level && one.state === 'held';
  return trials.filter(({ audit }) => audit.levels.some(isHeld)).length;
}

/** Who signed it, then each contradiction with its place, a row for each trial, and what was not checked. */
export function auditText(shown: ShownAudit): Printable {
  const { whole, trials, signature, level, stopped } = shown;
  // What needs no engine is always looked at.
  const last = Math.max(auditLevels.indexOf(level), auditLevels.indexOf('consistent'));
  const levels = auditLevels.slice(0, last + 1);
  const contradictions = [
    ...whole.contradictions.map((one) => ({ name: ours('the batch'), ...one })),
    ...trials.flatMap(({ trial, audit }) =>
      audit.levels.flatMap((one) =>
        one.contradictions.map((found) => ({ name: trialName(trial), ...found })),
      ),
    ),
  ].map(({ name, path, says, expected, found }) =>
    stack([text`${name}: ${path}`, text`  not so: ${ours(says)}; expected ${expected}, found ${found}`]),
  );
  const held = reachedCount(shown);
  const next = held > 0 && !stopped ? auditLevels[levels.length] : undefined;
  const places = contradictions.length;
  const all = plural(trials.length + (stopped?.left ?? 0), 'trial');
  return stack([
    ...(signature === undefined ? [] : [text`${signature}`, ours('')]),
    ...firstOf(contradictions),
    places > 0 && ours(''),
    tableOf(trials, levels),
    ours(''),
    ...firstOf(uncheckedLines(shown)),
    ours(
      `${places === 0 ? 'nothing is contradicted' : `contradicted: ${plural(places, 'place')}`}; ${level}: ${held} of ${all}`,
    ),
    stopped && text`stopped: ${stopped.why}; ${plural(stopped.left, 'trial')} not audited`,
    next !== undefined && ours(`further: --level ${next}`),
    held === 0 && places === 0 && !stopped && unreachedText(shown),
  ]);
}

/** Of no trial: on whose side that is. */
function unreachedText({ trials, level, signature }: ShownAudit): Printable {
  const lacks = trials.flatMap(({ audit }) => audit.levels.flatMap((one) => one.lacks ?? []));
  const here = lacks.filter((one) => one === 'machine').length;
  const what = `no trial reached ${level}`;
  if (trials.length === 0) return ours(`${what}: none has a result`);
  // A batch of the data folder is the reader's own.
  const owner =
    signature === undefined
      ? 'set what is named above, and run the suite again'
      : 'its owner can run the suite again with what is named above';
  if (here === 0) return ours(`${what}: the evidence lacks what that needs; ${owner}`);
  if (here === lacks.length)
    return ours(`${what}: this machine lacks what that needs; the evidence may hold on another one`);
  return ours(`${what}: ${here} for a reason of this machine, the others for one of the evidence`);
}

/** Somebody else's evidence can contradict itself at any number of places. */
function firstOf(all: Printable[]): Printable[] {
  const more = all.length - printedText.count.lines;
  if (more <= 0) return all;
  return [...all.slice(0, printedText.count.lines), text`and ${more} more: --json lists all`];
}

/** Trials of a run with the same result take one row. */
function tableOf(trials: ShownAudit['trials'], levels: readonly AuditLevel[]): Printable {
  const stateOf = ({ audit }: ShownAudit['trials'][number], level: AuditLevel) =>
    audit.levels.find((one) => one.level === level)?.state ?? '–';
  const alike = Map.groupBy(trials, (one) => {
    return JSON.stringify([one.trial.run, one.trial.verdict, ...levels.map((level) => stateOf(one, level))]);
  });
  const rows = [...alike.values()].flatMap((all) => {
    const [first] = all;
    if (!first) return [];
    const ordinals = all.map(({ trial }) => `#${trial.ordinal}`).join(' ');
    const { caseId, variant, verdict = 'none' } = first.trial;
    const states = levels.map((level) => ours(stateOf(first, level)));
    return [[text`${caseId} · ${variant} ${ordinals}`, ours(verdict), ...states]];
  });
  return table(['trial', 'verdict', ...levels], rows);
}

/** Each thing that could not be checked, once, with the number of trials. */
function uncheckedLines({ whole, trials }: ShownAudit): Printable[] {
  const all = trials.flatMap(({ audit }) =>
    audit.levels.flatMap(({ level, unchecked }) => unchecked.map((why) => ({ level, why }))),
  );
  const alike = Map.groupBy(all, ({ level, why }) => `${level}: ${why}`);
  return [
    ...whole.unchecked.map((why) => text`not checked: ${why}`),
    ...[...alike].map(([line, same]) => text`not checked: ${line} (${ours(plural(same.length, 'trial'))})`),
  ];
}
