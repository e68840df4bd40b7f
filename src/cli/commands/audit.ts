import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from '@commander-js/extra-typings';
import { enginesOf } from '../../agent/engines/check.ts';
import { concurrencyOn } from '../../agent/engines/trials-at-a-time.ts';
import { recordedModels } from '../../agent/ledger-cassette.ts';
import { readPlan } from '../../agent/stored-plan.ts';
import { auditBatch } from '../../audit/audit-batch.ts';
import { type RegradedParts, regradedLevel } from '../../audit/regraded.ts';
import { replayedLevel } from '../../audit/replayed.ts';
import { openBudget } from '../../gateway/budget.ts';
import { keepAudit } from '../../ledger/audits.ts';
import { BlobStore } from '../../ledger/blobs.ts';
import type { ListedTrial } from '../../ledger/find.ts';
import type { Target } from '../../ledger/find-target.ts';
import { refuseLog } from '../../ledger/foreign-batches.ts';
import { auditLevels } from '../../record/audit.ts';
import { SandboxConfig } from '../../suite/sandbox-config.ts';
import { Sandboxes } from '../../trial/sandboxes.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { withConfigAndData } from '../options.ts';
import { auditDocument, auditText, contradictedCount } from '../output/audit.ts';
import { openProgress } from '../output/progress.ts';
import type { CommonOptions } from '../settings.ts';
import { announcedTarget } from '../show/open-trial.ts';

export function auditCommand() {
  return withConfigAndData(new Command('audit'))
    .description(
      'check that results are what they are said to be: what follows from what, and what comes out again here',
    )
    .argument('[what]', 'a batch, a run or a trial, as `offsite show` takes it (default: the last batch)')
    .addOption(
      new Option(
        '--level <level>',
        'how far to go. intact: contents and hashes. consistent: what follows from the record. regraded: the work ' +
          'is graded again here. replayed: the harness runs again with the recorded answers',
      )
        .choices(auditLevels)
        .default('consistent' as const),
    )
    .option('--ask-judges', 'ask the judges again when the work is graded again, with your keys')
    .option('--json', 'print one JSON document on stdout')
    .action(async (what, options) => {
      process.exitCode = await audit(what, options);
    });
}

interface AuditOptions extends CommonOptions {
  level: (typeof auditLevels)[number];
  askJudges?: true | undefined;
}

async function audit(what: string | undefined, options: AuditOptions): Promise<number> {
  await using context = CommandContext.open(options);
  const { err, env, clock, out, config, runners } = context;
  using progress = await openProgress({ err, env, clock, plain: options.json === true });
  context.note = progress.note;
  const { signal } = context.interruption({ doing: () => 'ending the audit' });
  const ledger = context.ledger();
  const target = announcedTarget(context, what);
  const { batch } = target;
  refuseLog(batch, 'audited');
  const { level } = options;
  const wants = (one: typeof level) => auditLevels.indexOf(level) >= auditLevels.indexOf(one);
  await using again = wants('regraded') ? await openAgain(target, options, context, signal) : undefined;
  const { whole, trials } = await auditBatch(
    batch,
    {
      ...{
        ledger,
        config,
        harnesses: runners,
        now: clock.now(),
        problems: [],
        concurrency: again?.concurrency ?? 4,
      },
      ...(again && { regraded: regradedLevel(again.parts) }),
      ...(again && wants('replayed') && { replayed: replayedLevel(again.parts) }),
      observe: (trial, found) => keepAudit(ledger.records, trial.key, found),
    },
    signal,
    (trial) => isWanted(trial, target),
  );
  progress[Symbol.dispose]();
  const { level: _, ...ofBatch } = whole.level('consistent');
  const shown = { batchId: batch.id, level, signature: undefined, whole: ofBatch, trials };
  if (options.json) out.json(auditDocument(shown));
  else out.print(auditText(shown));
  return contradictedCount(shown) > 0 ? exitCodes.belowThreshold : exitCodes.done;
}

function isWanted({ key, run }: ListedTrial, target: Target): boolean {
  return (
    (target.kind === 'batch' || run === target.run.key) &&
    (target.kind !== 'trial' || key === target.trial.key)
  );
}

/** What grading and replaying need. Nothing that they find is stored in the data folder. */
async function openAgain(
  { batch }: Target,
  { askJudges }: AuditOptions,
  context: CommandContext,
  signal: AbortSignal,
): Promise<{ parts: RegradedParts; concurrency: number } & AsyncDisposable> {
  const { config, runners, clock, host } = context;
  const ledger = context.ledger();
  const folder = mkdtempSync(join(tmpdir(), 'offsite-audit-'));
  await using opened = new AsyncDisposableStack();
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  const engines = await context.enginesForTrials(signal);
  const { plan } =
    batch.plan === undefined ? { plan: undefined } : readPlan(ledger.blobs.readJson(batch.plan));
  const models = { ...(plan && recordedModels(plan, batch.id)), ...(askJudges && config.models) };
  const gateway = opened.use(await context.models.gateway(models));
  const certificates = await context.certificates();
  const [sandboxes, ...elsewhere] = enginesOf(engines).map((engine) =>
    opened.use(new Sandboxes(engine, certificates, { runners, host, clock })),
  );
  if (!sandboxes) throw new Error('there is no engine');
  const possible = plan?.variants.map(({ sandbox }) => sandbox) ?? [SandboxConfig.parse({})];
  const concurrency = config.concurrency ?? concurrencyOn(engines, possible);
  const parts = {
    ...{
      ledger,
      config,
      harnesses: runners,
      runners,
      sandboxes,
      elsewhere,
      gateway,
      clock,
      batch,
      askJudges: askJudges === true,
    },
    blobs: new BlobStore(join(folder, 'blobs')),
    budgets: { ...config.budgets, batch: openBudget(config.budgets.batch, clock.now()) },
    isForeign: false,
  };
  const kept = opened.move();
  return { parts, concurrency, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}
