import { appendFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';
import { messageOf } from '../../offsite-error.ts';
import { cost, duration, percent, plural } from './quantities.ts';
import type { BatchSummary, RunSummary } from './summary.ts';

/** What GitHub Actions sets for a step. */
export interface GithubStep {
  /** File that the step's summary is appended to. */
  summaryFile: string | undefined;
}

/** The step that this process runs in; undefined outside GitHub Actions. */
export function githubStep(env: NodeJS.ProcessEnv): GithubStep | undefined {
  return env.GITHUB_ACTIONS === 'true' ? { summaryFile: env.GITHUB_STEP_SUMMARY } : undefined;
}

/** Adds a batch to the step's summary and prints an annotation for each run that has trials which did not pass. */
export function tellGithub(
  step: GithubStep,
  summary: BatchSummary,
  { print, warn }: { print(line: string): void; warn(message: string): void },
): void {
  for (const line of annotations(summary)) print(line);
  if (step.summaryFile === undefined) return;
  try {
    appendFileSync(step.summaryFile, markdown(summary));
  } catch (error) {
    // The results are in the ledger; a summary that cannot be written must not hide them.
    warn(`cannot write the step summary to ${step.summaryFile}: ${messageOf(error)}`);
  }
}

export function annotations({ runs }: BatchSummary): string[] {
  return runs.flatMap((run) => {
    const title = `${run.case} · ${run.variant}`;
    const failed = run.trials.filter(({ verdict }) => verdict === 'failed');
    const voided = run.trials.filter(({ verdict }) => verdict === 'void');
    return [
      ...(failed.length > 0
        ? [
            command(
              'error',
              title,
              `${failed.length} of ${plural(run.trials.length, 'trial')} failed\n${reasons(failed)}`,
            ),
          ]
        : []),
      ...(voided.length > 0
        ? [
            command(
              'warning',
              title,
              `${voided.length} of ${plural(run.trials.length, 'trial')} void\n${reasons(voided)}`,
            ),
          ]
        : []),
    ];
  });
}

function markdown(summary: BatchSummary): string {
  const row = (
    name: string,
    of: Pick<RunSummary, 'passed' | 'failed' | 'void' | 'passRate' | 'durationMs' | 'costUsd'>,
  ) =>
    `| ${cell(name)} | ${of.passed} | ${of.failed} | ${of.void} | ${percent(of.passRate)} | ${duration(of.durationMs)} | ${cost(of.costUsd)} |`;
  const unreported =
    summary.unreported > 0 ? [`${plural(summary.unreported, 'result')} could not be reported yet.`, ''] : [];
  return [
    `### Offsite: batch ${cell(summary.batchId)}`,
    '',
    '| run | passed | failed | void | pass rate | time | cost |',
    '|---|--:|--:|--:|--:|--:|--:|',
    ...summary.runs.map((run) => row(`${run.case} · ${run.variant}`, run)),
    row('all', summary),
    '',
    ...unreported,
    '',
  ].join('\n');
}

function reasons(trials: RunSummary['trials']): string {
  return trials
    .map(
      ({ ordinal, cause, failures }) =>
        `#${ordinal}: ${cause?.message ?? failures[0] ?? 'no reason is known'}`,
    )
    .join('\n');
}

/** A workflow command. What a sandbox printed must not become a command of its own. */
function command(kind: 'error' | 'warning', title: string, message: string): string {
  return `::${kind} title=${escaped(title).replaceAll(':', '%3A').replaceAll(',', '%2C')}::${escaped(message)}`;
}

function escaped(text: string): string {
  return stripVTControlCharacters(text)
    .replaceAll('%', '%25')
    .replaceAll('\r', '%0D')
    .replaceAll('\n', '%0A');
}

function cell(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/[\r\n]+/g, ' ')
    .replace(/[\\|`<>[\]]/g, '\\$&');
}
