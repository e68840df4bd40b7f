import { appendFileSync } from 'node:fs';
import { messageOf } from '../../base/offsite-error.ts';
import { markdownCell } from '../../text/markdown.ts';
import { type Content, type Output, plainText } from '../../text/output.ts';
import {
  type Annotation,
  lines,
  type Printable,
  present,
  type Redact,
  stack,
  text,
} from '../../text/printable.ts';
import { cost, duration, percent, plural, sumText } from '../../text/quantities.ts';
import { exitCodes } from '../exit-codes.ts';
import { keptText } from './kept.ts';
import { type BatchSummary, type RunSummary, sumsOfVariants } from './summary.ts';
import { isPaid, replayedLines, timeOf } from './summary-table.ts';

/** What GitHub Actions sets for a step. */
export interface GithubStep {
  /** The file to which the step's summary is appended. */
  summaryFile: string | undefined;
}

/** The step that this process runs in; undefined outside GitHub Actions. */
export function githubStep(env: NodeJS.ProcessEnv): GithubStep | undefined {
  return env.GITHUB_ACTIONS === 'true' ? { summaryFile: env.GITHUB_STEP_SUMMARY } : undefined;
}

/** A batch, and what was said of its thresholds and gates. */
interface ConcludedBatch {
  summary: BatchSummary;
  concluded: readonly Printable[];
  /** The exit code that follows, and why it is not 0; absent if the command ends with an error of its own. */
  code?: number | undefined;
  why?: readonly Printable[] | undefined;
  /** Whether a run's failed trials are no finding, because they are known, and only a regression is one. */
  isKnown?: ((run: RunSummary) => boolean) | undefined;
}

export interface GithubMeans {
  /** The stream for annotations: stdout or stderr. GitHub reads both. */
  output: Pick<Output, 'annotation'>;
  warn(message: Content): void;
  redact: Redact;
}

/**
 * Adds a batch to the step's summary, and prints an annotation that says why the command fails, and one for
 * each run with trials that did not pass.
 */
export function writeGithubResults(
  step: GithubStep,
  { summary, concluded, code = exitCodes.done, why = [], isKnown }: ConcludedBatch,
  { output, warn, redact }: GithubMeans,
): void {
  // It comes first: GitHub shows ten errors of a step.
  if (code !== exitCodes.done) {
    const { unreported } = summary;
    const kept = unreported > 0 && text`the service does not show ${plural(unreported, 'result')} yet`;
    const message = stack([...why, kept]);
    output.annotation({ kind: 'error', title: text`Offsite: exit code ${code}`, message });
  }
  for (const annotation of annotations(summary, isKnown)) output.annotation(annotation);
  if (step.summaryFile === undefined) return;
  try {
    appendFileSync(step.summaryFile, markdown({ summary, concluded }, redact));
  } catch (error) {
    // The results are in the ledger; a summary that cannot be written must not hide them.
    warn(text`cannot write the step summary to ${step.summaryFile}: ${messageOf(error)}`);
  }
}

export function annotations({ runs }: BatchSummary, isKnown: ConcludedBatch['isKnown']): Annotation[] {
  return runs.flatMap((run) => {
    const title = text`${run.case} · ${run.variant}`;
    const failed = run.trials.filter(({ verdict }) => verdict === 'failed');
    const voided = run.trials.filter(({ verdict }) => verdict === 'void');
    const annotationsOf = (kind: Annotation['kind'], verdict: string, trials: RunSummary['trials']) => {
      const all = plural(run.trials.length, 'trial');
      const message = text`${trials.length} of ${all} ${verdict}\n${reasons(trials)}`;
      return trials.length > 0 ? [{ kind, title, message }] : [];
    };
    const ofFailed = isKnown?.(run) ? 'notice' : 'error';
    return [...annotationsOf(ofFailed, 'failed', failed), ...annotationsOf('warning', 'void', voided)];
  });
}

function markdown({ summary, concluded }: ConcludedBatch, redact: Redact): string {
  const cell = (text: string) => markdownCell(text, redact);
  const trials = summary.runs.flatMap((run) => run.trials);
  const priced = isPaid({ trials }, 'costUsd');
  const row = (
    name: string,
    of: Pick<RunSummary, 'passed' | 'failed' | 'void' | 'passRate' | 'trials'>,
    time: string,
  ) => {
    const counts = `${of.passed} | ${of.failed} | ${of.void} | ${percent(of.passRate)}`;
    return `| ${name} | ${counts} | ${time} |${
      priced
        ? ` ${sumText(
            of.trials.map(({ costUsd }) => costUsd),
            cost,
          )} |`
        : ''
    }`;
  };
  const missing = summary.incomplete?.unfinished ?? 0;
  const have = missing === 1 ? 'has' : 'have';
  const kept = keptText(
    summary.unreported,
    'the data folder of the runner',
    summary.service,
    cell(summary.service),
  );
  const notes = present([
    missing > 0 && `Not complete: ${plural(missing, 'trial')} ${have} no result.`,
    summary.unreported > 0 && `${kept}: \`offsite resume\` continues.`,
  ]);
  const said = [...concluded, ...replayedLines(trials)];
  return [
    `### Offsite: batch ${cell(summary.batchId)}`,
    '',
    `| run | passed | failed | void | pass rate | time |${priced ? ' cost |' : ''}`,
    `|---|--:|--:|--:|--:|--:|${priced ? '--:|' : ''}`,
    ...summary.runs.map((run) =>
      row(`${cell(run.case)} · ${cell(run.variant)}`, run, duration(run.durationMs)),
    ),
    ...sumsOfVariants(summary).map((sums) =>
      row(`all · ${cell(sums.variant)}`, sums, duration(sums.durationMs)),
    ),
    row('all', { ...summary, trials }, timeOf(summary)),
    '',
    ...notes.flatMap((note) => [note, '']),
    ...whyRows(summary, cell),
    ...said.flatMap((line) => [plainText(line).split('\n').map(cell).join('<br>'), '']),
    '',
  ].join('\n');
}

/** How many runs the step's summary gives reasons of. */
const explainedRuns = 20;

/** A row for each run with trials that did not pass: what the first of them says. */
function whyRows({ runs }: BatchSummary, cell: (text: string) => string): string[] {
  const rows = runs.flatMap(({ case: id, variant, trials }) => {
    const first = trials.find(({ verdict }) => verdict !== 'passed');
    if (first === undefined) return [];
    return [
      `| ${cell(id)} · ${cell(variant)} | ${reasonsOf(first)
        .flatMap((reason) => reason.split('\n'))
        .map(cell)
        .join('<br>')} |`,
    ];
  });
  if (rows.length === 0) return [];
  const more = rows.length - explainedRuns;
  return [
    '| did not pass | why, in the first such trial |',
    '|---|---|',
    ...rows.slice(0, explainedRuns),
    '',
    ...(more > 0 ? [`${plural(more, 'more run')} did not pass.`, ''] : []),
  ];
}

/** How many reasons of a trial are shown. */
const shownReasons = 3;

function reasons(trials: RunSummary['trials']): Printable {
  return stack(trials.map((trial) => text`#${trial.ordinal}: ${lines(reasonsOf(trial).join('\n'))}`));
}

function reasonsOf({ cause, failures = [] }: RunSummary['trials'][number]): string[] {
  const all = [...(cause === undefined ? [] : [cause.message]), ...failures];
  return all.length === 0 ? ['no reason is known'] : all.slice(0, shownReasons);
}
