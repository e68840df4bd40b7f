import { Command } from '@commander-js/extra-typings';
import { inputError } from '../../base/offsite-error.ts';
import { cellsOf, compareWithBaselines, readBaselines } from '../../comparison/baseline.ts';
import { type ComparedBatches, compareBatches } from '../../comparison/comparison.ts';
import { readReference } from '../../comparison/side.ts';
import type { StoredBatch } from '../../ledger/batches.ts';
import { lastBatch, lastEnded, lastWord } from '../../ledger/find.ts';
import { ours, stack, text } from '../../text/printable.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { type OptionsOf, withService } from '../options.ts';
import { comparisonText, unreadIn } from '../output/comparison.ts';
import { githubStep } from '../output/github.ts';
import { exitCodeOfGates, failedGates, regressionLines } from '../regression.ts';
import { unreadText } from '../show/layout.ts';
import { announceLast } from '../show/open-trial.ts';

export function compareCommand() {
  return withService(new Command('compare'))
    .description('compare two batches or variants on this machine: is one better, or is it noise?')
    .argument(
      '[a]',
      'BATCH, BATCH:VARIANT, BATCH+BATCH or BATCH+BATCH:VARIANT, the older one unless --baseline; ids may be cut short; ' +
        '`last`: the last finished batch; :VARIANT: a variant of it (default: the batch of its suite before it)',
    )
    .argument('[b]', 'the newer one (default: the last finished batch)')
    .option('--baseline', "compare one batch with the service's baseline of its cases and variants")
    .option('--details', 'print the changed cases, the noise, pass@k, time, tokens and cost too')
    .option('--fail-on-regression', 'exit 1 if B is worse than A by more than noise')
    .option('--fail-on-case-regression', 'exit 1 if a case always passed in A and always fails in B')
    .action(async (a, b, options) => {
      process.exitCode = await compare(a, b, options);
    });
}

type CompareOptions = OptionsOf<typeof compareCommand>;

async function compare(
  given: string | undefined,
  b: string | undefined,
  options: CompareOptions,
): Promise<number> {
  if (options.baseline && b !== undefined) {
    throw inputError('OPTION_CONFLICT', '--baseline compares one batch, but two are named', {
      hint: 'Name one batch, or remove --baseline.',
    });
  }
  await using context = CommandContext.open(options);
  // A service may call a batch `last`.
  const isLast = b === undefined || (b === lastWord && context.ledger().batches.find(b).length === 0);
  const last = isLast && !options.baseline ? lastFinished(context, given) : undefined;
  const newer = last?.id ?? b;
  const takesLast = !last && [given, b].some((one) => one?.startsWith(':'));
  if (takesLast && lastBatch(context.ledger().records).state === 'open') lastFinished(context, undefined);
  const a = given ?? (last ? batchBefore(context, last).id : lastWord);
  const compared = options.baseline
    ? await comparedWithBaseline(context, a)
    : comparedBatches(context, a, newer);
  const unread = unreadText(unreadIn(compared));
  if (unread && !options.json) context.out.print(unread);
  if (options.json) context.out.json(compared);
  else context.out.print(comparisonText(compared, options));
  const before = options.baseline ? 'the baseline' : a;
  for (const line of regressionLines(compared, { name: before, blind: [] }, options)) context.err.print(line);
  const gates = exitCodeOfGates(compared, options);
  if (gates !== exitCodes.done && githubStep(context.env)) {
    const message = stack(failedGates(compared, before, options));
    context.err.annotation({ kind: 'error', title: text`Offsite: exit code ${gates}`, message });
  }
  return gates === exitCodes.done && unread ? exitCodes.infrastructure : gates;
}

/**
 * The last batch that has ended: another has only its quickest trials. A batch of chosen cases
 * counts only if it has all those of the other side.
 */
function lastFinished(context: CommandContext, other: string | undefined): StoredBatch {
  const ledger = context.ledger();
  const { records } = ledger;
  const last = lastBatch(records);
  const asIn = other === undefined ? [] : readReference(ledger, other).batches.map(({ key }) => key);
  const ended = lastEnded(records, { asIn }) ?? last;
  announceLast(context, ended);
  if (ended.key !== last.key) {
    const why = last.state === 'finished' ? 'has only some of the cases' : 'has not ended';
    const about = ours(`started later and ${why}: it is not compared`);
    context.err.print(text`batch ${last.id} of ${last.suite} ${about}`);
  }
  return ended;
}

/** The batch of the same suite that ended before another one, and has all its cases. */
function batchBefore(context: CommandContext, { key, id, suite }: StoredBatch): StoredBatch {
  const before = lastEnded(context.ledger().records, { suite, except: key, asIn: [key] });
  if (before) return before;
  throw inputError(
    'BATCH_UNKNOWN',
    `batch ${id} is the first of ${suite}, so there is none to compare it with`,
    { hint: 'Compare its variants, as in `offsite compare :ONE :OTHER`, or name another batch.' },
  );
}

function comparedBatches(context: CommandContext, a: string, b: string | undefined): ComparedBatches {
  const ledger = context.ledger();
  const older = readReference(ledger, a);
  const newer = readReference(ledger, b ?? lastWord);
  const [one, other] = [older, newer].map(({ batches }) => batches[0]?.suite);
  if (one !== undefined && other !== undefined && one !== other)
    context.err.print(
      text`A is of the suite ${one}, B of ${other}: only cases with the same id are compared`,
    );
  return compareBatches(ledger, older, newer);
}

async function comparedWithBaseline(context: CommandContext, name: string): Promise<ComparedBatches> {
  const { signal } = context.interruption();
  const ledger = context.ledger();
  const reference = readReference(ledger, name);
  const cells = cellsOf(ledger, reference);
  const { client } = await context.service();
  return compareWithBaselines(ledger, await readBaselines(client, cells, signal), reference);
}
